#include "core/text/date_text.h"

#include <gtest/gtest.h>

namespace sheaf {
namespace {

TEST(DateText, ReadsUsualNotations) {
  for (const char* text :
       {"2026-03-01", "2026/3/1", "2026.03.01", "1.3.2026", "01.03.2026", "1 March 2026", "March 1, 2026",
        "March 1st, 2026", "1st of March 2026", "1-Mar-2026", "2026-03-01T12:30:00Z", "2026-03-01 12:30"})
    EXPECT_EQ(read_date_text(text).value, "2026-03-01") << text;
  EXPECT_EQ(read_date_text("13/02/2026").value, "2026-02-13");
  EXPECT_EQ(read_date_text("02/13/2026").value, "2026-02-13");
  EXPECT_EQ(read_date_text("04/04/2026").value, "2026-04-04");
  EXPECT_EQ(read_date_text("Sept 9 2025").value, "2025-09-09");
  EXPECT_EQ(read_date_text("29 Feb 2024").value, "2024-02-29");
}

TEST(DateText, ReadsMonthsOfOtherLanguages) {
  for (const char* text : {"1. März 2026", "1 mars 2026", "1er mars 2026", "1 de marzo de 2026",
                           "1 marzo 2026", "1 maart 2026", "1 de março de 2026", "1. mär. 2026"})
    EXPECT_EQ(read_date_text(text).value, "2026-03-01") << text;
  EXPECT_EQ(read_date_text("14 août 2025").value, "2025-08-14");
  EXPECT_EQ(read_date_text("3 décembre 2025").value, "2025-12-03");
  EXPECT_EQ(read_date_text("24. Dezember 2025").value, "2025-12-24");
}

TEST(DateText, ADayOfTheWeekOrATimeMayStandBesideADate) {
  for (const char* text :
       {"Sunday, 1 March 2026", "So, 1.3.2026", "Sonntag, den 1. März 2026", "dimanche 1 mars 2026",
        "dim. 1er mars 2026", "1 March 2026, 14:30", "1.3.2026 um 19 Uhr", "1. März 2026, 19:30 Uhr",
        "Sun 1 Mar 2026 2:30 pm", "1 mars 2026 à 20h30", "1 March 2026", "1. März 2026"})
    EXPECT_EQ(read_date_text(text).value, "2026-03-01") << text;
  EXPECT_EQ(read_date_text("mar 3 mars 2026").value, "2026-03-03") << "mardi";
  EXPECT_EQ(read_date_text("mar 3 2026").value, "2026-03-03") << "March";
  for (const char* text :
       {"1 March 2026 and 14:30", "1 March 2026 77", "1 March 2026 sold", "Sunday 1 March"})
    EXPECT_EQ(read_date_text(text).value, "") << text;
}

TEST(DateText, MonthsHaveOtherSpellings) {
  for (const char* text : {"1. MÄRZ 2026", "1. Maerz 2026", "1. Mrz. 2026", "1. Mrz 2026"})
    EXPECT_EQ(read_date_text(text).value, "2026-03-01") << text;
  for (const char* text : {"7 FÉVRIER 2026", "7 fév. 2026", "7 fevrier 2026"})
    EXPECT_EQ(read_date_text(text).value, "2026-02-07") << text;
  EXPECT_EQ(read_date_text("6. Jänner 2026").value, "2026-01-06");
}

TEST(DateText, DistinguishesNoDateFromAnAmbiguousOne) {
  using Trouble = DateText::Trouble;
  for (const char* text :
       {"", "soon", "2026", "March 2026", "2026-13-01", "29 Feb 2025", "2026-02-30", "0999-01-01",
        "1 Marsh 2026", "2026-03-01-04", "99999999999999999999-1-1", "1 2 3 4 2026", "a 2026-03-01 date"}) {
    EXPECT_EQ(read_date_text(text).trouble, Trouble::no_date) << text;
    EXPECT_EQ(read_date_text(text).value, "") << text;
  }
  for (const char* text : {"03/04/2026", "3/4/26", "1 March 26"})
    EXPECT_EQ(read_date_text(text).trouble, Trouble::unclear) << text;
}

}  // namespace
}  // namespace sheaf
