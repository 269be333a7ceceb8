#include "core/task/value_path.h"

#include <gtest/gtest.h>

#include "tests/fuzz.h"

namespace sheaf {
namespace {

TEST(ValuePath, IsSpelledAndReadBack) {
  const std::pair<ValuePath, const char*> cases[] = {
      {{{"variants", 2}, {"price"}}, "variants[2].price"},
      {{{"box"}, {"wide"}}, "box.wide"},
      {{{"variants", 0}}, "variants[0]"},
      {{{"a", 10}, {"b", 0}, {"c"}, {"d"}}, "a[10].b[0].c.d"},
      {{{"No. of legs", 1}, {"a\"b"}}, R"("No. of legs"[1]."a\"b")"},
      {{{"x"}, {""}}, R"(x."")"},
      {{{"größe in cm"}, {"weiß"}}, "größe in cm.weiß"},
  };
  for (const auto& [path, text] : cases) {
    EXPECT_EQ(path_text(path), text);
    const auto read = read_path(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(*read, path) << text;
  }
  EXPECT_EQ(path_text({{"No. of legs"}}), "No. of legs");  // as rows of flat schemas have always had it
}

TEST(ValuePath, OtherTextsAreNoPaths) {
  for (const char* text : {"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[-1]", "a[01]", "a[1", "a[1]b",
                           "a[+1]", "a[99999999999]", "a]", "\"a", "\"a\"b", "\"\\", "\"\\x\".a", "a[1][2]"})
    EXPECT_FALSE(read_path(text)) << text;
}

TEST(ValuePath, FindsAttributes) {
  Attribute variants{"variants", ""};
  variants.type = ValueType::entries;
  variants.fields = {{"size", ""}, {"price", ""}};
  const std::vector<Attribute> attributes{{"a.b", ""}, variants};
  EXPECT_EQ(find_attribute(attributes, "a.b"), &attributes[0]);
  EXPECT_EQ(find_attribute(attributes, "variants[3].price"), &attributes[1].fields[1]);
  EXPECT_EQ(find_attribute(attributes, "variants.size"), &attributes[1].fields[0]);
  EXPECT_EQ(find_attribute(attributes, "variants"), &attributes[1]);
  for (const char* none : {"", "b", "variants.weight", "variants.size[1]", "variants.size.x", "a"})
    EXPECT_EQ(find_attribute(attributes, none), nullptr) << none;
}

TEST(ValuePath, VisitsAnObjectBeforeWhatIsInIt) {
  const RowObject entry{{{"size", {"S"}}, {"box", {RowObject{{{"wide", {true}}}}}}}};
  const std::vector<AttributeValue> values{{"a", {"x"}},
                                           {"variants", {std::vector<RowObject>{entry, entry}}}};
  std::vector<std::string> paths;
  visit_values(values, [&](const std::string& path, const RowAnswer&) { paths.push_back(path); });
  EXPECT_EQ(paths, (std::vector<std::string>{"a", "variants", "variants[0].size", "variants[0].box",
                                             "variants[0].box.wide", "variants[1].size", "variants[1].box",
                                             "variants[1].box.wide"}));
}

TEST(ValuePath, AnyTextIsReadOrNotAndNeverCrashes) {
  std::vector<std::string> seeds = {"variants[2].price", R"("No. of legs"[1]."a\"b")", "a[10].b[0].c.d"};
  for (const std::string& text : past_findings("value_path")) seeds.push_back(text);
  fuzz([&](std::mt19937_64& random) {
    const std::string text = mutate(seeds[random() % seeds.size()], random,
                                    {"[", "]", ".", "\"", "\\", "[0]", "\\u0000", "\xff", "4294967296"});
    const auto path = read_path(text);
    if (!path || (path->size() == 1 && !path->front().entry)) return;
    EXPECT_EQ(read_path(path_text(*path)), path) << text;
  });
}

}  // namespace
}  // namespace sheaf
