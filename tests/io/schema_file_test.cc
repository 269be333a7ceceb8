#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/corpus/corpus.h"
#include "io/files/job_file.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sheaf {
namespace {

const char* const kGood = R"(attributes:
  Brand: {description: "the maker's name", type: text}
categories:
  Coffee:
    - Brand
    - {name: Roast, description: "roast level", type: enum, options: [light, medium, dark]}
    - {name: Net weight, type: number, description: "in ounces"}
    - {name: Flavours, type: list}
  Tea:
    - Brand
    - {name: Bags, type: enum, options: [20, 40]}
)";

std::string schema_error(const std::string& text) {
  TempFolder folder;
  const std::string path = folder.write("s.yaml", text);
  std::string message = error_of([&] { read_schema(path); });
  if (message.starts_with(path)) message = "s.yaml" + message.substr(path.size());
  return message;
}

TEST(SchemaFile, ReadsCategoriesInOrder) {
  TempFolder folder;
  const Schema schema = read_schema(folder.write("s.yaml", kGood));
  ASSERT_EQ(schema.categories.size(), 2u);
  const Category& coffee = schema.categories[0];
  EXPECT_EQ(coffee.name, "Coffee");
  ASSERT_EQ(coffee.attributes.size(), 4u);
  EXPECT_EQ(coffee.attributes[0].name, "Brand");
  EXPECT_EQ(coffee.attributes[0].description, "the maker's name");
  EXPECT_EQ(coffee.attributes[1].type, ValueType::enumeration);
  EXPECT_EQ(coffee.attributes[1].options, (std::vector<std::string>{"light", "medium", "dark"}));
  EXPECT_EQ(coffee.attributes[2].type, ValueType::number);
  EXPECT_EQ(coffee.attributes[3].type, ValueType::list);
  EXPECT_EQ(schema.categories[1].attributes[1].options, (std::vector<std::string>{"20", "40"}));
  EXPECT_NE(schema.find("Tea"), nullptr);
}

TEST(SchemaFile, ReadsAJsonSchema) {
  TempFolder folder;
  const std::string schema =
      R"({"title": "Coffee", "type": "object", "properties": {"brand": {"type": "string"}, "bags":
          {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "in the box"}}})";
  const Schema read = read_schema(folder.write("s.json", schema));
  ASSERT_EQ(read.categories.size(), 1u);
  EXPECT_EQ(read.categories[0].name, "Coffee");
  ASSERT_EQ(read.categories[0].attributes.size(), 2u);
  EXPECT_EQ(read.categories[0].attributes[1].name, "bags");
  EXPECT_EQ(read.categories[0].attributes[1].type, ValueType::integer);
  EXPECT_EQ(read.categories[0].attributes[1].description, "in the box");
  EXPECT_EQ(read_schema(folder.write("tea.json", R"({"properties": {"a": {"type": "string"}}})"))
                .categories[0]
                .name,
            "tea")
      << "without a title, the name of the file";
  EXPECT_EQ(read_schema(folder.write("own.json", R"({"categories": {"Tea": [{"name": "Brand"}]}})"))
                .categories[0]
                .name,
            "Tea")
      << "a schema of sheaf's own may be JSON too";
  const auto error = [&](const std::string& name, const std::string& text) {
    const std::string path = folder.write(name, text);
    const std::string message = error_of([&] { read_schema(path); });
    EXPECT_TRUE(message.starts_with(path)) << message;
    return message.substr(std::min(message.size(), path.size()));
  };
  EXPECT_EQ(error("e.json", R"({"properties": {"a": {"type": "string", "minimum": 1}}})"),
            ":1: properties.a.minimum is not supported; remove it");
  EXPECT_EQ(error("e.json", "[]"), ": a JSON Schema is an object");
  EXPECT_EQ(error("e.yaml", schema), ": this looks like a JSON Schema; give it a name that ends in .json");
  EXPECT_NE(error("e.json", R"({"a": 1, "a": 2})").find("\"a\""), std::string::npos);
}

TEST(SchemaFile, SpansMayBecomeFreeText) {
  TempFolder folder;
  Schema schema = read_schema(folder.write("s.yaml", "categories:\n  A:\n    - {name: Brand, type: span}\n"));
  EXPECT_EQ(schema.categories[0].attributes[0].type, ValueType::span);
  free_spans(schema);
  EXPECT_EQ(schema.categories[0].attributes[0].type, ValueType::text);
}

TEST(SchemaFile, ErrorsCarryTheLine) {
  EXPECT_EQ(
      schema_error("categories:\n  A:\n    - {name: Colour}\n    - {name: Size}\n    - {name: Colour}\n"),
      "s.yaml:5: attribute \"Colour\" appears twice; remove one");
  EXPECT_EQ(schema_error("categories:\n  A:\n    - {name: Roast, type: enum}\n"),
            "s.yaml:3: enum \"Roast\" needs options: a list of its values");
  EXPECT_EQ(schema_error("categories:\n  A:\n    - {name: Roast, type: enum, options: []}\n"),
            "s.yaml:3: the options of \"Roast\" must be a list of at least one value, not an empty one");
  EXPECT_EQ(
      schema_error("categories:\n  A:\n    - name: R\n      type: enum\n      options: [a, b,\n        a]\n"),
      "s.yaml:6: option \"a\" of \"R\" appears twice; remove one");
  EXPECT_EQ(schema_error("categories:\n  A:\n    - {name: R, options: [a]}\n"),
            "s.yaml:3: attribute \"R\" has options but is not an enum; set type: enum or remove them");
  EXPECT_EQ(schema_error("categories:\n  A: []\n"),
            "s.yaml:2: category \"A\" has no attributes; add one or remove the category");
  EXPECT_EQ(schema_error("categories:\n  B: [{name: x}]\n  A:\n"),
            "s.yaml:3: category \"A\" has no attributes; add one or remove the category");
  EXPECT_EQ(schema_error("categories:\n  A:\n    - {name: R, type: nubmer}\n"),
            "s.yaml:3: attribute.type cannot be \"nubmer\"; did you mean \"number\"?");
  EXPECT_EQ(schema_error("categories:\n  A:\n    - {name: R, tpye: number}\n"),
            "s.yaml:3: unknown key \"tpye\"; did you mean \"type\"?");
  EXPECT_EQ(schema_error("attributes:\n  Brand: {}\ncategories:\n  A:\n    - Bramd\n"),
            "s.yaml:5: attribute \"Bramd\" is not defined under attributes; did you mean \"Brand\"?");
  EXPECT_EQ(schema_error("categories:\n  A:\n    - {type: number}\n"),
            "s.yaml:3: the key \"attribute.name\" is missing; add it");
  EXPECT_EQ(schema_error("categories:\n  A: [{name: x}]\n  A: [{name: y}]\n"),
            "s.yaml:3: the key \"A\" appears twice; remove one");
  EXPECT_EQ(schema_error("attributes: {}\n"), "s.yaml:1: the key \"categories\" is missing; add it");
  EXPECT_EQ(schema_error(""), "s.yaml:1: the key \"categories\" is missing; add it");
  EXPECT_EQ(schema_error("categories: {}\n"), "s.yaml:1: categories is empty; add a category");
  EXPECT_EQ(schema_error("categories:\n  A: {name: x}\n"),
            "s.yaml:2: category \"A\" must be a list of attributes, not a map");
  EXPECT_EQ(schema_error("categories:\n  A: [{name: '  '}]\n"), "s.yaml:2: the attribute has no name");
}

TEST(SchemaFile, ShippedFilesAreReadWithoutErrors) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs/schemas"))
    if (entry.path().extension() == ".yaml") {
      EXPECT_EQ(error_of([&] { read_schema(entry.path().string()); }), "no error");
      ++files;
    }
  EXPECT_GT(files, 0);
}

// A megabyte that would be two gigabytes with the options in every category.
TEST(SchemaFile, TooManyOrTooLongOptionsAreRefused) {
  std::string text = "attributes:\n  A:\n    type: enum\n    options: [";
  for (int i = 0; i < 2000; ++i) text += fmt::format("o{}, ", i);
  text += "last]\ncategories:\n";
  for (int i = 0; i < 20'000; ++i) text += fmt::format("  c{}: [A]\n", i);
  const std::string error = schema_error(text);
  EXPECT_NE(error.find("take more than 128 MB"), std::string::npos) << error;
}

}  // namespace
}  // namespace sheaf
