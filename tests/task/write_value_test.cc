#include "core/task/write_value.h"

#include <gtest/gtest.h>

#include "core/task/value.h"

namespace sheaf {
namespace {

using nlohmann::json;

const Attribute kText{"Brand", "", ValueType::text};
const Attribute kNumber{"Weight", "", ValueType::number, {}, "oz"};
const Attribute kEnum{"Roast", "", ValueType::enumeration, {"light", "Dark"}};
const Attribute kList{"Notes", "", ValueType::list};

TEST(WriteValue, IsALiteralOfTheAttributesType) {
  EXPECT_EQ(write_value(kText, "Oak \"12\""), "\"Oak \\\"12\\\"\"");
  EXPECT_EQ(write_value(kText, 12), "\"12\"");
  EXPECT_EQ(write_value(kText, json::array({"first", "second"})), "\"first\"");
  EXPECT_EQ(write_value(kNumber, "1,200 oz"), "1200");
  EXPECT_EQ(write_value(kNumber, 2.5), "2.5");
  EXPECT_EQ(write_value(kEnum, "dark"), "\"Dark\"");
  EXPECT_EQ(write_value(kList, json::array({"a", "b"})), "[\"a\", \"b\"]");
  EXPECT_EQ(write_value(kList, "a"), "[\"a\"]");
}

TEST(WriteValue, AbsentIsNull) {
  for (const json& gold : {json(), json::array(), json("n/a"), json::array({"n/a", "x"})})
    for (const Attribute& attribute : {kText, kNumber, kEnum, kList})
      EXPECT_EQ(write_value(attribute, gold), "null") << gold;
}

TEST(WriteValue, AnOptionMayBeCalledNa) {
  const Attribute attribute{"Grade", "", ValueType::enumeration, {"n/a", "A"}};
  EXPECT_EQ(write_value(attribute, "n/a"), "\"n/a\"");
  EXPECT_EQ(write_value(kList, json::array({"a", nullptr, "b"})), "[\"a\", \"b\"]");
}

TEST(WriteValue, IsNothingWhereTheTypeDoesNotHoldIt) {
  EXPECT_FALSE(write_value(kNumber, "5 to 7 oz"));
  EXPECT_FALSE(write_value(kEnum, "medium"));
  EXPECT_FALSE(write_value(kText, json::object()));
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
    expect_back(kText, text);
  for (const double number : {7.0, 0.25, -3.5, 1e6}) expect_back(kNumber, number);
  expect_back(kEnum, "light");
  expect_back(kList, json::array({"a, b", "\"quoted\"", "c"}));
}

}  // namespace
}  // namespace sheaf
