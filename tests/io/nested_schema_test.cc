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
  return message.starts_with(path) ? "s.yaml" + message.substr(path.size()) : message;
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
      "s.yaml:5: the anchor \"sise\" of \"v\" is not one of its attributes");
  EXPECT_EQ(nested_error("    - name: v\n      type: list\n      anchor: p\n      attributes:\n"
                         "        - {name: p, type: number}\n"),
            "s.yaml:5: the anchor \"p\" of \"v\" must be a text, span, enum, date or pattern");
  EXPECT_EQ(
      nested_error("    - {name: v, type: list, attributes: [{name: p, type: number}]}\n"),
      "s.yaml:3: no attribute of the entries of \"v\" is a text that could tell them apart; add one, or "
      "name another with anchor");
  EXPECT_EQ(nested_error("    - {name: v, type: object}\n"),
            "s.yaml:3: the object \"v\" needs attributes: a list of its attributes");
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
            "s.yaml:3: attribute \"v.a\" reads as a path into \"v\"; rename it");
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

TEST(NestedSchema, SharedDefinitionsHaveTheSameLimits) {
  TempFolder folder;
  const auto error = [&](const std::string& text) {
    return error_of([&] { read_schema(folder.write("s.yaml", text)); });
  };
  // Each is defined by those above it, so that none can hold itself.
  EXPECT_NE(error("attributes:\n  a: {type: object, attributes: [a]}\ncategories:\n  A: [a]\n")
                .find(":2: attribute \"a\" is not defined under attributes"),
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
