// Objects in objects and lists of objects in a JSON Schema, as Pydantic and zod-to-json-schema write them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/task/schema.h"
#include "core/task/value.h"
#include "core/text/json_lines.h"
#include "tests/errors.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

std::vector<Attribute> read_nested(const std::string& schema) {
  return read_json_schema(ordered_json::parse(schema), "");
}

std::string nested_error_in(const std::string& schema) {
  return sheaf::error_of([&] { read_json_schema(ordered_json::parse(schema), "s"); });
}

/// The type of an attribute and what is in it: "variants[size price{amount}]".
std::string nested_outline(const std::vector<Attribute>& attributes) {
  std::string text;
  for (const Attribute& attribute : attributes) {
    text += (text.empty() ? "" : " ") + attribute.name;
    if (attribute.type == ValueType::object) text += "{" + nested_outline(attribute.fields) + "}";
    if (attribute.type == ValueType::entries) text += "[" + nested_outline(attribute.fields) + "]";
  }
  return text;
}

/// What Pydantic 2.14 prints for
///   class Product(BaseModel):  # extra="forbid"
///     name: str
///     maker: Maker | None = None
///     variants: list[Variant] = Field(max_length=8, description="one for each size")
///     notes: list[str] = []
const char* const kPydantic = R"({"$defs": {
  "Colour": {"enum": ["red", "blue"], "title": "Colour", "type": "string"},
  "Maker": {"properties": {"name": {"title": "Name", "type": "string"}, "city": {"anyOf": [{"type": "string"},
    {"type": "null"}], "title": "City"}}, "required": ["name", "city"], "title": "Maker", "type": "object"},
  "Price": {"description": "What it costs.", "properties": {"amount": {"minimum": 0, "multipleOf": 0.01, "title": "Amount",
    "type": "number"}, "currency": {"default": "EUR", "enum": ["EUR", "USD"], "title": "Currency", "type": "string"}},
    "required": ["amount"], "title": "Price", "type": "object"},
  "Variant": {"properties": {"size": {"description": "as written", "title": "Size", "type": "string"},
    "colour": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}], "default": null},
    "price": {"$ref": "#/$defs/Price"},
    "old_price": {"anyOf": [{"$ref": "#/$defs/Price"}, {"type": "null"}], "default": null, "description": "before the sale"},
    "in_stock": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": null, "title": "In Stock"},
    "available_from": {"anyOf": [{"format": "date", "type": "string"}, {"type": "null"}], "default": null,
      "title": "Available From"}}, "required": ["size", "price"], "title": "Variant", "type": "object"}},
 "additionalProperties": false, "properties": {"name": {"title": "Name", "type": "string"},
  "maker": {"anyOf": [{"$ref": "#/$defs/Maker"}, {"type": "null"}], "default": null},
  "variants": {"description": "one for each size", "items": {"$ref": "#/$defs/Variant"}, "maxItems": 8, "title": "Variants",
    "type": "array"},
  "notes": {"default": [], "items": {"type": "string"}, "title": "Notes", "type": "array"}},
 "required": ["name", "variants"], "title": "Product", "type": "object"})";

TEST(NestedJsonSchema, ReadsWhatPydanticPrints) {
  const std::vector<Attribute> attributes = read_nested(kPydantic);
  EXPECT_EQ(
      nested_outline(attributes),
      "name maker{name city} variants[size colour price{amount currency} old_price{amount currency} in_stock "
      "available_from] notes");
  const Attribute &maker = attributes[1], &variants = attributes[2];
  EXPECT_TRUE(maker.nullable);
  EXPECT_FALSE(maker.fields[0].nullable);
  EXPECT_TRUE(maker.fields[1].nullable);
  EXPECT_EQ(variants.description, "one for each size");
  EXPECT_FALSE(variants.nullable);
  EXPECT_EQ(variants.max_entries, 8);
  EXPECT_EQ(variants.anchor, 0u);
  EXPECT_EQ(variants.fields[1].type, ValueType::enumeration);
  EXPECT_EQ(variants.fields[2].description, "What it costs.");
  EXPECT_EQ(variants.fields[2].fields[0].limits.multiple_of, 0.01);
  EXPECT_EQ(variants.fields[3].description, "before the sale");
  EXPECT_TRUE(variants.fields[3].nullable);
  EXPECT_EQ(variants.fields[4].type, ValueType::boolean);
  EXPECT_EQ(variants.fields[5].type, ValueType::date);
}

/// What zod-to-json-schema 3 prints for zodToJsonSchema(Order, "Order"), where
///   const Address = z.object({street: z.string(), city: z.string().nullable()});
///   const Line = z.object({sku: z.string().regex(/^[A-Z]{2}\d{4}$/), quantity: z.number().int().positive(),
///                          price: z.number().min(0).optional(), kind: z.enum(["new", "used"]).nullable()});
///   const Order = z.object({customer: z.object({name: z.string(), home: Address, work: Address.nullable()}),
///                           lines: z.array(Line).max(50), note: z.string().nullish()});
const char* const kZod =
    R"({"$ref": "#/definitions/Order", "definitions": {"Order": {"type": "object", "properties": {
  "customer": {"type": "object", "properties": {"name": {"type": "string"},
    "home": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": ["string", "null"]}},
      "required": ["street", "city"], "additionalProperties": false},
    "work": {"anyOf": [{"$ref": "#/definitions/Order/properties/customer/properties/home"}, {"type": "null"}]}},
    "required": ["name", "home", "work"], "additionalProperties": false},
  "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string", "pattern": "^[A-Z]{2}\\d{4}$"},
    "quantity": {"type": "integer", "exclusiveMinimum": 0}, "price": {"type": "number", "minimum": 0},
    "kind": {"anyOf": [{"type": "string", "enum": ["new", "used"]}, {"type": "null"}]}},
    "required": ["sku", "quantity", "kind"], "additionalProperties": false}, "maxItems": 50},
  "note": {"type": ["string", "null"]}}, "required": ["customer", "lines"], "additionalProperties": false}},
 "$schema": "http://json-schema.org/draft-07/schema#"})";

TEST(NestedJsonSchema, ReadsWhatZodToJsonSchemaPrints) {
  const std::vector<Attribute> attributes = read_nested(kZod);
  EXPECT_EQ(nested_outline(attributes),
            "customer{name home{street city} work{street city}} lines[sku quantity price kind] note");
  EXPECT_FALSE(attributes[0].fields[1].nullable);
  EXPECT_TRUE(attributes[0].fields[2].nullable);
  const Attribute& lines = attributes[1];
  EXPECT_EQ(lines.max_entries, 50);
  EXPECT_EQ(lines.anchor, 0u) << "no text, so the pattern";
  EXPECT_EQ(lines.fields[1].limits.above, 0.0);
  EXPECT_TRUE(lines.fields[3].nullable);
}

TEST(NestedJsonSchema, NamesTheAnchor) {
  const std::string list =
      R"("items": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "number"},
    "b": {"type": "string"}}}}}})";
  EXPECT_EQ(read_nested(R"({"properties": {"l": {"type": "array", )" + list)[0].anchor, 0u);
  EXPECT_EQ(read_nested(R"({"properties": {"l": {"type": "array", "x-anchor": "b", )" + list)[0].anchor, 2u);
  EXPECT_EQ(nested_error_in(R"({"properties": {"l": {"type": "array", "x-anchor": "c", )" + list),
            "s.properties.l.x-anchor: \"c\" is not a key of the objects of \"l\"; use one of a, n, b");
  EXPECT_EQ(
      nested_error_in(R"({"properties": {"l": {"type": "array", "x-anchor": "n", )" + list),
      "s.properties.l.x-anchor: \"n\" cannot tell the objects of \"l\" apart; name a string or an enum");
  EXPECT_EQ(
      nested_error_in(
          R"({"properties": {"l": {"type": "array", "items": {"type": "object", "properties": {"n": {"type":
      "number"}}}}}})"),
      "s.properties.l.items: no key could tell the objects of \"l\" apart; add a string or an enum");
}

TEST(NestedJsonSchema, TheAnchorMayStandInTheItems) {
  const auto anchor = [](const std::string& beside, const std::string& in) {
    const std::string entry = R"({"type": "object", )" + in +
                              R"("properties": {"a": {"type": "string"}, "b": {"type": "string"}}})";
    const Attribute list = read_nested(R"({"properties": {"l": {"anyOf": [{"type": "array", "items":
        {"$ref": "#/$defs/E"}}, {"type": "null"}])" +
                                       beside + R"(}}, "$defs": {"E": )" + entry + "}}")[0];
    return list.fields[list.anchor].name;
  };
  EXPECT_EQ(anchor("", ""), "a");
  EXPECT_EQ(anchor("", R"("x-anchor": "b", )"), "b");
  EXPECT_EQ(anchor(R"(, "x-anchor": "b")", ""), "b");
  EXPECT_EQ(anchor(R"(, "x-anchor": "b")", R"("x-anchor": "b", )"), "b");
  EXPECT_EQ(
      sheaf::error_of([&] { anchor(R"(, "x-anchor": "a")", R"("x-anchor": "b", )"); }),
      "properties.l.anyOf[0].items.x-anchor is \"b\", but \"a\" stands beside what refers to it; remove "
      "one");
  EXPECT_EQ(sheaf::error_of([&] { anchor("", R"("x-anchor": "B", )"); }),
            "properties.l.anyOf[0].items.x-anchor: \"B\" is not a key of the objects of \"l\"; did you mean "
            "\"b\"?");
}

TEST(NestedJsonSchema, ItemsAreCounted) {
  const auto read = [](const std::string& limits, const std::string& written) {
    const Attribute list = read_nested(R"({"properties": {"l": {"type": "array", )" + limits +
                                       R"("items": {"properties": {"a": {"type": "string"}}}}}})")[0];
    const RowAnswer value = read_member(list, read_object(R"("l": )" + written + "}"), false);
    return (is_nested(value.value) ? "kept " : "null ") + value.note;
  };
  const std::string two = R"([{"a": "x"}, {"a": "y"}])", alike = R"([{"a": "x"}, {"a": "x"}])";
  EXPECT_EQ(read(R"("minItems": 2, )", two), "kept ");
  EXPECT_EQ(read(R"("minItems": 3, )", two), "null fewer than 3 entries");
  EXPECT_EQ(read(R"("uniqueItems": true, )", two), "kept ");
  EXPECT_EQ(read(R"("uniqueItems": true, )", alike), "null an entry twice");
  EXPECT_EQ(read("", alike), "kept ");
  EXPECT_EQ(nested_error_in(R"({"properties": {"l": {"type": "array", "minItems": 3, "maxItems": 2, "items":
      {"properties": {"a": {"type": "string"}}}}}})"),
            "s.properties.l.minItems is more than maxItems; no list has so many entries");
}

TEST(NestedJsonSchema, DefinitionsMayStandAnywhere) {
  const std::string use = R"("properties": {"a": {"$ref": "#/$defs/A"}})";
  const std::string defined =
      R"("$defs": {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
      "B": {"type": "integer"}})";
  EXPECT_EQ(nested_outline(read_nested("{" + use + ", " + defined + "}")), "a{b}");
  EXPECT_EQ(nested_outline(read_nested("{" + defined + ", " + use + "}")), "a{b}");
  EXPECT_EQ(nested_error_in(R"({"$defs": {"Price": {"type": "number"}}, "properties": {"a": {"$ref":
      "#/$defs/Prise"}}})"),
            "s.properties.a.$ref: \"#/$defs/Prise\" is not a part of this schema; did you mean "
            "\"#/$defs/Price\"?");
}

TEST(NestedJsonSchema, RefusesObjectsInsideOfThemselves) {
  // What Pydantic prints for class Node: name: str; children: list["Node"] = [].
  EXPECT_EQ(
      nested_error_in(
          R"({"$defs": {"Node": {"properties": {"name": {"title": "Name", "type": "string"}, "children": {"default":
      [], "items": {"$ref": "#/$defs/Node"}, "title": "Children", "type": "array"}}, "required": ["name"], "title": "Node",
      "type": "object"}}, "$ref": "#/$defs/Node"})"),
      "s.properties.children.items: the definition #/$defs/Node contains itself; sheaf fills objects of a "
      "fixed depth: write out the levels");
  EXPECT_EQ(
      nested_error_in(
          R"({"properties": {"a": {"type": "string"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}})"),
      "s.properties.next.anyOf[0]: the definition # contains itself; sheaf fills objects of a fixed depth: "
      "write out the levels");
  EXPECT_EQ(
      nested_error_in(
          R"({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "properties": {"a": {"$ref":
      "#/$defs/A"}}})"),
      "s.properties.a.$ref: the references go in a circle");
}

TEST(NestedJsonSchema, RefusesWhatIsTooDeepOrTooLarge) {
  const auto nested = [](int levels) {
    std::string schema = R"({"type": "string"})";
    for (int i = 0; i < levels; ++i) schema = R"({"type": "object", "properties": {"k": )" + schema + "}}";
    return schema;
  };
  EXPECT_EQ(nested_outline(read_nested(nested(4))), "k{k{k{k}}}");
  EXPECT_EQ(nested_error_in(nested(5)),
            "s.properties.k.properties.k.properties.k.properties.k.properties: objects are at most 4 "
            "levels deep; make these keys of the object around them");
  ordered_json many;
  for (int i = 0; i < 600; ++i) many[fmt::format("k{}", i)] = {{"type", "string"}};
  const ordered_json twice = {{"properties",
                               {{"a", {{"type", "object"}, {"properties", many}}},
                                {"b", {{"type", "object"}, {"properties", many}}}}}};
  EXPECT_EQ(nested_error_in(twice.dump()),
            "s.properties.b.properties: the schema has more than 1000 keys, those of inner objects counted");
}

TEST(NestedJsonSchema, NamesThePlaceOfWhatItCannotRead) {
  const auto inner = [&](const std::string& schema) {
    return nested_error_in(R"({"properties": {"o": {"type": "object", "properties": {"a": )" + schema +
                           "}}}}");
  };
  EXPECT_EQ(
      inner(R"({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})"),
      "s.properties.o.properties.a.items.items is not supported; lists can only be of texts or objects");
  EXPECT_EQ(inner(R"({"type": "array", "items": {"type": "number"}})"),
            "s.properties.o.properties.a.items.type must be \"string\" or \"object\"; lists can only be of "
            "texts or objects");
  EXPECT_EQ(
      inner(
          R"({"anyOf": [{"type": "object", "properties": {"x": {"type": "string"}}}, {"type": "string"}]})"),
      "s.properties.o.properties.a.anyOf is not supported, except for one type and null; give one type");
  // z.record(z.number()) and Dict[str, int]
  EXPECT_EQ(inner(R"({"type": "object", "additionalProperties": {"type": "integer"}})"),
            "s.properties.o.properties.a.properties must be an object with at least one key");
  EXPECT_EQ(
      inner(
          R"({"type": "array", "maxItems": 5000, "items": {"type": "object", "properties": {"x": {"type": "string"}}}})"),
      "s.properties.o.properties.a.maxItems of a list of objects must be a whole number from 1 to 1000");
  EXPECT_EQ(inner(R"({"type": "object", "properties": {"x": {"type": "string"}}, "minProperties": 1})"),
            "s.properties.o.properties.a.minProperties is not supported; an object with properties is");
  EXPECT_EQ(inner(R"({"$ref": "other.json#/A"})"),
            "s.properties.o.properties.a.$ref: \"other.json#/A\" is not a part of this schema; only such "
            "references "
            "(#/$defs/…) can be followed");
  EXPECT_EQ(inner(R"({"type": ["object", "null"], "properties": {"x": {"type": "string"}}})"), "no error");
}

TEST(NestedJsonSchema, MistakesOfAFileCarryTheirLines) {
  const std::string text = R"({"properties": {
  "a": {"type": "text"},
  "l": {"type": "array", "x-anchor": "szie",
        "items": {"$ref": "#/$defs/V"}},
  "b": {"type": "string", "minimum": 1,
        "if": {}}},
 "$defs": {"V": {"type": "object", "properties": {
   "size": {"type": "string"},
   "price": {"type": "number",
             "minimum": "\"0\n"}}}}})";
  const ordered_json schema = ordered_json::parse(text);
  const JsonFile file{"s.json", JsonLines(text, schema)};
  EXPECT_EQ(sheaf::error_of([&] { read_json_schema(schema, "", &file); }),
            "s.json:2: properties.a.type: \"text\" is not supported; did you mean \"string\"?; "
            "s.json:3: properties.l.x-anchor: \"szie\" is not a key of the objects of \"l\"; did you mean "
            "\"size\"?; "
            "s.json:5: properties.b.minimum is not supported; remove it; "
            "s.json:6: properties.b.if is not supported; remove it; "
            "s.json:10: properties.l.items.properties.price.minimum must be a number, not "
            "\"\\\"0\\n\"");
}

TEST(NestedJsonSchema, FollowsPointersThatAreEscaped) {
  const std::vector<Attribute> attributes =
      read_nested(R"({"$defs": {"a/b~c d": {"type": "integer"}}, "properties": {
      "x": {"$ref": "#/$defs/a~1b~0c%20d"}}})");
  EXPECT_EQ(attributes[0].type, ValueType::integer);
}

}  // namespace
}  // namespace sheaf
