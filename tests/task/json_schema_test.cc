#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/task/schema.h"
#include "core/task/value.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// What Pydantic 2 prints for a model.
const char* const kCoffee = R"({
  "$defs": {"Roast": {"enum": ["light", "medium", "dark"], "title": "Roast", "type": "string"}},
  "description": "A coffee on sale.",
  "properties": {
    "brand": {"description": "the maker's name", "title": "Brand", "type": "string"},
    "roast": {"anyOf": [{"$ref": "#/$defs/Roast"}, {"type": "null"}], "default": null},
    "kind": {"$ref": "#/$defs/Roast", "description": "the kind"},
    "old": {"allOf": [{"$ref": "#/$defs/Roast"}], "default": "dark"},
    "ounces": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": null, "title": "Ounces"},
    "bags": {"type": ["integer", "null"]},
    "organic": {"default": false, "title": "Organic", "type": "boolean"},
    "picked": {"format": "date", "title": "Picked", "type": "string"},
    "lot": {"anyOf": [{"pattern": "^[A-Z]{2}-\\d{4}$", "type": "string"}, {"type": "null"}]},
    "word": {"pattern": "[A-Z]", "type": "string"},
    "unit": {"const": "oz", "title": "Unit", "type": "string"},
    "grade": {"enum": ["A", "B", null]},
    "notes": {"items": {"type": "string"}, "title": "Notes", "type": "array"}
  },
  "required": ["brand", "notes"], "title": "Coffee", "type": "object", "additionalProperties": false})";

TEST(JsonSchema, ReadsWhatPydanticPrints) {
  const std::vector<Attribute> attributes = read_json_schema(ordered_json::parse(kCoffee), "");
  ASSERT_EQ(attributes.size(), 13u);
  auto expect = [&, i = size_t{0}](const char* name, ValueType type, bool nullable) mutable {
    EXPECT_EQ(attributes[i].name, name);
    EXPECT_EQ(attributes[i].type, type) << name;
    EXPECT_EQ(attributes[i].nullable, nullable) << name;
    return attributes[i++];
  };
  const std::vector<std::string> roasts = {"light", "medium", "dark"};
  EXPECT_EQ(expect("brand", ValueType::text, false).description, "the maker's name");
  EXPECT_EQ(expect("roast", ValueType::enumeration, true).options, roasts);
  const Attribute kind = expect("kind", ValueType::enumeration, false);
  EXPECT_EQ(kind.options, roasts);
  EXPECT_EQ(kind.description, "the kind");
  EXPECT_EQ(expect("old", ValueType::enumeration, false).options, roasts);
  expect("ounces", ValueType::number, true);
  expect("bags", ValueType::integer, true);
  EXPECT_EQ(expect("organic", ValueType::boolean, false).options,
            (std::vector<std::string>{"true", "false"}));
  expect("picked", ValueType::date, false);
  const Attribute lot = expect("lot", ValueType::pattern, true);
  EXPECT_TRUE(lot.pattern->matches("AB-1234"));
  EXPECT_FALSE(lot.pattern->matches("xAB-1234"));
  const Attribute word = expect("word", ValueType::pattern, false);
  EXPECT_TRUE(word.pattern->matches("a word With one")) << "it may match anywhere";
  EXPECT_FALSE(word.pattern->matches("a word"));
  EXPECT_EQ(expect("unit", ValueType::enumeration, false).options, std::vector<std::string>{"oz"});
  EXPECT_EQ(expect("grade", ValueType::enumeration, true).options, (std::vector<std::string>{"A", "B"}));
  expect("notes", ValueType::list, false);
}

std::string error_of(const std::string& schema) {
  try {
    read_json_schema(ordered_json::parse(schema), "s");
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    return error.what();
  }
}

std::string property_error(const std::string& schema) {
  return error_of(R"({"type": "object", "properties": {"a": )" + schema + "}}");
}

TEST(JsonSchema, UnsupportedKeywordsAreRefusedByPath) {
  EXPECT_EQ(error_of("[]"), "s: a schema must be an object, not []");
  EXPECT_EQ(error_of(R"({"type": "array"})"), "s.type must be \"object\", not \"array\"");
  EXPECT_EQ(error_of(R"({"type": "object"})"), "s.properties must be an object with at least one key");
  EXPECT_EQ(error_of(R"({"anyOf": [], "properties": {"a": {"type": "string"}}})"),
            "s.anyOf is not supported; an object with properties is");
  EXPECT_EQ(property_error("true"), "s.properties.a: a schema must be an object, not true");
  EXPECT_EQ(property_error("{}"), "s.properties.a: the type is missing");
  EXPECT_EQ(property_error(R"({"type": "null"})"),
            "s.properties.a.type: \"null\" is not supported; use string, number, integer, boolean, array or "
            "object");
  EXPECT_EQ(property_error(R"({"type": ["string", "number"]})"),
            "s.properties.a.type is not supported, except for one type and \"null\"; give one type");
  EXPECT_EQ(property_error(R"({"anyOf": [{"type": "number"}, {"type": "string"}]})"),
            "s.properties.a.anyOf is not supported, except for one type and null; give one type");
  EXPECT_EQ(
      property_error(
          R"({"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^\\d+$"}, {"type": "null"}]})"),
      "none")
      << "a Decimal of Pydantic";
  EXPECT_EQ(property_error(R"({"type": "number", "exclusiveMinimum": 5, "maximum": 5})"),
            "s.properties.a: no number lies between the bounds");
  EXPECT_EQ(property_error(R"({"type": "number", "minimum": 5, "maximum": 5})"), "none");
  EXPECT_EQ(property_error(R"({"type": "string", "minLength": 3, "maxLength": 2})"),
            "s.properties.a.minLength is more than maxLength; no text is so long");
  EXPECT_EQ(property_error(R"({"anyOf": [{"type": "number", "maxLength": 5}, {"type": "null"}]})"),
            "s.properties.a.anyOf[0].maxLength is not supported; remove it");
  EXPECT_EQ(
      property_error(R"({"type": "string", "minimum": 5, "if": {}, "x-order": 3})"),
      "s.properties.a.minimum is not supported; remove it; s.properties.a.if is not supported; remove it");
  EXPECT_EQ(property_error(R"({"type": "number", "minimum": "0"})"),
            "s.properties.a.minimum must be a number, not \"0\"");
  EXPECT_EQ(property_error(R"({"type": "number", "minimum": 2, "exclusiveMaximum": 1})"),
            "s.properties.a: no number lies between the bounds");
  EXPECT_EQ(
      property_error(R"({"type": "string", "format": "phone"})"),
      "s.properties.a.format: \"phone\" is not supported; use date, date-time, time, uuid, ipv4, email, "
      "uri, or a pattern");
  EXPECT_EQ(property_error(R"({"type": "string", "pattern": "^a|b$"})"),
            "s.properties.a.pattern: ^ or $ belongs to one side of the | only; put the alternatives in "
            "parentheses");
  EXPECT_EQ(property_error(R"-({"type": "string", "pattern": "^([(|]|b)[|]$"})-"), "none");
  EXPECT_NE(property_error(R"-({"type": "string", "pattern": "(?=a)"})-").find("s.properties.a.pattern: "),
            std::string::npos);
  EXPECT_EQ(property_error(R"({"type": "array"})"),
            "s.properties.a.items is missing; give {\"type\": \"string\"}");
  EXPECT_EQ(
      property_error(R"({"type": "array", "items": {"type": "number"}})"),
      "s.properties.a.items.type must be \"string\" or \"object\"; lists can only be of texts or objects");
  EXPECT_EQ(property_error(R"({"type": "array", "items": {"type": "string", "enum": ["a"]}})"),
            "s.properties.a.items.enum is not supported; lists can only be of texts or objects");
  EXPECT_EQ(property_error(R"({"enum": [1, 2]})"),
            "s.properties.a.enum: 1 is not supported; options can only be texts");
  EXPECT_EQ(property_error(R"({"enum": ["x", "x"]})"),
            "s.properties.a.enum: \"x\" appears twice; remove one");
  EXPECT_EQ(property_error(R"({"$ref": "other.json#/a"})"),
            "s.properties.a.$ref: \"other.json#/a\" is not a part of this schema; only such references "
            "(#/$defs/…) can be followed");
  EXPECT_EQ(property_error(R"({"$ref": "#/$defs/A", "minimum": 1})"),
            "s.properties.a.minimum is not supported; beside $ref write all in one schema");
  EXPECT_EQ(
      error_of(R"({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}})"),
      "s.properties.a.$ref: the references go in a circle");
  EXPECT_EQ(property_error(R"({"type": "object", "properties": {}})"),
            "s.properties.a.properties must be an object with at least one key");
}

TEST(JsonSchema, AllMistakesAreToldAtOnce) {
  EXPECT_EQ(
      error_of(R"({"properties": {"a": {"type": "object"}, "b": {"type": "string"}, "c": {"type": "array"},
                        "d": {"type": "number", "not": {}}}})"),
      "s.properties.a.properties must be an object with at least one key; s.properties.c.items is missing; "
      "give {\"type\": \"string\"}; s.properties.d.not is not "
      "supported; remove it");
}

TEST(JsonSchema, BoundsLengthsAndFormatsAreEnforced) {
  const auto read = [](const std::string& schema, const std::string& written) {
    const auto attributes =
        read_json_schema(ordered_json::parse(R"({"properties": {"a": )" + schema + "}}"), "");
    const RowAnswer value = read_value(attributes[0], written, false);
    return std::string(is_found(value.value) ? "ok" : value.note);
  };
  const std::string range = R"({"type": "number", "minimum": 0, "exclusiveMaximum": 10})";
  EXPECT_EQ(read(range, " 9.5"), "ok");
  EXPECT_EQ(read(range, " 0"), "ok");
  EXPECT_EQ(read(range, " -1"), "less than 0: \"-1\"");
  EXPECT_EQ(read(range, " 10"), "not below 10: \"10\"");
  const std::string step = R"({"type": "integer", "exclusiveMinimum": 0, "maximum": 100, "multipleOf": 5})";
  EXPECT_EQ(read(step, " 25"), "ok");
  EXPECT_EQ(read(step, " 0"), "not above 0: \"0\"");
  EXPECT_EQ(read(step, " 105"), "more than 100: \"105\"");
  EXPECT_EQ(read(step, " 7"), "not a multiple of 5: \"7\"");
  const std::string cents = R"({"type": "number", "multipleOf": 0.01})";
  EXPECT_EQ(read(cents, " 1200.55"), "ok");
  EXPECT_EQ(read(cents, " 10000000.01"), "ok");
  EXPECT_EQ(read(cents, " 10000000.005"), "not a multiple of 0.01: \"10000000.005\"");
  const std::string text = R"({"type": "string", "minLength": 2, "maxLength": 4})";
  EXPECT_EQ(read(text, " \"äöü\""), "ok") << "characters, not bytes";
  EXPECT_EQ(read(text, " \"a\""), "fewer than 2 characters: \"a\"");
  EXPECT_EQ(read(text, " \"abcde\""), "more than 4 characters: \"abcde\"");
  const std::string list =
      R"({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2, "uniqueItems": true})";
  EXPECT_EQ(read(list, " [\"a\", \"b\"]"), "ok");
  EXPECT_EQ(read(list, " [\"a\", \"a\"]"), "an entry twice: \"[\"a\", \"a\"]\"");
  EXPECT_EQ(read(list, " [\"a\", \"b\", \"c\"]").substr(0, 19), "more than 2 entries");
  const auto format = [&](const std::string& name, const std::string& value) {
    return read(R"({"type": "string", "format": ")" + name + "\"}", " \"" + value + "\"") == "ok";
  };
  EXPECT_TRUE(format("date-time", "2026-03-01T12:30:00Z"));
  EXPECT_TRUE(format("date-time", "2026-03-01T12:30+01:00"));
  EXPECT_FALSE(format("date-time", "2026-03-01"));
  EXPECT_TRUE(format("date-time", "2024-02-29T23:59:59Z"));
  for (const char* text : {"2026-02-30T12:30:00Z", "2026-13-01T12:30:00Z", "2026-03-01T25:30:00Z",
                           "2026-03-01T12:60:00Z", "2026-03-01T12:30:61Z", "2026-03-01T12:30+01:75"})
    EXPECT_FALSE(format("date-time", text)) << text;
  EXPECT_TRUE(format("time", "23:59"));
  EXPECT_FALSE(format("time", "24:00"));
  EXPECT_FALSE(format("time", "12:99"));
  EXPECT_TRUE(format("time", "12:30"));
  EXPECT_TRUE(format("email", "a.b@c.de"));
  EXPECT_FALSE(format("email", "a.b"));
  EXPECT_TRUE(format("uuid", "123e4567-e89b-12d3-a456-426614174000"));
  EXPECT_TRUE(format("uri", "https://example.com/a?b"));
  EXPECT_FALSE(format("ipv4", "1.2.3"));
}

TEST(JsonSchema, TheRootMayBeAReference) {
  EXPECT_EQ(error_of(R"({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"type": "string"}}}}})"),
            "none");
}

}  // namespace
}  // namespace sheaf
