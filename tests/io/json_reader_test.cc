#include "core/text/json_reader.h"

#include <gtest/gtest.h>
#include <map>

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string trouble_of(std::string_view text, const JsonLimits& limits = {}) {
  std::string trouble, trouble_in_order;
  const json value = read_json<json>(text, limits, &trouble);
  const ordered_json in_order = read_json<ordered_json>(text, limits, &trouble_in_order);
  EXPECT_EQ(value.is_discarded(), !trouble.empty());
  EXPECT_EQ(in_order.is_discarded(), !trouble.empty());
  EXPECT_EQ(trouble, trouble_in_order);
  return trouble;
}

TEST(JsonReader, ReadsWhatTheLibraryReads) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "2.5e-3", "\"\\ud83d\\ude00 \\u0000\"", "[]", "{}",
        R"({"b": [1, {"c": []}, [[2]]], "a": {"x": {"y": null}}, "": ""})", " [ 1 , 2 ] "}) {
    EXPECT_EQ(read_json(text), json::parse(text)) << text;
    EXPECT_EQ(read_json<ordered_json>(text), ordered_json::parse(text)) << text;
  }
}

TEST(JsonReader, KeepsTheOrderOfKeysAndTheLastOfTwo) {
  const std::string text = R"({"z": 1, "a": {"deep": [1]}, "z": {"new": 2}, "b": 3})";
  EXPECT_EQ(read_json<ordered_json>(text).dump(), R"({"z":{"new":2},"a":{"deep":[1]},"b":3})");
  EXPECT_EQ(read_json(text).dump(), R"({"a":{"deep":[1]},"b":3,"z":{"new":2}})");
  EXPECT_EQ(trouble_of(text, {.unique_keys = true}), "\"z\" appears twice in one object");
  EXPECT_EQ(trouble_of(R"([{"a": 1}, {"a": 1}])", {.unique_keys = true}), "");
}

TEST(JsonReader, ErrorsNameThePlaceAndTheFault) {
  const std::map<std::string, std::string> troubles = {
      {"", ": it is empty"},
      {"[1,]", " at column 4: expected a value, found ]"},
      {"{} {}", " at column 4: something follows the value"},
      {"\"\xff\"", " at column 2: a byte that is not UTF-8"},
      {"1e999", " at column 5: the number 1e999 is too large"},
      {"{\"a\": 1", " at column 8: it ends where a comma or } is expected"},
      {"{\"a\":\n 1,\n b: 2}", " at line 3, column 2: unknown word b; a key needs double quotes"},
      {"{\"\u00e9\": x}", " at column 7: unknown word x; a text needs double quotes"},
      {"{'a': 1}", " at column 2: a single quote; JSON has only double quotes"},
      {"[NaN]", " at column 2: NaN is not JSON; write null"},
      {"\"a\tb\"",
       " at column 3: a line break, tab or control character inside a text; escape it, as in \\n"},
      {"[\"\\q\"]", " at column 4: a backslash is followed by a character that JSON does not escape"},
      {"tru", " at column 4: it ends in the middle of a word"},
      {"[1.]", " at column 4: a number is not complete"},
  };
  for (const auto& [text, trouble] : troubles)
    EXPECT_EQ(trouble_of(text), "not valid JSON" + trouble) << text;
  EXPECT_LT(trouble_of("[\"" + std::string(10000, 'x')).size(), 300u);
}

TEST(JsonReader, BoundsTheDepthWhereverItIs) {
  for (const auto& [open, close] : {std::pair("[", "]"), {"{\"a\":", "}"}, {"[{\"a\":", "}]"}}) {
    const size_t levels = std::string_view(open).starts_with("[{") ? 2 : 1;
    const std::string fits = repeated(open, 32 / levels) + "1" + repeated(close, 32 / levels);
    EXPECT_EQ(trouble_of(fits), "") << open;
    EXPECT_EQ(trouble_of(open + fits + close), "nested more than 32 levels deep") << open;
    EXPECT_EQ(trouble_of(repeated(open, 1'000'000)), "nested more than 32 levels deep");
  }
  // In a member that nobody wants, too.
  const JsonLimits limits{.keep = [](const std::string& key) { return key == "a"; }};
  EXPECT_EQ(trouble_of("{\"b\":" + repeated("[", 1'000'000), limits), "nested more than 32 levels deep");
}

TEST(JsonReader, KeepsOnlyTheMembersThatAreWanted) {
  const JsonLimits limits{.values = 4, .keep = [](const std::string& key) { return key == "a"; }};
  const std::string text = R"({"x": [1, 2, {"a": 3}, 4], "a": [5, {"x": 6}], "y": {"a": {"a": 7}}})";
  EXPECT_EQ(trouble_of(text, {.values = 5, .keep = limits.keep}), "");
  EXPECT_EQ(read_json<ordered_json>(text, {.values = 5, .keep = limits.keep}).dump(), R"({"a":[5,{"x":6}]})");
  EXPECT_EQ(trouble_of(text, limits), "more than 4 values");
}

// Each of these takes minutes where the time grows with the square of the size.
TEST(JsonReader, TakesTimeLinearInTheText) {
  EXPECT_EQ(read_json("[" + repeated("{},", 1'000'000) + "{}]").size(), 1'000'001u);
  std::string keys = "{";
  for (int i = 0; i < 300'000; ++i) keys += "\"" + std::to_string(i) + "\":{},";
  keys += "\"0\":1}";
  EXPECT_EQ(read_json<ordered_json>(keys).size(), 300'000u);
  EXPECT_EQ(read_json(keys).size(), 300'000u);
  const std::string same = "{" + repeated("\"a\":{},", 300'000) + "\"a\":1}";
  EXPECT_EQ(read_json<ordered_json>(same).dump(), "{\"a\":1}");
}

}  // namespace
}  // namespace sheaf
