#include "core/text/printable.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

TEST(Printable, LeavesTextAlone) {
  const std::string text = "A \"caf\u00e9\" for \u20ac 3, \u4eba\u200d\U0001F469 C:\\x1b\n\tand more";
  EXPECT_EQ(printable_text(text), text);
  EXPECT_EQ(printable_text(""), "");
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable_text("\x1b]0;x\x07"), "\\x1b]0;x\\x07");
  EXPECT_EQ(printable_text(std::string_view("a\0b\r\x7f", 5)), "a\\x00b\\r\\x7f");
  EXPECT_EQ(printable_text("\u009b31m\u0085"), "\\u009b31m\\u0085");
  EXPECT_EQ(printable_text("\u202etxt\u2066\u2028\u200f\ufeff"), "\\u202etxt\\u2066\\u2028\\u200f\\ufeff");
  EXPECT_EQ(printable_text("\xff\xc2z\xe2\x82"), "\\xff\\xc2z\\xe2\\x82");
  EXPECT_EQ(printable_text("\xc0\x9b"), "\\xc0\\x9b") << "an overlong form is none";
  EXPECT_EQ(printable_line("a\nsheaf: fine\t"), "a\\nsheaf: fine\\t");
}

TEST(Printable, JsonKeepsItsValue) {
  const nlohmann::json value{{"a\u009b\x7f", "\u202e\n\x1b \u20ac"}, {"b", {"\u2028", 1}}};
  for (const int indent : {-1, 2}) {
    const std::string text = printable_json(value.dump(indent));
    EXPECT_EQ(nlohmann::json::parse(text), value);
    EXPECT_EQ(printable_text(text), text) << "nothing in it is left to escape";
  }
  EXPECT_EQ(printable_json("\"\u009b\""), "\"\\u009b\"");
}

TEST(Printable, WhateverTheBytesTheResultIsCleanText) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t i = random() % 40; i > 0; --i) {
      // Half of them code points, so that not all is broken.
      if (random() % 2)
        append_utf8(static_cast<uint32_t>(random() % 3 ? random() % 0xA0 : 0x2000 + random() % 0x80), bytes);
      else
        bytes += static_cast<char>(random());
    }
    const std::string text = printable_text(bytes), line = printable_line(bytes);
    EXPECT_EQ(valid_prefix(text), text.size());
    EXPECT_EQ(printable_text(text), text);
    EXPECT_EQ(printable_line(line), line);
    EXPECT_EQ(line.find_first_of("\n\t\x1b\x7f"), std::string::npos);
    const std::string json = nlohmann::json(valid_utf8(bytes)).dump(), shown = printable_json(json);
    EXPECT_EQ(nlohmann::json::parse(shown), nlohmann::json::parse(json));
    EXPECT_EQ(printable_line(shown), shown);
  }
}

}  // namespace
}  // namespace sheaf
