#include "core/text/read_number.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace sheaf {
namespace {

using Trouble = NumberText::Trouble;

TEST(NumberText, ReadsUnambiguousNumbers) {
  const std::pair<const char*, double> cases[] = {
      {"−5", -5},           {"–5 °C", -5},       {"- 5", -5},          {"-$5", -5},
      {"about -5", -5},     {"-.5", -0.5},       {"1e-3", 0.001},      {"1E5", 1e5},
      {"10^3", 1000},       {"10³", 1000},       {"1.5 x 10^3", 1500}, {"1.5×10⁻³ M", 0.0015},
      {"½", 0.5},           {"1½", 1.5},         {"1 ½", 1.5},         {"1 1/2 cups", 1.5},
      {"2-1/2 in", 2.5},    {"1/2", 0.5},        {"1 200", 1200},      {"1\u202f200", 1200},
      {"1\u00a0200", 1200}, {"1'000", 1000},     {"1’000", 1000},      {"1 000,5", 1000.5},
      {"1,200.5", 1200.5},  {"1.234,5", 1234.5}, {"1.200.000", 1.2e6}, {"1,234,567", 1234567},
      {"0.125", 0.125},     {"2k", 2000},        {"1 million", 1e6},   {"2.5 Million dollars", 2.5e6},
      {"3 dozen", 36},      {"12 oz", 12},       {"500ml", 500},       {"0.5%", 0.5},
      {"12-pack", 12},      {"No.5", 5},         {"SPF30", 30},        {"model X-5", 5},
      {"5 m³", 5},          {"(5)", 5},          {"$12.99", 12.99},    {"Omega-3 1000 mg", 1000},
      {"１２", 12},         {"007", 7},          {"about .5 oz", 0.5},
  };
  for (const auto& [text, value] : cases) {
    const NumberText read = read_number_text(text);
    ASSERT_TRUE(read.value) << text << ": " << static_cast<int>(read.trouble);
    EXPECT_DOUBLE_EQ(*read.value, value) << text;
  }
}

TEST(NumberText, RefusesAmbiguousNumbers) {
  const std::pair<const char*, Trouble> cases[] = {
      {"", Trouble::no_number},         {"heavy", Trouble::no_number},
      {"1,5", Trouble::no_locale},      {"8,9,10", Trouble::no_locale},
      {"1,0000", Trouble::no_locale},   {"1.200", Trouble::no_locale},
      {"1,200 kg", Trouble::no_locale}, {"1.2.3", Trouble::unclear},
      {"12:30", Trouble::unclear},      {"0x1F", Trouble::unclear},
      {">5", Trouble::unclear},         {"≥ 5", Trouble::unclear},
      {"±5", Trouble::unclear},         {"5+", Trouble::unclear},
      {"4K", Trouble::unclear},         {"5M", Trouble::unclear},
      {"24/7", Trouble::unclear},       {"1/2/2020", Trouble::unclear},
      {"1e400", Trouble::unclear},      {"2e3kg", Trouble::unclear},
      {"5–7", Trouble::several},        {"10-20 oz", Trouble::several},
      {"12 to 15", Trouble::several},   {"2 x 500 ml", Trouble::several},
      {"5 ft 10 in", Trouble::several}, {"12 oz (340 g)", Trouble::several},
      {"2020-01-01", Trouble::several}, {"1½2", Trouble::several},
  };
  for (const auto& [text, trouble] : cases) {
    const NumberText read = read_number_text(text);
    EXPECT_FALSE(read.value) << text << ": " << read.value.value_or(0);
    EXPECT_EQ(read.trouble, trouble) << text;
  }
}

TEST(NumberText, TheLocaleSaysWhatMarksMean) {
  const auto in = [](const char* locale, const char* text) {
    return read_number_text(text, {}, find_locale(locale).value()).value;
  };
  EXPECT_EQ(in("de", "1.200 EUR"), 1200);
  EXPECT_EQ(in("de", "68.000 €"), 68000);
  EXPECT_EQ(in("de", "11,5 % vol"), 11.5);
  EXPECT_EQ(in("de", "1.234,56"), 1234.56);
  EXPECT_EQ(in("de", "0,125"), 0.125);
  EXPECT_EQ(in("de", "1,200"), 1.2);
  EXPECT_EQ(in("de", "3.5"), 3.5) << "nothing but a decimal point";
  EXPECT_EQ(in("fr", "1 200,5"), 1200.5);
  EXPECT_EQ(in("fr", "-12.500.000"), -12500000);
  EXPECT_EQ(in("de-CH", "1'200.50"), 1200.5);
  EXPECT_EQ(in("de-CH", "1.200"), 1.2);
  EXPECT_EQ(in("en", "1.200"), 1.2);
  EXPECT_EQ(in("en_US", "1,200"), 1200);
  EXPECT_EQ(in("en", "1,5"), std::nullopt);
  EXPECT_EQ(in("de", "1,2,3"), std::nullopt);
}

TEST(NumberText, AllNumbersOfATextAreFound) {
  EXPECT_EQ(numbers_in("1.200 EUR, 11,5 % vol, ½ cup"), (std::vector<double>{1.2, 0.5, 1200, 11.5, 0.5}));
  EXPECT_TRUE(numbers_in("none").empty());
}

TEST(Locale, IsALanguageWithOrWithoutACountry) {
  EXPECT_EQ(find_locale("DE"), find_locale("de-AT"));
  EXPECT_NE(find_locale("de"), find_locale("de_ch"));
  for (const char* name : {"", "xx", "deutsch", "de-", "-", "de-Latn-DE"})
    EXPECT_FALSE(find_locale(name)) << name;
}

TEST(NumberText, TheUnitChoosesAndIsChecked) {
  EXPECT_EQ(read_number_text("12 oz (340 g)", "g").value, 340);
  EXPECT_EQ(read_number_text("12 oz (340 g)", "oz").value, 12);
  EXPECT_EQ(read_number_text("12", "oz").value, 12);
  EXPECT_EQ(read_number_text("12 Oz.", "oz").value, 12);
  EXPECT_EQ(read_number_text("5 fl. oz", "fl oz").value, 5);
  EXPECT_EQ(read_number_text("5kgs", "kg").value, 5);
  EXPECT_EQ(read_number_text("$5", "$").value, 5);
  EXPECT_EQ(read_number_text("12\" tall", "\"").value, 12);
  EXPECT_EQ(read_number_text("12 oz", "g").trouble, Trouble::other_unit);
  EXPECT_EQ(read_number_text("5 grams", "g").trouble, Trouble::other_unit);
  EXPECT_EQ(read_number_text("10-20 oz", "oz").trouble, Trouble::unclear);
  EXPECT_EQ(read_number_text("2 x 500 ml", "ml").trouble, Trouble::unclear);
}

TEST(NumberText, AnyTextIsReadOrRefused) {
  const std::string pieces[] = {"1", "0", "5",  ",",       ".",    " ",      "-",  "–",  "½",
                                "e", "x", "k",  "/",       "^",    "³",      "$",  "'",  ":",
                                "+", "(", "oz", "million", "\xff", "\u202f", "10", "200"};
  std::mt19937 random(3);
  int read = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string text;
    for (size_t n = random() % 9; n > 0; --n) text += pieces[random() % std::size(pieces)];
    for (const char* unit : {"", "oz", "$"})
      for (const Locale& locale : {Locale(), find_locale("de").value(), find_locale("en").value()}) {
        const NumberText number = read_number_text(text, unit, locale);
        ASSERT_EQ(number.value.has_value(), number.trouble == Trouble::none) << text;
        read += number.value.has_value();
      }
  }
  EXPECT_GT(read, 10'000);
}

}  // namespace
}  // namespace sheaf
