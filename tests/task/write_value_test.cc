#include <gtest/gtest.h>

#include "core/task/gold.h"
#include "core/task/value.h"

namespace sheaf {
namespace {

using nlohmann::json;

const Attribute kBrand{"Brand", "", ValueType::text};
const Attribute kWeight{"Weight", "", ValueType::number, {}, "oz"};
const Attribute kRoast{"Roast", "", ValueType::enumeration, {"light", "Dark"}};
const Attribute kNotes{"Notes", "", ValueType::list};

TEST(WriteValue, IsALiteralOfTheAttributesType) {
  EXPECT_EQ(write_value(kBrand, "Oak \"12\""), "\"Oak \\\"12\\\"\"");
  EXPECT_EQ(write_value(kBrand, 12), "\"12\"");
  EXPECT_EQ(write_value(kBrand, json::array({"first", "second"})), "\"first\"");
  EXPECT_EQ(write_value(kWeight, "1,200.5 oz"), "1200.5");
  EXPECT_EQ(write_value(kWeight, "1,200 oz"), std::nullopt) << "ambiguous";
  EXPECT_EQ(write_value(kWeight, 2.5), "2.5");
  EXPECT_EQ(write_value(kWeight, 1.125), "1.125");
  EXPECT_EQ(write_value(kRoast, "dark"), "\"Dark\"");
  EXPECT_EQ(write_value(kNotes, json::array({"a", "b"})), "[\"a\", \"b\"]");
  EXPECT_EQ(write_value(kNotes, "a"), "[\"a\"]");
}

TEST(TypedGold, IsReadByTheTypeOfItsAttribute) {
  Attribute price{"Price", "", ValueType::number, {}, "USD"};
  EXPECT_EQ(typed_gold(price, "10.50"), json(10.5));
  EXPECT_EQ(typed_gold(price, "$7.50"), json(7.5));
  EXPECT_EQ(typed_gold(price, "1,200"), std::nullopt) << "without a locale";
  price.locale = find_locale("en").value();
  EXPECT_EQ(typed_gold(price, "1,200"), json(1200));
  const Attribute day{"Day", "", ValueType::date}, open{"Open", "", ValueType::boolean, {"true", "false"}};
  EXPECT_EQ(typed_gold(day, "4 March 2026"), json("2026-03-04"));
  EXPECT_EQ(typed_gold(day, "soon"), std::nullopt);
  for (const char* yes : {"yes", "TRUE", "ja", "oui", "Sí"})
    EXPECT_EQ(typed_gold(open, yes), json(true)) << yes;
  for (const char* no : {"no", "False", "nein", "non"}) EXPECT_EQ(typed_gold(open, no), json(false)) << no;
  EXPECT_EQ(typed_gold(open, true), json(true));
  const json both = json::array({"German", "French"});
  EXPECT_EQ(typed_gold(kNotes, "German, French"), both);
  EXPECT_EQ(typed_gold(kNotes, R"(["German", "French"])"), both);
  EXPECT_EQ(typed_gold(kNotes, both), both);
  EXPECT_EQ(typed_gold(kNotes, json::array({"a, b"})), json::array({"a, b"})) << "one part of a list";
  EXPECT_EQ(typed_gold(kBrand, "1,200"), json("1,200"));
  EXPECT_EQ(write_value(kNotes, "German, French"), R"(["German", "French"])");
}

TEST(UnreadableGold, CountsAndNamesOne) {
  UnreadableGold unreadable;
  EXPECT_EQ(unreadable.notice("g.csv", "compared as text"), "");
  unreadable.add({"Day", "", ValueType::date}, "soon");
  EXPECT_EQ(unreadable.notice("g.csv", "compared as text"),
            "g.csv: 1 gold value that the type of its attribute does not hold, compared as text: \"soon\" of "
            "\"Day\"");
  unreadable.add({"Day", "", ValueType::date}, json::array({"never"}));
  EXPECT_EQ(
      unreadable.notice("g.csv", "compared as text"),
      "g.csv: 2 gold values that the type of their attribute does not hold, compared as text: \"soon\" of "
      "\"Day\", …");
}

TEST(WriteValue, AbsentIsNull) {
  for (const json& gold : {json(), json::array(), json("n/a"), json::array({"n/a", "x"})})
    for (const Attribute& attribute : {kBrand, kWeight, kRoast, kNotes})
      EXPECT_EQ(write_value(attribute, gold), "null") << gold;
}

TEST(WriteValue, EmptyTextIsNull) {
  for (const json& gold : {json(""), json::array({""}), json::array({nullptr})})
    for (const Attribute& attribute : {kBrand, kWeight, kRoast, kNotes})
      EXPECT_EQ(write_value(attribute, gold), "null") << gold;
  EXPECT_EQ(write_value(kNotes, json::array({"", "a"})), "[\"a\"]");
}

TEST(BindGold, SpansAreThoseThatDecodingCanCopy) {
  const auto span = [](const char* name) { return Attribute{name, "", ValueType::span}; };
  const Category category{"Tea", {span("a"), span("b"), span("c"), span("d"), span("e"), kBrand}};
  Record record;
  record.document = "Oak tea\n20 g";
  json gold{{"a", "oak"},         {"b", json::array({"Elm", "Oak"})},
            {"c", json::array()}, {"d", "tea\n20 g"},
            {"e", {" 20 g "}},    {"Brand", "Elm"}};
  EXPECT_EQ(bind_gold(category, record, gold), 2);
  EXPECT_EQ(gold, json({{"a", "Oak"}, {"c", json::array()}, {"e", "20 g"}, {"Brand", "Elm"}}))
      << "the first value counts, and stands on one line";
}

TEST(UnknownNames, AreCountedAndTheFirstShown) {
  const Category category{"Tea", {{"Color", ""}, {"Brand", ""}}};
  UnknownNames names;
  names.add(category, {{"Color", "red"}});
  EXPECT_EQ(names.notice("g.jsonl"), "");
  for (int i = 0; i < 2; ++i) names.add(category, {{"Colour", "red"}, {"Zzz", 1}});
  EXPECT_EQ(names.notice("g.jsonl"),
            "g.jsonl: 4 gold values left out, because the category in the schema has no such attribute: "
            "\"Colour\" of Tea (did you mean \"Color\"?), \"Zzz\" of Tea");
  names.add(category, {{"1111", 1}, {"2222", 1}});
  EXPECT_TRUE(names.notice("g.jsonl").ends_with("\"1111\" of Tea, …"));
}

TEST(WriteValue, AnOptionMayBeCalledNa) {
  const Attribute attribute{"Grade", "", ValueType::enumeration, {"n/a", "A"}};
  EXPECT_EQ(write_value(attribute, "n/a"), "\"n/a\"");
  EXPECT_EQ(write_value(kNotes, json::array({"a", nullptr, "b"})), "[\"a\", \"b\"]");
}

TEST(WriteValue, ValuesOfOtherTypesAreNotWritten) {
  EXPECT_FALSE(write_value(kWeight, "5 to 7 oz"));
  EXPECT_FALSE(write_value(kRoast, "medium"));
  EXPECT_FALSE(write_value(kBrand, json::object()));
}

TEST(WriteValue, IsReadBackAsTheSame) {
  const auto expect_back = [](const Attribute& attribute, const json& gold) {
    const auto written = write_value(attribute, gold);
    ASSERT_TRUE(written);
    const RowAnswer read = read_value(attribute, " " + *written + ",\n", false);
    EXPECT_EQ(read.note, "") << *written;
    EXPECT_EQ(json(value_json(read.value)), gold) << *written;
  };
  for (const char* text : {"Rowan & Pike", "a, b", "12\" pipe", "tab\there", "ä–ö", "{x}", "[y]"})
    expect_back(kBrand, text);
  for (const double number : {7.0, 0.25, -3.5, 1e6}) expect_back(kWeight, number);
  expect_back(kRoast, "light");
  expect_back(kNotes, json::array({"a, b", "\"quoted\"", "c"}));
}

}  // namespace
}  // namespace sheaf
