#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/files/job_file.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sheaf {
namespace {

/// The error of a schema with one category "A" of these lines, without the folder.
std::string nested_error(const std::string& attributes) {
  TempFolder folder;
  const std::string path = folder.write("s.yaml", "categories:\n  A:\n" + attributes);
  std::string message = error_of([&] { read_schema(path); });
  for (size_t at = message.find(path); at != std::string::npos; at = message.find(path))
    message.replace(at, path.size(), "s.yaml");
  return message;
}

TEST(NestedSchema, ReadsObjectsAndListsOfObjects) {
  TempFolder folder;
  const Schema schema = read_schema(folder.write("s.yaml", R"(attributes:
  price: {type: number, unit: EUR}
  box: {type: object, attributes: [{name: width, type: number}, {name: height, type: number}]}
categories:
  A:
    - name: variants
      type: list
      description: one for each size on offer
      anchor: size
      max_entries: 8
      attributes:
        - {name: code, type: span}
        - {name: size}
        - price
        - box
        - {name: colours, type: list}
    - box
    - {name: flavours, type: list}
    - {name: parts, type: list, attributes: [{name: weight, type: number}, {name: what, type: span}]}
)"));
  const std::vector<Attribute>& attributes = schema.categories[0].attributes;
  ASSERT_EQ(attributes.size(), 4u);
  const Attribute& variants = attributes[0];
  EXPECT_EQ(variants.type, ValueType::entries);
  EXPECT_EQ(variants.max_entries, 8);
  EXPECT_EQ(variants.anchor, 1u);
  ASSERT_EQ(variants.fields.size(), 5u);
  EXPECT_EQ(variants.fields[2].unit, "EUR");
  EXPECT_EQ(variants.fields[3].type, ValueType::object);
  EXPECT_EQ(variants.fields[3].fields.size(), 2u);
  EXPECT_EQ(variants.fields[4].type, ValueType::list);
  EXPECT_EQ(attributes[1].type, ValueType::object);
  EXPECT_EQ(attributes[1].fields[1].name, "height");
  EXPECT_EQ(attributes[2].type, ValueType::list);
  EXPECT_FALSE(attributes[2].nested());
  EXPECT_EQ(attributes[3].anchor, 1u);  // the first text, which a span is too
  EXPECT_EQ(attributes[3].max_entries, kUsualEntries);
}

TEST(NestedSchema, LocalesAndSpansOfFieldsAreSetToo) {
  Attribute price{"price", ""}, code{"code", ""}, list{"variants", ""};
  price.type = ValueType::number;
  code.type = ValueType::span;
  list.type = ValueType::entries;
  list.fields = {code, price};
  Schema schema{{{"A", {list}}}};
  add_locale(schema, *find_locale("de"));
  free_spans(schema);
  EXPECT_EQ(schema.categories[0].attributes[0].fields[1].locale, *find_locale("de"));
  EXPECT_EQ(schema.categories[0].attributes[0].fields[0].type, ValueType::text);
}

TEST(NestedSchema, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(
      nested_error(
          "    - name: v\n      type: list\n      anchor: sise\n      attributes:\n        - {name: size}\n"),
      "s.yaml:5: the anchor \"sise\" of \"v\" is not one of its attributes; did you mean \"size\"?");
  EXPECT_EQ(nested_error("    - name: v\n      type: list\n      anchor: p\n      attributes:\n"
                         "        - {name: p, type: number}\n"),
            "s.yaml:5: the anchor \"p\" of \"v\" must be a text, span, enum, date or pattern");
  EXPECT_EQ(nested_error("    - {name: v, type: list, attributes: [{name: p, type: number}]}\n"),
            "s.yaml:3: no attribute could tell the entries of \"v\" apart; add a text, span, enum, date or "
            "pattern");
  EXPECT_EQ(nested_error("    - {name: v, type: object}\n"),
            "s.yaml:3: the object \"v\" needs attributes: a list of its attributes");
  EXPECT_EQ(nested_error("    - {name: v, type: list, attributes: {a: b}}\n"),
            "s.yaml:3: the attributes of \"v\" must be a list, not a map");
  EXPECT_EQ(nested_error("    - {name: v, type: list, attributes: null}\n"),
            "s.yaml:3: attribute \"v\" needs attributes: a list of its attributes");
  EXPECT_EQ(nested_error("    - {name: v, type: object, attributes: []}\n"),
            "s.yaml:3: attribute \"v\" has no attributes of its own; give it at least one");
  EXPECT_EQ(nested_error("    - {name: v, type: object, attributes: [{name: a}, {name: a}]}\n"),
            "s.yaml:3: attribute \"a\" appears twice in \"v\"; remove one");
  EXPECT_EQ(nested_error("    - {name: v, attributes: [{name: a}]}\n"),
            "s.yaml:3: \"v\" has attributes of its own; set type: object or type: list, or remove them");
  EXPECT_EQ(
      nested_error("    - {name: v, type: object, anchor: a, attributes: [{name: a}]}\n"),
      "s.yaml:3: anchor belongs to a list of objects; give \"v\" type: list and attributes, or remove it");
  EXPECT_EQ(
      nested_error("    - {name: v, type: list, max_entries: 3}\n"),
      "s.yaml:3: max_entries belongs to a list of objects; give \"v\" type: list and attributes, or remove "
      "it");
  EXPECT_NE(nested_error("    - {name: v, type: list, max_entries: 0, attributes: [{name: a}]}\n")
                .find("max_entries"),
            std::string::npos);
  EXPECT_EQ(nested_error("    - {name: v, type: object, attributes: [{name: a}]}\n    - {name: v.a}\n"),
            "s.yaml:4: attribute \"v.a\" reads as a path into \"v\"; rename it");
}

TEST(NestedSchema, AllMistakesAreToldInTheOrderOfTheirLines) {
  EXPECT_EQ(nested_error("    - name: v\n      type: array\n      anchor: szie\n      attributes:\n"
                         "        - {name: size}\n        - {name: price, type: nubmer, unti: EUR}\n"
                         "        - {name: size}\n    - priec\n  B:\n    - {name: b, options: [x]}\n"),
            "s.yaml:4: attribute.type cannot be \"array\"; did you mean \"list\"?; "
            "s.yaml:5: the anchor \"szie\" of \"v\" is not one of its attributes; did you mean \"size\"?; "
            "s.yaml:8: attribute.type cannot be \"nubmer\"; did you mean \"number\"?; "
            "s.yaml:8: unknown key \"unti\"; did you mean \"unit\"?; "
            "s.yaml:9: attribute \"size\" appears twice in \"v\"; remove one; "
            "s.yaml:10: attribute \"priec\" is not defined under attributes; define it there or write {name: "
            "priec, type: text}; "
            "s.yaml:12: attribute \"b\" has options but is not an enum; set type: enum or remove them");
  std::string many;
  for (int i = 0; i < 50; ++i) many += fmt::format("    - {{name: a{}, type: x}}\n", i);
  const std::string error = nested_error(many);
  EXPECT_NE(error.find("s.yaml:22: "), std::string::npos) << error;
  EXPECT_EQ(error.find("s.yaml:23: "), std::string::npos) << error;
  EXPECT_TRUE(error.ends_with(": there are more mistakes; correct these first")) << error;
}

TEST(NestedSchema, TypesOfOtherFormatsAreSuggested) {
  const auto suggested = [](const std::string& type) {
    const std::string error = nested_error("    - {name: v, type: " + type + "}\n");
    const size_t at = error.find("did you mean \"");
    return at == std::string::npos ? error : error.substr(at + 14, error.size() - at - 16);
  };
  EXPECT_EQ(suggested("string"), "text");
  EXPECT_EQ(suggested("bool"), "boolean");
  EXPECT_EQ(suggested("Array"), "list");
  EXPECT_EQ(suggested("interger"), "integer");
  EXPECT_EQ(suggested("int"), "integer");
  EXPECT_EQ(suggested("float"), "number");
  EXPECT_EQ(suggested("sting"), "text");
  EXPECT_EQ(suggested("dict"), "object");
  EXPECT_NE(suggested("qqq").find("; use one of text, span,"), std::string::npos);
}

TEST(NestedSchema, TheAnchorIsTheFirstTextOrElseTheFirstThatCanBeOne) {
  const auto anchor = [](const std::string& fields) {
    TempFolder folder;
    const std::string text = "categories: {A: [{name: v, type: list, attributes: [" + fields + "]}]}\n";
    const Attribute list = read_schema(folder.write("s.yaml", text)).categories[0].attributes[0];
    return list.fields[list.anchor].name;
  };
  const std::string number = "{name: n, type: number}, ", day = "{name: d, type: date}, ",
                    kind = "{name: k, type: enum, options: [x, y]}";
  EXPECT_EQ(anchor(number + day + "{name: t}"), "t");
  EXPECT_EQ(anchor(number + day + kind), "d");
  EXPECT_EQ(anchor(number + kind), "k");
}

TEST(NestedSchema, DecimalsAreThoseOfAJsonSchema) {
  TempFolder folder;
  const Schema schema =
      read_schema(folder.write("s.yaml", "categories: {A: [{name: price, type: number, decimals: 2}]}\n"));
  EXPECT_EQ(schema.categories[0].attributes[0].limits.multiple_of, 0.01);
  EXPECT_EQ(nested_error("    - {name: p, type: integer, decimals: 2}\n"),
            "s.yaml:3: attribute \"p\" has decimals but is not a number; set type: number or remove them");
  EXPECT_EQ(nested_error("    - {name: p, type: number, decimals: 12}\n"),
            "s.yaml:3: attribute.decimals must be at most 9, not 12");
}

TEST(NestedSchema, FourLevelsAreTheMost) {
  const auto nested = [](int levels) {
    std::string text = "{name: a1}";
    for (int level = 2; level <= levels; ++level)
      text = fmt::format("{{name: a{}, type: object, attributes: [{}]}}", level, text);
    return "    - " + text + "\n";
  };
  EXPECT_EQ(nested_error(nested(4)), "no error");
  EXPECT_EQ(
      nested_error(nested(5)),
      "s.yaml:3: \"a2\" is nested deeper than 4 levels; make its attributes those of the one around it");
  EXPECT_EQ(nested_error(nested(10)).substr(0, 12), "s.yaml:3: \"a");
}

TEST(NestedSchema, SharedDefinitionsMayStandInAnyOrder) {
  TempFolder folder;
  const auto read = [&](const std::string& text) { return read_schema(folder.write("s.yaml", text)); };
  const Schema schema = read(
      "attributes:\n  box: {type: object, attributes: [side]}\n"
      "  side: {type: number, unit: cm}\ncategories:\n  A: [side, box]\n");
  EXPECT_EQ(schema.categories[0].attributes[1].fields[0].unit, "cm");
  EXPECT_EQ(read("categories:\n  A: [side]\nattributes:\n  side: {type: number}\n")
                .categories[0]
                .attributes[0]
                .type,
            ValueType::number);
  const auto error = [&](const std::string& text) { return error_of([&] { read(text); }); };
  EXPECT_NE(error("attributes:\n  a: {type: object, attributes: [b]}\n  b: {type: list, attributes:\n"
                  "    [a, {name: c}]}\ncategories:\n  A: [a]\n")
                .find(":4: attribute \"a\" contains itself; sheaf fills objects of a fixed depth: write out "
                      "the levels"),
            std::string::npos);
  // A long chain, each defined by the one below it.
  std::string chain = "attributes:\n";
  for (int i = 0; i < 5000; ++i)
    chain += fmt::format("  a{}: {{type: object, attributes: [a{}]}}\n", i, i + 1);
  EXPECT_NE(error(chain + "  a5000: {}\ncategories:\n  A: [a0]\n").find("deeper than 4 levels"),
            std::string::npos);
}

TEST(NestedSchema, SharedDefinitionsHaveTheSameLimits) {
  TempFolder folder;
  const auto error = [&](const std::string& text) {
    return error_of([&] { read_schema(folder.write("s.yaml", text)); });
  };
  EXPECT_NE(error("attributes:\n  a: {type: object, attributes: [a]}\ncategories:\n  A: [a]\n")
                .find(":2: attribute \"a\" contains itself"),
            std::string::npos);
  std::string text = "attributes:\n  a: {type: object, attributes: [x";
  for (int i = 0; i < 998; ++i) text += fmt::format(", {{name: f{}}}", i);
  text.replace(text.find("[x"), 2, "[{name: x}");
  text += "]}\n";
  EXPECT_EQ(error(text + "categories:\n  A: [a]\n"), "no error");
  EXPECT_NE(error(text + "  b: {type: object, attributes: [a, {name: c}]}\ncategories:\n  A: [b]\n")
                .find(":3: attribute \"b\" has more than 1000 attributes of its own; leave out some"),
            std::string::npos);
  std::string deep = "attributes:\n  a1: {}\n";
  for (int i = 2; i <= 5; ++i) deep += fmt::format("  a{}: {{type: object, attributes: [a{}]}}\n", i, i - 1);
  EXPECT_NE(
      error(deep + "categories:\n  A: [a5]\n").find(":6: attribute \"a5\" is nested deeper than 4 levels"),
      std::string::npos);
}

}  // namespace
}  // namespace sheaf
