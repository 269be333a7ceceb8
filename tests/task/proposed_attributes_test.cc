// What a model's reply proposes as attributes, and how several replies are brought together.
#include "core/task/proposed_attributes.h"

#include <gtest/gtest.h>

#include "core/text/utf8.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

using Texts = std::vector<std::string>;

const char* const kReply = R"(```xml
<attribute id="1">
  <name>Color</name>
  <description>Color of the lamp's surface, e.g. black, brushed brass.</description>
  <datatype>categorical</datatype>
</attribute>
<attribute id="2"><name>Color
  Temperature</name><description>In kelvin &amp; as printed</description><datatype>Numerical</datatype>
  <values><value>4000 K</value><value>2700 K</value></values></attribute>
<attribute id="3"><name>Retail Price</name></attribute>
<attribute id="4"><name></name></attribute>
<attribute id="5"><name>Weight (kg)</name><datatype>integer</datatype></attribute>
<attribute id="6"><name>Cut off)";

TEST(Proposals, AreReadFromElements) {
  const auto read = read_proposals(kReply);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name, "Color");
  EXPECT_EQ(read[0].description, "Color of the lamp's surface, e.g. black, brushed brass.");
  EXPECT_FALSE(read[0].numerical);
  EXPECT_EQ(read[0].examples, (Texts{"black", "brushed brass"}));
  EXPECT_EQ(read[1].name, "Color Temperature") << "one line";
  EXPECT_EQ(read[1].description, "In kelvin & as printed");
  EXPECT_TRUE(read[1].numerical);
  EXPECT_EQ(read[1].examples, (Texts{"4000 K", "2700 K"}));
  EXPECT_EQ(read[2].name, "Weight (kg)");
  EXPECT_TRUE(read[2].numerical);
}

TEST(Proposals, WhatIsNoListOfElementsGivesNone) {
  for (const char* text : {"", "Sure! Color, size, weight.", "<name>", "<name>---</name>", "</name>x<name>",
                           "<name>one two three four five six seven eight nine</name>"})
    EXPECT_TRUE(read_proposals(text).empty()) << text;
  EXPECT_TRUE(read_proposals("<name>" + std::string(61, 'a') + "</name>").empty());
}

TEST(Proposals, NamesOfOneAttributeHaveOneKey) {
  const auto key = [](const char* name) { return attribute_key(name, "Desk Lamp"); };
  EXPECT_EQ(key("Colour"), "color");
  EXPECT_EQ(key("COLORS"), "color");
  EXPECT_EQ(key("lamp_color"), "color");
  EXPECT_EQ(key("Color of the Lamp"), "color");
  EXPECT_EQ(key("Color (finish)"), "color");
  EXPECT_EQ(key("Brand Name"), "brand");
  EXPECT_EQ(key("Manufacturer"), "brand");
  EXPECT_EQ(key("Length of Cable"), key("cable length"));
  EXPECT_EQ(key("Number of Pieces"), key("Piece Count"));
  EXPECT_EQ(key("Material Type"), "material");
  EXPECT_EQ(key("Batteries"), key("battery"));
  // What alone is left is kept.
  EXPECT_EQ(key("Lamp Type"), "type");
  EXPECT_EQ(key("Type"), "type");
  EXPECT_EQ(key("(kg)"), "kg");
  EXPECT_EQ(key("Glass"), "glass");
  EXPECT_NE(key("Width"), key("Height"));
  EXPECT_EQ(attribute_key("Lieferumfang", "Kaffeemaschine"), "lieferumfang");
}

TEST(Proposals, ExamplesStandInTheDescription) {
  EXPECT_EQ(example_values("Finish of the lamp, such as matte, brushed brass and chrome."),
            (Texts{"matte", "brushed brass and chrome"}));
  EXPECT_EQ(example_values("Wine style (e.g., light, medium, full-bodied)."),
            (Texts{"light", "medium", "full-bodied"}));
  EXPECT_EQ(example_values("Typical values: 5 W, 9 W, or 12 W"), (Texts{"5 W", "9 W", "12 W"}));
  EXPECT_EQ(example_values("Beech wood, silver"), (Texts{"Beech wood", "silver"}));
  EXPECT_EQ(example_values("Color of the lamp's surface."), Texts{});
  EXPECT_EQ(example_values("Ivory"), Texts{});
  EXPECT_EQ(example_values(""), Texts{});
}

ProposedAttribute proposal(const std::string& name, const std::string& description, bool numerical = false) {
  return {name, description, numerical, example_values(description)};
}

TEST(Proposals, AreMergedAndCounted) {
  const std::vector<std::vector<ProposedAttribute>> replies = {
      {proposal("Finish", "e.g. matte, gold"), proposal("Colour", "e.g. black, white"),
       proposal("Power", "in watts, e.g. 9 W, 12 W", true)},
      {proposal("Color", "e.g. black, oak"), proposal("colour", "again"),
       proposal("Power", "in watts, e.g. 9 W, 12 W", true)},
      {proposal("Color", "hue"), proposal("Power", "as printed")}};
  const auto merged =
      merge_proposals(replies, "Desk Lamp", {"A black lamp, 9 W", "Lamp of OAK, Black!", "blackout lamp"});
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[0].as.name, "Color") << "the spelling of most replies";
  EXPECT_EQ(merged[0].replies, 3) << "each counts once";
  EXPECT_EQ(merged[0].others, Texts{"Colour"});
  EXPECT_EQ(merged[0].found, (Texts{"black", "oak"})) << "the most frequent first, whole words only";
  EXPECT_EQ(merged[0].products, 2);
  EXPECT_EQ(merged[0].examples, 3u);
  EXPECT_EQ(merged[1].as.name, "Power");
  EXPECT_TRUE(merged[1].as.numerical) << "as two of three say";
  EXPECT_EQ(merged[1].as.description, "in watts, e.g. 9 W, 12 W");
  EXPECT_EQ(merged[2].as.name, "Finish");
  EXPECT_EQ(merged[2].replies, 1);
  EXPECT_TRUE(merged[2].found.empty());
  EXPECT_EQ(merged[2].examples, 2u);
  EXPECT_TRUE(merge_proposals({}, "Desk Lamp", {}).empty());
  for (const char* text : {"", "e.g. brushed, brushless"})
    EXPECT_FALSE(merge_proposals({{proposal("Motor", text, true)}}, "Drill", {})[0].as.numerical)
        << "a number without numbers: " << text;
}

TEST(Proposals, AnyReplyIsReadOrLeftOut) {
  const std::vector<std::string_view> words = {"<name>",
                                               "</name>",
                                               "<description>",
                                               "</description>",
                                               "<value>",
                                               "</value>",
                                               "<datatype>",
                                               "&amp;",
                                               "&#0;",
                                               "e.g.",
                                               ",",
                                               "\xff",
                                               "(",
                                               ")",
                                               "\n"};
  fuzz([&](std::mt19937_64& random) {
    std::vector<std::vector<ProposedAttribute>> replies;
    for (int i = 0; i < 2; ++i) replies.push_back(read_proposals(mutate(kReply, random, words)));
    for (const auto& reply : replies)
      for (const ProposedAttribute& each : reply) {
        ASSERT_FALSE(each.name.empty());
        ASSERT_LE(each.name.size(), ProposedAttribute::kLongestName);
        ASSERT_EQ(each.name.find('\n'), std::string::npos);
        for (const std::string& text : {each.name, each.description})
          ASSERT_EQ(valid_prefix(text), text.size()) << text;
      }
    for (const MergedAttribute& each : merge_proposals(replies, "Lamp", {"a black lamp"}))
      ASSERT_GE(each.replies, 1);
  });
}

}  // namespace
}  // namespace sheaf
