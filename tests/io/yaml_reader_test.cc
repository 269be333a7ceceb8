#include "io/base/yaml_reader.h"

#include <gtest/gtest.h>

#include "core/text/spelling.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sheaf {
namespace {

YamlMap map_of(const std::string& text) {
  return YamlMap(parse_yaml("f.yaml", text), "");
}

std::string parse_error(const std::string& text) {
  return error_of([&] { parse_yaml("f.yaml", text); });
}

TEST(Yaml, KeepsLinesKindsAndQuotes) {
  const YamlPtr root = parse_yaml("f.yaml", "a: 1\nb:\n  - x\n  - 'null'\n  - null\nc: {d: \"7\"}\n");
  ASSERT_EQ(root->entries.size(), 3u);
  EXPECT_EQ(root->entries[1].place.text(), "f.yaml:2");
  const YamlNode& list = *root->entries[1].value;
  ASSERT_EQ(list.items.size(), 3u);
  EXPECT_EQ(list.items[1]->place.text(), "f.yaml:4");
  EXPECT_EQ(list.items[1]->kind, YamlNode::Kind::scalar);
  EXPECT_EQ(list.items[2]->kind, YamlNode::Kind::null);
  EXPECT_TRUE(root->entries[2].value->entries[0].value->quoted);
}

TEST(Yaml, UnsupportedYamlIsRefused) {
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 3\n"), "f.yaml:3: the key \"a\" appears twice; remove one");
  EXPECT_EQ(parse_error("a: 1\n---\nb: 2\n"), "f.yaml:3: a second YAML document begins here; keep only one");
  EXPECT_EQ(parse_error("a: 1\nb: \xff\n"), "f.yaml:2: this is not UTF-8 text");
  EXPECT_EQ(parse_error(std::string("a: 1\n\nb: \0", 10)), "f.yaml:3: this is not UTF-8 text");
  EXPECT_EQ(parse_error("a: !!python/object x\n"),
            "f.yaml:1: the tag tag:yaml.org,2002:python/object is not supported; remove it");
  EXPECT_EQ(parse_error("? [1, 2]\n: x\n"), "f.yaml:1: a list cannot be a key");
  EXPECT_EQ(parse_error("a: &x [*x]\n"), "f.yaml:1: an alias refers to a value that contains it; remove it");
  EXPECT_TRUE(parse_error("a: 1\nb: [1, 2\n").starts_with("f.yaml:")) << parse_error("a: 1\nb: [1, 2\n");
  EXPECT_TRUE(parse_error("a: *nowhere\n").starts_with("f.yaml:1: ")) << parse_error("a: *nowhere\n");
  EXPECT_EQ(parse_error(std::string((1 << 20) + 1, ' ')),
            "f.yaml: the file is larger than 1 MB, too large for a job or a schema");
  EXPECT_TRUE(error_of([] { read_yaml("no/such.yaml"); }).starts_with("no/such.yaml: no such file"));
  EXPECT_TRUE(error_of([] { read_yaml("/"); }).starts_with("/: this is a folder; "));
}

TEST(Yaml, ResolvesAliasesAndMerges) {
  const YamlPtr root =
      parse_yaml("f.yaml", "base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n");
  YamlMap more(root->entries[1].value, "more");
  int32_t x = 0, y = 0, z = 0;
  more.integer("x", x, {0, 9});
  more.integer("y", y, {0, 9});
  more.finish();
  EXPECT_EQ(x, 1);
  EXPECT_EQ(y, 3);
  YamlMap both(root->entries[2].value, "both");
  both.integer("y", y, {0, 9});
  both.integer("z", z, {0, 9});
  EXPECT_EQ(y, 2);
  EXPECT_EQ(z, 4);
  EXPECT_EQ(parse_error("a: {<<: 5}\n"), "f.yaml:1: << needs a map, not the number 5");
}

// What grows faster than its text runs into the time limit of ctest or into its memory.
TEST(Yaml, AliasBombsAreRefusedQuickly) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = fmt::format("*a{}", i - 1);
    laughs += fmt::format("a{}: &a{} [{}]\n", i, i, fmt::join(std::vector<std::string>(9, below), ", "));
  }
  std::string chain = "- &a0 x\n";
  for (int i = 1; i < 40000; ++i) chain += fmt::format("- &a{} [*a{}]\n", i, i - 1);
  const auto many = [](std::string_view part) {
    std::string text;
    while (text.size() + part.size() < 1'000'000) text += part;
    return text;
  };
  EXPECT_NE(parse_error(laughs).find("more than 100000 values"), std::string::npos) << parse_error(laughs);
  EXPECT_NE(parse_error(chain).find("more than 100000 values"), std::string::npos);
  EXPECT_NE(parse_error(many("[")).find("levels deep"), std::string::npos);
  EXPECT_NE(parse_error(many("{a: ")).find("levels deep"), std::string::npos);
  for (std::string_view part :
       {"- ",  "? ",     "[{", "{",  "\"",    "a: &a ", "!",           "|\n",    ": ",    "a\n",
        "&a ", "a: b: ", "# ", "}",  "- a\n", "a: ",    "%YAML 1.2\n", "---\n",  "...\n", "'",
        "\\",  "\t",     ",",  "[,", "{?",    "*a ",    ">",           "k: v\n", "'a' "})
    parse_error(many(part));
}

TEST(Yaml, ChecksTypesAndRanges) {
  const auto wrong = [](const std::string& text, auto&& read) {
    return error_of([&] {
      YamlMap map = map_of(text);
      read(map);
      map.finish();
    });
  };
  const auto integer = [](YamlMap& map) {
    int32_t value = 0;
    map.integer("n", value, {1, 10});
  };
  EXPECT_EQ(wrong("\nn: six", integer), "f.yaml:2: n must be a whole number, not \"six\"");
  EXPECT_EQ(wrong("n: '6'", integer), "f.yaml:1: n must be a whole number, not \"6\"");
  EXPECT_EQ(wrong("n: 6.5", integer), "f.yaml:1: n must be a whole number, not the number 6.5");
  EXPECT_EQ(wrong("n: 0", integer), "f.yaml:1: n must be at least 1, not 0");
  EXPECT_EQ(wrong("n: 99999999999", integer), "f.yaml:1: n must be at most 10, not 99999999999");
  EXPECT_EQ(wrong("n: 99999999999999999999999", integer),
            "f.yaml:1: n must be a whole number, not the number 99999999999999999999999");
  EXPECT_EQ(wrong("n: [1]", integer), "f.yaml:1: n must be a whole number, not a list");
  EXPECT_EQ(wrong("n: 6", integer), "no error");
  EXPECT_EQ(wrong("n: null", integer), "no error");
  const auto number = [](YamlMap& map) {
    double value = 0;
    map.number("x", value, {0, 1});
  };
  EXPECT_EQ(wrong("x: .nan", number), "f.yaml:1: x must be a number, not \".nan\"");
  EXPECT_EQ(wrong("x: inf", number), "f.yaml:1: x must be a number, not \"inf\"");
  EXPECT_EQ(wrong("x: 1.5", number), "f.yaml:1: x must be at most 1, not 1.5");
  EXPECT_EQ(wrong("x: +5e-1", number), "no error");
  const auto text = [](YamlMap& map) {
    std::string value;
    map.text("t", value);
  };
  EXPECT_EQ(wrong("t: 5", text),
            "f.yaml:1: t must be text, not the number 5; put it in quotes if it is text");
  EXPECT_EQ(wrong("t: true", text), "f.yaml:1: t must be text, not true; put it in quotes if it is text");
  EXPECT_EQ(wrong("t: {a: b}", text), "f.yaml:1: t must be text, not a map");
  EXPECT_EQ(wrong("t: '5'", text), "no error");
  EXPECT_EQ(wrong("b: 1",
                  [](YamlMap& map) {
                    bool value = false;
                    map.boolean("b", value);
                  }),
            "f.yaml:1: b must be true or false, not the number 1");
  EXPECT_EQ(wrong("- 1", text), "f.yaml:1: the file must be a map of keys and values, not a list");
  EXPECT_EQ(wrong("s: -1",
                  [](YamlMap& map) {
                    uint64_t value = 0;
                    map.integer("s", value);
                  }),
            "f.yaml:1: s must be a whole number from 0 to 18446744073709551615, not the number -1");
}

TEST(Yaml, NamesUnknownAndMissingKeys) {
  YamlMap map = map_of("path: x\n\ndocumnet: y\n");
  std::string value;
  map.text("path", value);
  map.text("document", value);
  map.require("document");
  EXPECT_EQ(error_of([&] { map.finish(); }),
            "f.yaml:3: unknown key \"documnet\"; did you mean \"document\"?");
  YamlMap other = map_of("path: x\n");
  other.text("path", value);
  other.text("document", value);
  other.require("document");
  EXPECT_EQ(error_of([&] { other.finish(); }), "f.yaml:1: the key \"document\" is missing; add it");
}

TEST(Yaml, ReplacesWithoutTouchingWhatIsShared) {
  const YamlPtr root = parse_yaml("f.yaml", "a: &s {x: 1}\nb: *s\nc: 5\n");
  const YamlPtr changed = replace_yaml(root, "b.x", parse_yaml("--set b.x=2", "2", 0));
  const YamlPtr added = replace_yaml(changed, "d.e", parse_yaml("--set d.e=[1, 2]", "[1, 2]", 0));
  const auto value = [](const YamlPtr& node, size_t i) { return node->entries[i].value->entries[0].value; };
  EXPECT_EQ(value(added, 0)->text, "1");
  EXPECT_EQ(value(added, 1)->text, "2");
  EXPECT_EQ(value(added, 1)->place.text(), "--set b.x=2");
  EXPECT_EQ(value(added, 3)->items.size(), 2u);
  EXPECT_EQ(value(root, 1)->text, "1");
  EXPECT_EQ(error_of([&] { replace_yaml(root, "c.x", parse_yaml("--set c.x=2", "2", 0)); }),
            "--set c.x=2: \"x\" cannot be set inside the number 5; only a map has keys");
}

TEST(Spelling, FindsTheNearest) {
  const std::vector<std::string> keys = {"document", "documents", "category", "id"};
  EXPECT_EQ(nearest_spelling("documnet", keys), "document");
  EXPECT_EQ(nearest_spelling("Category", keys), "category");
  EXPECT_EQ(nearest_spelling("di", keys), "id");
  EXPECT_EQ(nearest_spelling("zzzzzz", keys), "");
  EXPECT_EQ(nearest_spelling(std::string(100000, 'a'), keys), "");
  EXPECT_EQ(suggest_spelling("zzzzzz", keys), "; use one of document, documents, category, id");
  EXPECT_EQ(shorten_text("größer", 3), "gr…");
}

}  // namespace
}  // namespace sheaf
