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
    EXPECT_EQ(std::visit([](const auto& held) { return json(held); }, read.value), gold) << *written;
  };
  for (const char* text : {"Rowan & Pike", "a, b", "12\" pipe", "tab\there", "ä–ö", "{x}", "[y]"})
    expect_back(kBrand, text);
  for (const double number : {7.0, 0.25, -3.5, 1e6}) expect_back(kWeight, number);
  expect_back(kRoast, "light");
  expect_back(kNotes, json::array({"a, b", "\"quoted\"", "c"}));
}

}  // namespace
}  // namespace sheaf
