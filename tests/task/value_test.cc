#include "core/task/value.h"

#include <gtest/gtest.h>
#include <random>

#include "core/engine/stop_rules.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::json;

const Attribute kText{"Brand", "", ValueType::text};
const Attribute kNumber{"Weight", "", ValueType::number};
const Attribute kOunces{"Weight", "", ValueType::number, {}, "oz"};
const Attribute kEnum{"Roast", "", ValueType::enumeration, {"light", "Dark", "none"}};
const Attribute kList{"Notes", "", ValueType::list};
const Attribute kCases{"Grade", "", ValueType::enumeration, {"a", "A", " b ", "null"}};

const Attribute kInteger{"Bags", "", ValueType::integer, {}, "bags"};
const Attribute kBoolean{"Organic", "", ValueType::boolean, {"true", "false"}};
const Attribute kDate{"Picked", "", ValueType::date};
const Attribute kPattern{"Code", "", ValueType::pattern, {}, "", std::make_shared<Pattern>("[A-Z]{2}-\\d+")};

json json_of(const RowAnswer& answer) {
  return value_json(answer.value);
}

json json_of(const WrittenObject& object) {
  json all = json::object();
  for (const auto& [key, text] : object.members) all[key] = json::parse(text);
  return all;
}

struct Case {
  const Attribute& attribute;
  std::string text;
  bool cut;
  json value;
  bool noted;
};

TEST(Value, ReadsWhatModelsWrite) {
  const std::vector<Case> cases{
      {kText, " \"Diesel\",\n", false, "Diesel", false},
      {kInteger, " 20,", false, 20, false},
      {kInteger, " 20.0,", false, 20, false},
      {kInteger, " \"20 bags\",", false, 20, false},
      {kInteger, " 2.5,", false, nullptr, true},
      {kInteger, " \"2.5 bags\",", false, nullptr, true},
      {kInteger, " \"many\",", false, nullptr, true},
      {kInteger, " null", false, nullptr, false},
      {kBoolean, " true", false, true, false},
      {kBoolean, " false,", false, false, false},
      {kBoolean, " \"Yes\",", false, true, false},
      {kBoolean, " \"no\",", false, false, false},
      {kBoolean, " \"n/a\",", false, nullptr, true},
      {kBoolean, " 1,", false, nullptr, true},
      {kBoolean, " null", false, nullptr, false},
      {kDate, " \"2026-03-01\",", false, "2026-03-01", false},
      {kDate, " \"1 March 2026\",", false, "2026-03-01", false},
      {kDate, " \"03/04/2026\",", false, nullptr, true},
      {kDate, " \"2026\",", false, nullptr, true},
      {kDate, " 2026,", false, nullptr, true},
      {kPattern, " \"AB-12\",", false, "AB-12", false},
      {kPattern, " \"AB-\",", false, nullptr, true},
      {kPattern, " \"AB-12", true, "AB-12", true},
      {kPattern, " 12,", false, nullptr, true},
      {kPattern, " null", false, nullptr, false},
      {kText, " \"Diesel\"\n}", false, "Diesel", false},
      {kText, " null,\n", false, nullptr, false},
      {kText, " \"N/A\",\n", false, nullptr, true},
      {kText, " \"Na\",\n", false, "Na", false},
      {kText, " \"5\\\" heel\"}", false, "5\" heel", false},
      {kEnum, " \"none\"", false, "none", false},
      {kEnum, " null", false, nullptr, false},
      {kNumber, " \"1,5 kg\"", false, nullptr, true},
      {kNumber, " \"8,9,10\"", false, nullptr, true},
      {kNumber, " \"1/2 inch\"", false, 0.5, false},
      {kNumber, " \"10-20 oz\"", false, nullptr, true},
      {kNumber, " \"model X-5\"", false, 5, false},
      {kNumber, " \"-5 C\"", false, -5, false},
      {kNumber, " \"SPF30\"", false, 30, false},
      {kNumber, " \"1,234,567\"", false, 1234567, false},
      {kNumber, " 1e400,", false, nullptr, true},
      {kList, " [\"a\", \"b\"])", false, json::array({"a", "b"}), false},
      {kText, " \"say \\\"hi\\\"\",\n", false, "say \"hi\"", false},
      {kText, " 12,\n", false, "12", false},
      {kText, " [\"a\", \"b\"],\n", false, "a, b", false},
      {kText, " \"a very long value that is cu", true, "a very long value that is cu", true},
      {kText, " \"say \\\"hi", true, "say \"hi", true},
      {kText, " \"say \\\"", true, "say \"", true},
      {kText, " \"a\\\\b\\", true, "a\\b", true},
      {kText, " \"caf\\u00e9 \\u00", true, "caf\u00e9", true},
      {kText, " \"C:\\dir", true, "C:\\dir", true},
      {kText, " Diesel,\n", false, "Diesel", true},
      {kText, "", false, nullptr, true},
      {kText, " {\"a\": 1},\n", false, nullptr, true},
      {kText, " \"Dies\" and more\n", false, "Dies", false},
      {kNumber, " 12,\n", false, 12, false},
      {kNumber, " 72", true, 72, true},
      {kNumber, " 7200\n", true, 7200, false},
      {kNumber, " \"72\"", true, 72, false},
      {kNumber, " 12.5\n", false, 12.5, false},
      {kNumber, " \"1,200.5 g\",\n", false, 1200.5, false},
      {kNumber, " \"about .5 oz\",\n", false, 0.5, false},
      {kNumber, " \"heavy\",\n", false, nullptr, true},
      {kNumber, " true,\n", false, nullptr, true},
      {kEnum, " \"dark\",\n", false, "Dark", false},
      {kEnum, " \"darkish\",\n", false, nullptr, true},
      {kList, " [\"a\", \"b\"],\n", false, json::array({"a", "b"}), false},
      {kList, " \"a\",\n", false, json::array({"a"}), false},
      {kList, " [\"a\", \"b", true, json::array({"a", "b"}), true},
      {kList, " [\"a\", ", true, json::array({"a"}), true},
      {kList, " [],\n", false, nullptr, false},
      {kList, " [{}],\n", false, nullptr, true},
      {kList, " {\n", false, nullptr, true},
      {kNumber, " 1,200.5,\n", false, 1200.5, true},
      {kNumber, " 12,", true, 12, false},
      {kNumber, " \"−5\",\n", false, -5, false},
      {kNumber, " \"12 to 15\",\n", false, nullptr, true},
      {kOunces, " \"12 oz (340 g)\"", false, 12, false},
      {kOunces, " \"340 g\"", false, nullptr, true},
      {kOunces, " 12.5", false, 12.5, false},
      {kText, " 12.50,\n", false, "12.50", false},
      {kText, " 1e5,\n", false, "1e5", false},
      {kText, " 1234567890123456789012\n", false, "1234567890123456789012", false},
      {kText, " [12.50, \"x\", null]", false, "12.50, x", false},
      {kList, " [1.0, 2.50]", false, json::array({"1.0", "2.50"}), false},
      {kText, " \"12\" pipe\",\n", false, "12\" pipe", true},
      {kList, " \"red, blue; green\"", false, json::array({"red", "blue", "green"}), false},
      {kList, " \"1,200 pieces\"", false, json::array({"1,200 pieces"}), false},
      {kCases, " \"A\"", false, "A", false},
      {kCases, " \"a\"", false, "a", false},
      {kCases, " \"B\"", false, " b ", false},
      {kCases, " \"null\"", false, "null", false},
      {kCases, " null", false, nullptr, false},
  };
  for (const Case& c : cases) {
    const RowAnswer value = read_value(c.attribute, c.text, c.cut);
    EXPECT_EQ(json_of(value), c.value) << c.text;
    EXPECT_EQ(!value.note.empty(), c.noted) << c.text << ": " << value.note;
  }
}

TEST(Value, WithoutALocaleThreeDigitsAfterAMarkAreAmbiguous) {
  for (const char* written :
       {" 1.200,", " -1.200", " \"1.200 EUR\",", " \"1,200\"", " 1,200\n", " \"1,5 kg\""}) {
    const RowAnswer value = read_value(kNumber, written, false);
    EXPECT_EQ(json_of(value), nullptr) << written;
    EXPECT_NE(value.note.find("ambiguous without input.locale"), std::string::npos) << value.note;
  }
  const std::pair<const char*, double> clear[] = {
      {" 0.125", 0.125}, {" 1.25,", 1.25}, {" 1200.125", 1200.125}, {" 1.2000", 1.2}};
  for (const auto& [written, number] : clear)
    EXPECT_EQ(json_of(read_value(kNumber, written, false)), number) << written;
}

TEST(Value, TheLocaleDecidesNumbersAndDates) {
  struct Case {
    const char* locale;
    ValueType type;
    const char* written;
    json value;
  };
  const Case cases[] = {
      {"de", ValueType::number, " 1.200,", 1200},
      {"de", ValueType::number, " \"1.200,50 EUR\"", 1200.5},
      {"de", ValueType::number, " \"11,5 % vol\",", 11.5},
      {"de", ValueType::integer, " \"68.000 €\"", 68000},
      {"de", ValueType::number, " 11.5,", 11.5},
      {"en", ValueType::number, " 1.200,", 1.2},
      {"en", ValueType::integer, " \"1,200\"", 1200},
      {"en-US", ValueType::date, " \"03/04/2026\"", "2026-03-04"},
      {"en-GB", ValueType::date, " \"03/04/2026\"", "2026-04-03"},
      {"fr", ValueType::date, " \"03/04/2026\"", "2026-04-03"},
      {"en", ValueType::date, " \"03/04/2026\"", nullptr},
  };
  for (const Case& c : cases) {
    Attribute attribute{"x", "", c.type};
    attribute.locale = find_locale(c.locale).value();
    EXPECT_EQ(json_of(read_value(attribute, c.written, false)), c.value) << c.locale << c.written;
  }
}

TEST(Value, ACutValueIsNotedAsCutWhateverElseIsWrongWithIt) {
  for (const auto& [attribute, text] : {std::pair{&kNumber, " 72"},
                                        {&kDate, " \"20"},
                                        {&kPattern, " \"A"},
                                        {&kText, " \""},
                                        {&kEnum, " \"dar"}}) {
    RowAnswer answer = read_value(*attribute, text, true);
    EXPECT_EQ(answer.note, "cut at the length limit") << text;
    drop_cut_value(answer);
    EXPECT_FALSE(is_found(answer.value)) << text;
  }
}

TEST(Value, IsOfItsTypeOrNullWhateverTheModelWrote) {
  std::mt19937 random(1);
  const std::string pieces[] = {"\"",
                                "{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "\\",
                                "1",
                                "e9",
                                "-",
                                ".",
                                "null",
                                "a",
                                "\n",
                                " ",
                                "\xff",
                                "\xe2\x82",
                                "\xe2\x82\xac",
                                "\\u12",
                                "true",
                                std::string(1, '\0')};
  for (int round = 0; round < 40000; ++round) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += pieces[random() % std::size(pieces)];
    const bool cut = round % 2;
    const RowAnswer answer = read_value(kText, text, cut);
    const json a = json_of(answer), n = json_of(read_value(kNumber, text, cut)),
               e = json_of(read_value(kEnum, text, cut)), l = json_of(read_value(kList, text, cut)),
               i = json_of(read_value(kInteger, text, cut)), b = json_of(read_value(kBoolean, text, cut));
    ASSERT_TRUE(i.is_null() || i.is_number_integer()) << text;
    ASSERT_TRUE(b.is_null() || b.is_boolean()) << text;
    for (const Attribute* rare : {&kDate, &kPattern}) {
      const RowAnswer value = read_value(*rare, text, cut);
      ASSERT_TRUE(json_of(value).is_null() || json_of(value).is_string()) << text;
      ASSERT_NO_THROW((void)json(value.note).dump()) << text;
    }
    ASSERT_TRUE(a.is_null() || a.is_string()) << text;
    ASSERT_TRUE(n.is_null() || n.is_number()) << text;
    ASSERT_TRUE(e.is_null() || e == "light" || e == "Dark" || e == "none") << text;
    ASSERT_TRUE(l.is_null() || (l.is_array() && !l.empty())) << text;
    ASSERT_NO_THROW((void)json({a, n, l, answer.note}).dump()) << text;  // throws on invalid UTF-8
  }
}

/// The definition: what parses once the text is cut at its last comma or line break, and again, and again.
nlohmann::json object_by_cutting(const std::string& written) {
  using nlohmann::json;
  std::string text = "{" + valid_utf8(written);
  const size_t end = object_end(std::string_view(text).substr(1));
  if (end != std::string::npos) text.resize(end + 1);
  json object = json::parse(text, nullptr, false);
  while (object.is_discarded() && text.size() > 1) {
    const size_t cut = text.find_last_of(",\n", text.size() - 1);
    if (cut == std::string::npos) return json::object();
    text.resize(cut);
    object = json::parse(text + "}", nullptr, false);
  }
  return object.is_object() ? object : json::object();
}

TEST(Object, ACutObjectKeepsItsCompleteMembers) {
  const std::vector<std::string> pieces = {"\"a\": ", "\"b\":", "1",  "null", "\"x\"", "[",
                                           "]",       "{",      "}",  ",",    ",",     "\n",
                                           " ",       "\"",     "\\", "x",    ":",     "\"c\": 2,\n"};
  std::mt19937 random(5);
  size_t read = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (size_t i = 0, count = random() % 14; i < count; ++i) text += pieces[random() % pieces.size()];
    const json object = json_of(read_object(text));
    ASSERT_EQ(object, object_by_cutting(text)) << text;
    read += object.size();
  }
  EXPECT_GT(read, 10'000u);
}

TEST(ReadObject, KeysMayEndInADigitAndHoldObjects) {
  const WrittenObject object = read_object(R"("1": {"Brand": "Oak"}, "Screen 12": "7\"", "a\\": 2})");
  ASSERT_EQ(object.members.size(), 3u);
  EXPECT_TRUE(object.whole);
  EXPECT_EQ(object.members[0], (std::pair<std::string, std::string>("1", R"({"Brand": "Oak"})")));
  EXPECT_EQ(object.members[1].first, "Screen 12");
  EXPECT_EQ(object.members[2], (std::pair<std::string, std::string>("a\\", "2")));
}

TEST(Object, MembersAreReadAsValuesAre) {
  const WrittenObject whole = read_object("\"brand\": 12.50, \"Weight\": \"12 oz\", \"Notes\": [1.0]}");
  EXPECT_TRUE(whole.whole);
  EXPECT_EQ(read_member(kText, whole, false), (RowAnswer{"12.50"}));
  EXPECT_EQ(read_member(kNumber, whole, false), (RowAnswer{int64_t{12}}));
  EXPECT_EQ(read_member(kList, whole, false), (RowAnswer{std::vector<std::string>{"1.0"}}));
  EXPECT_EQ(read_member(kEnum, whole, false).note, "the model left it out");
  const WrittenObject cut = read_object("\"Brand\": \"x\", \"Weight\": 1");
  EXPECT_FALSE(cut.whole);
  EXPECT_EQ(read_member(kText, cut, true), (RowAnswer{"x"}));
  EXPECT_EQ(read_member(kNumber, cut, true).note, "the answer was cut at the length limit before this value");
  EXPECT_EQ(read_member(kNumber, cut, false).note, "the answer cannot be read as far as this value");
}

// Cutting off one number after the other would take minutes.
TEST(Object, ALongOpenListIsReadInLinearTime) {
  std::string text = "\"a\": 1,\n\"b\": [";
  for (int i = 0; i < 1'000'000; ++i) text += "1,";
  EXPECT_EQ(json_of(read_object(text)), (json{{"a", 1}}));
  EXPECT_EQ(json_of(read_object("\"a\": 1," + std::string(1'000'000, '\n'))), (json{{"a", 1}}));
}

TEST(Value, DeeplyNestedBracketsAreRefused) {
  const std::string open(1'000'000, '['), close(1'000'000, ']');
  for (const ValueType type : {ValueType::text, ValueType::list, ValueType::number}) {
    const Attribute attribute{"a", "", type};
    for (const std::string& text : {open + close, open, "[\"x\"," + open + close + "]"}) {
      const RowAnswer value = read_value(attribute, text, false);
      EXPECT_FALSE(is_found(value.value));
      EXPECT_NE(value.note.find("not a list"), std::string::npos) << value.note;
    }
  }
  EXPECT_EQ(json_of(read_object("\"a\": 1, \"b\": " + open + close + "}")), (json{{"a", 1}}));
}

}  // namespace
}  // namespace sheaf
