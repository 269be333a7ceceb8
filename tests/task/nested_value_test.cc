// Nested values: what is asked for, what a list of anchors says, and objects as models write them.
#include <gtest/gtest.h>
#include <set>

#include "core/task/asked_value.h"
#include "core/task/gold.h"
#include "core/task/gold_kinds.h"
#include "core/task/record_row.h"
#include "core/task/value_path.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

using nlohmann::json;

Attribute typed(const std::string& name, ValueType type, const std::string& description = "") {
  Attribute attribute{name, description};
  attribute.type = type;
  return attribute;
}

/// A box with a width, and variants with a size, a price, colours and parts of their own.
std::vector<Attribute> sample_attributes() {
  Attribute box = typed("box", ValueType::object, "the carton");
  box.fields = {typed("width", ValueType::number, "in cm"), typed("kind", ValueType::text)};
  Attribute parts = typed("parts", ValueType::entries);
  parts.fields = {typed("weight", ValueType::number), typed("what", ValueType::text)};
  EXPECT_EQ(set_anchor(parts, ""), AnchorTrouble::nothing);
  Attribute variants = typed("variants", ValueType::entries, "sizes on offer");
  variants.fields = {typed("price", ValueType::number), typed("size", ValueType::text, "as named"),
                     typed("colours", ValueType::list), parts};
  EXPECT_EQ(set_anchor(variants, "size"), AnchorTrouble::nothing);
  variants.max_entries = 3;
  return {typed("brand", ValueType::text), box, variants};
}

TEST(AskedValues, AreFlatUnderTheirPaths) {
  const std::vector<Attribute> attributes = sample_attributes();
  const std::vector<AskedValue> values = asked_values(attributes);
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[0].attribute.name, "brand");
  EXPECT_EQ(values[1].attribute.name, "box.width");
  EXPECT_EQ(values[1].attribute.description, "the carton: in cm");
  EXPECT_EQ(values[2].attribute.description, "the carton");
  EXPECT_EQ(values[3].attribute.name, "variants.size");
  EXPECT_EQ(values[3].attribute.description, "sizes on offer: as named");
  EXPECT_EQ(values[3].attribute.type, ValueType::list);
  EXPECT_EQ(values[3].path, "variants");
  EXPECT_EQ(values[3].own, &attributes[2]);
  ASSERT_EQ(values[3].fields.size(), 3u);
  EXPECT_EQ(values[3].fields[0].attribute.name, "variants.price");
  EXPECT_EQ(values[3].fields[1].attribute.type, ValueType::list);
  EXPECT_EQ(values[3].fields[1].own->type, ValueType::list);
  EXPECT_EQ(values[3].fields[2].attribute.name, "variants.parts.what");
  ASSERT_EQ(values[3].fields[2].fields.size(), 1u);
  EXPECT_EQ(values[3].fields[2].fields[0].attribute.name, "variants.parts.weight");
  std::string names;
  for (const Attribute& each : listed_attributes(values)) names += each.name + " ";
  EXPECT_EQ(names,
            "brand box.width box.kind variants.size variants.price variants.colours variants.parts.what "
            "variants.parts.weight ");
}

TEST(AskedValues, HaveTheirGold) {
  const json gold = {{"box", {{"width", 3}}},
                     {"variants", {{{"size", "S"}}, {{"size", "M"}, {"price", 2}}, {{"size", "S"}}}}};
  const auto asked = asked_gold(sample_attributes(), gold);
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_FALSE(asked[0].value);
  EXPECT_EQ(*asked[1].value, 3);
  EXPECT_FALSE(asked[2].value);
  EXPECT_EQ(*asked[3].value, (json{"S", "M"}));
  ASSERT_EQ(asked[3].entries.size(), 2u) << "the second S is the first one";
  EXPECT_EQ(asked[3].entries[1]["price"], 2);
  for (const json& none : {json(), json::array()})
    EXPECT_EQ(*asked_gold(sample_attributes(), {{"box", none}})[1].value, json());
  EXPECT_EQ(*write_value(sample_attributes()[2], gold.at("variants")),
            R"([{"size": "S"}, {"price": 2, "size": "M"}, {"size": "S"}])");
  EXPECT_EQ(*write_value(sample_attributes()[1], gold.at("box")), R"({"width": 3})");
}

struct AnchorCase {
  const char* text;
  std::vector<std::string> anchors;
  const char* note;
};

TEST(Anchors, AreReadAsFarAsTheyAreWhole) {
  const Attribute list = sample_attributes()[2];
  const AnchorCase cases[] = {
      {R"( ["S", "M"],)", {"S", "M"}, ""},
      {R"( ["S", "M", "S", "S"],)", {"S", "M"}, "2 of the entries listed came before and are left out"},
      {R"( ["S", "M", "S"],)", {"S", "M"}, "1 of the entries listed came before and is left out"},
      {R"( ["a", "b", "c", "d", "e"])",
       {"a", "b", "c"},
       "5 entries are listed; those after the first 3 are left out (max_entries)"},
      {R"( ["S", "M", "lar)", {"S", "M"}, "the list breaks off"},
      {R"( ["S", "M")", {"S", "M"}, "the list breaks off"},
      {R"( ["S", "M",)", {"S", "M"}, "the list breaks off"},
      {" []", {}, ""},
      {" null,", {}, ""},
      {" \"S\",", {"S"}, ""},
      {R"( [{"size": "S", "price": 3}, {"size": "M"}],)", {"S", "M"}, ""},
      {R"( [{"size": "S", "price": 3})", {"S"}, "the list breaks off"},
      {R"( [38, 39])", {"38", "39"}, ""},
  };
  for (const AnchorCase& c : cases) {
    const Anchors read = read_anchors(list, c.text);
    EXPECT_EQ(read.texts, c.anchors) << c.text;
    EXPECT_EQ(read.note, c.note) << c.text;
    EXPECT_TRUE(read.readable) << c.text;
  }
  EXPECT_FALSE(read_anchors(list, " {\"a\": 1}").readable);
  EXPECT_FALSE(read_anchors(list, "").readable);
}

TEST(Anchors, OfAnEnumAreHeldToItsOptions) {
  Attribute list = sample_attributes()[2];
  list.fields[1].type = ValueType::enumeration;
  list.fields[1].options = {"small", "large"};
  const Anchors read = read_anchors(list, R"( ["Large", "huge", "large", "small"],)");
  EXPECT_EQ(read.texts, (std::vector<std::string>{"large", "small"})) << "as the option is written";
  EXPECT_EQ(
      read.note,
      "1 of the entries listed came before and is left out; 1 of the entries listed is none of the options "
      "of \"size\" and is left out");
  EXPECT_TRUE(read.readable);
}

TEST(GoldKinds, AreToldByTheirPaths) {
  const std::vector<Attribute> attributes = sample_attributes();
  const auto trouble = [&](const json& gold) { return gold_kind_trouble(attributes, gold); };
  EXPECT_EQ(trouble({{"brand", {"Oak", "Oak & Co"}}, {"box", nullptr}, {"variants", json::array()}}), "");
  EXPECT_EQ(trouble({{"variants", {{"size", "S"}}}}), "") << "an entry alone";
  EXPECT_EQ(trouble({{"variants", "S, M"}}), "variants must be a list of objects, not a text");
  EXPECT_EQ(trouble({{"variants", {"S", "M"}}}), "variants must be a list of objects, not a list of texts");
  EXPECT_EQ(trouble({{"box", json::array({{{"width", 3}}})}}),
            "box must be an object, not a list of objects");
  EXPECT_EQ(trouble({{"brand", {{"name", "Oak"}}}}),
            "brand must be a plain value or a list of them, not an object");
  const json part = {{"parts", {"leg"}}};
  EXPECT_EQ(trouble({{"variants", json::array({{{"size", "S"}}, part})}}),
            "variants[1].parts must be a list of objects, not a list of texts");
}

TEST(AskedValues, SayHowDeepTheirListsAre) {
  std::vector<Attribute> attributes = sample_attributes();
  EXPECT_EQ(list_depth(attributes), 2);
  attributes[2].fields.pop_back();
  EXPECT_EQ(list_depth(attributes), 1);
  attributes.pop_back();
  EXPECT_EQ(list_depth(attributes), 0);
}

TEST(WrittenObjects, AreReadWithAllThatIsInThem) {
  const std::vector<Attribute> attributes = sample_attributes();
  const auto read = [&](std::string_view text, size_t attribute, bool cut = false) {
    return read_member(attributes[attribute], read_object(text), cut);
  };
  const std::string whole =
      R"("brand": "Oak", "box": {"width": 3, "kind": null}, "variants": [{"size": "S", "price": 2.5},
      {"size": "M", "colours": ["red"], "parts": [{"what": "leg", "weight": 1}]}]})";
  EXPECT_EQ(value_json(read(whole, 1).value).dump(), R"({"width":3,"kind":null})");
  EXPECT_EQ(value_json(read(whole, 2).value).dump(),
            R"([{"price":2.5,"size":"S","colours":null,"parts":null},)"
            R"({"price":null,"size":"M","colours":["red"],"parts":[{"weight":1,"what":"leg"}]}])");
  // What is cut loses its last entry only.
  const RowAnswer cut =
      read(R"("brand": "Oak", "variants": [{"size": "S", "price": 2}, {"size": "M", "pri)", 2, true);
  EXPECT_EQ(value_json(cut.value).dump(), R"([{"price":2,"size":"S","colours":null,"parts":null}])");
  EXPECT_EQ(cut.note, "cut at the length limit");
  EXPECT_EQ(read(R"("brand": "Oak", "va)", 2, true).note, kCutBefore);
  EXPECT_EQ(value_json(read(R"("variants": {"size": "S"}})", 2).value).size(), 1u);
  EXPECT_EQ(value_json(read(R"("variants": null})", 2).value).dump(), "[]");
  EXPECT_EQ(read(R"("variants": ["S"]})", 2).note, "not a list of objects: \"[\"S\"]\"");
  EXPECT_EQ(read(R"("box": 3})", 1).note, "not an object: \"3\"");
  const RowAnswer many = read(R"("variants": [{"size":"a"},{"size":"b"},{"size":"c"},{"size":"d"}]})", 2);
  EXPECT_EQ(value_json(many.value).size(), 3u);
  EXPECT_EQ(many.note, "4 entries are listed; those after the first 3 are left out (max_entries)");
}

TEST(WrittenObjects, AnyTextIsReadAndNeverCrashes) {
  const std::vector<Attribute> attributes = sample_attributes();
  const std::vector<std::string> seeds = {
      R"("brand": "Oak", "box": {"width": 3}, "variants": [{"size": "S", "parts": [{"what": "leg"}]}, {"size": "M"}]})",
      R"( ["S", "M", "L"],)", R"( [{"size": "S"}],)"};
  fuzz([&](std::mt19937_64& random) {
    const std::string text = mutate(seeds[random() % seeds.size()], random, kJsonWords);
    const WrittenObject object = read_object(text);
    for (const Attribute& attribute : attributes) {
      const RowAnswer read = read_member(attribute, object, random() % 2 == 0);
      if (!attribute.nested() || !is_found(read.value)) continue;
      EXPECT_TRUE(is_nested(read.value)) << text;
      const size_t most = attribute.type == ValueType::entries ? 3 : attribute.fields.size();
      EXPECT_LE(value_json(read.value).size(), most) << text;
    }
    const Anchors anchors = read_anchors(attributes[2], text);
    EXPECT_LE(anchors.texts.size(), 3u) << text;
    EXPECT_EQ(std::set<std::string>(anchors.texts.begin(), anchors.texts.end()).size(), anchors.texts.size());
  });
}

RowObject variant(const char* size, RowValue price) {
  return {{{"size", {std::string(size)}}, {"price", {std::move(price)}}}};
}

/// Of a split document: entries that agree are one, objects are filled in.
TEST(MergedParts, KeepTheEntriesOfAll) {
  const auto row = [](std::vector<RowObject> variants, RowValue width, RowValue kind) {
    return Row{1, ExtractedValues{
                      "A",
                      {{"box", {RowObject{{{"width", {std::move(width)}}, {"kind", {std::move(kind)}}}}}},
                       {"variants", {std::move(variants)}},
                       {"brand", {std::string("Oak")}}}}};
  };
  const Row merged = merge_part_rows(
      {row({variant("S", 2.5), variant("M", nullptr)}, nullptr, std::string("a")),
       row({variant("M", int64_t{3}), variant("L", int64_t{4})}, int64_t{7}, std::string("b"))},
      {{-1, -2, -1, -1}, {-1, -1, -1, -3}});
  nlohmann::ordered_json values;
  visit_values(std::get<ExtractedValues>(merged.content).values,
               [&](const std::string& path, const RowAnswer& answer) {
                 if (!is_nested(answer.value)) values[path] = value_json(answer.value);
               });
  EXPECT_EQ(
      values.dump(),
      R"({"box.width":7,"box.kind":"b","variants[0].size":"S","variants[0].price":2.5,"variants[1].size":"M",)"
      R"("variants[1].price":3,"variants[2].size":"L","variants[2].price":4,"brand":"Oak"})");
}

}  // namespace
}  // namespace sheaf
