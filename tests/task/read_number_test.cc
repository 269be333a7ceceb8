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

TEST(NumberText, MagnitudesOfOtherLanguagesMultiply) {
  const auto in = [](const char* locale, const char* text, const char* unit = "") {
    return read_number_text(text, unit, find_locale(locale).value()).value;
  };
  EXPECT_EQ(in("de", "3 Millionen"), 3e6);
  EXPECT_EQ(in("de", "1,5 Mio. €"), 1.5e6);
  EXPECT_EQ(in("de", "1,5 Mio. €", "EUR"), 1.5e6);
  EXPECT_EQ(in("de", "2 Milliarden"), 2e9);
  EXPECT_EQ(in("de", "2 Mrd. Euro", "€"), 2e9);
  EXPECT_EQ(in("de", "2 Tsd."), 2000);
  EXPECT_EQ(in("de", "500 T€"), 5e5);
  EXPECT_EQ(in("de", "500 TEUR"), 5e5);
  EXPECT_EQ(in("de", "2 M€"), 2e6);
  EXPECT_EQ(in("fr", "2 M€", "EUR"), 2e6);
  EXPECT_EQ(in("fr", "3 milliards"), 3e9);
  EXPECT_EQ(in("fr", "5 mille"), 5000);
  EXPECT_EQ(in("de", "2 Dutzend"), 24);
  EXPECT_EQ(in("es", "5 mil"), 5000);
  EXPECT_EQ(in("es", "2 MILLONES"), 2e6);
  EXPECT_EQ(in("it", "3 miliardi"), 3e9);
  EXPECT_EQ(in("de", "2 Billionen"), 2e12);
  for (const char* text : {"3 Billion", "1 billion", "2 trillions"})
    EXPECT_EQ(in("fr", text), std::nullopt) << text << " is 1e9 in English only";
  EXPECT_EQ(in("en", "1 billion"), 1e9);
  EXPECT_EQ(in("en", "500 T€"), std::nullopt);
}

TEST(NumberText, PricesWithoutAWholeOrWithoutCents) {
  const Locale german = find_locale("de").value(), english = find_locale("en").value();
  for (const char* text : {"-,50 €", "–,50 €", ",50", "−,50"})
    EXPECT_EQ(read_number_text(text, "", german).value, 0.5) << text;
  EXPECT_EQ(read_number_text("-,50 €", "EUR", german).value, 0.5);
  EXPECT_EQ(read_number_text("-,50 €", "", english).value, std::nullopt);
  EXPECT_EQ(read_number_text("-,50 €").value, std::nullopt);
  EXPECT_EQ(read_number_text("5,- €", "EUR", german).value, 5);
  EXPECT_EQ(read_number_text("5.– CHF", "CHF", find_locale("de-CH").value()).value, 5);
}

TEST(NumberText, BoundsInWordsAreUnclearAsSignsAre) {
  for (const char* text : {"under 5", "more than 5", "up to 100", "mindestens 5", "Up to $100", "MORE THAN 5",
                           "über 5", "au moins 5", "más de 5", "at least 5"}) {
    const NumberText read = read_number_text(text, "", find_locale("de").value());
    EXPECT_EQ(read.trouble, Trouble::unclear) << text;
  }
  EXPECT_EQ(read_number_text("thunder 5").value, 5) << "a word that ends so";
  EXPECT_EQ(read_number_text("about 5").value, 5);
}

TEST(NumberText, UnitsHaveOtherSpellings) {
  const Locale german = find_locale("de").value();
  for (const char* text : {"12,50 €", "12,50€", "12,50 Euro", "€ 12,50", "12,50 EUR", "12,50"})
    EXPECT_EQ(read_number_text(text, "EUR", german).value, 12.5) << text;
  EXPECT_EQ(read_number_text("12 EUR", "€").value, 12);
  EXPECT_EQ(read_number_text("$12", "USD").value, 12);
  EXPECT_EQ(read_number_text("12 €", "USD").trouble, Trouble::other_unit);
  for (const char* text : {"85 m2", "85 qm", "85m²", "85 m^2", "85 Quadratmeter"})
    EXPECT_EQ(read_number_text(text, "m²").value, 85) << text;
  EXPECT_EQ(read_number_text("85 m²", "m2").value, 85);
  EXPECT_EQ(read_number_text("4 cm2", "cm²").value, 4);
  EXPECT_EQ(read_number_text("85 m", "m²").trouble, Trouble::other_unit);
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
  const std::string pieces[] = {"1",  "0",       "5",    ",", ".",     " ",    "-",      "–",  "½",  "e",
                                "x",  "k",       "/",    "^", "³",     "$",    "'",      ":",  "+",  "(",
                                "oz", "million", "Mio.", "€", "up to", "\xff", "\u202f", "10", "200"};
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
