#pragma once
#include <gtest/gtest.h>

#include "core/text/utf8.h"
#include "tests/app/program.h"

namespace sheaf::test {

/// Names that would set a terminal's title, wipe it, colour it, turn its text around or forge a line of ours.
inline const std::vector<std::string> kHostile = {"\x1b]0;x\x07",
                                                  "\x1b[2J",
                                                  "\xc2\x9b"
                                                  "31m",
                                                  "\xff",
                                                  "a\nsheaf: fine",
                                                  "\xe2\x80\xae"
                                                  "txt",
                                                  "b\r\x7f\x08"};

/// Those that are text to YAML and JSON.
inline std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts;
  for (const std::string& each : kHostile)
    if (valid_prefix(each) == each.size()) texts.push_back(each);
  return texts;
}

/// A text as JSON and YAML write it, its hostile characters as they are where they may be.
inline std::string as_json(const std::string& text) {
  return nlohmann::json(text).dump();
}

/// A word of the shell.
inline std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Valid UTF-8 without anything that a terminal obeys but newlines, and without a line that a name forged.
inline void expect_clean(const std::string& output) {
  ASSERT_EQ(valid_prefix(output), output.size()) << "not UTF-8: " << nlohmann::json(valid_utf8(output));
  for (size_t at = 0; at < output.size();) {
    const Decoded next = decode_valid(output.data() + at);
    const uint32_t point = next.point;
    const bool control = (point < 0x20 && point != '\n') || (point >= 0x7F && point < 0xA0);
    const bool turns = point == 0x200E || point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
                       (point >= 0x2066 && point <= 0x2069);
    ASSERT_FALSE(control || turns) << "U+" << std::hex << point << " in "
                                   << nlohmann::json(output).dump(-1, ' ', true);
    at += next.bytes;
  }
  EXPECT_EQ(("\n" + output).find("\nsheaf: fine"), std::string::npos) << output;
}

inline void expect_clean(const Ran& ran) {
  expect_clean(ran.out);
  expect_clean(ran.err);
}

/// Runs it, wants that exit code, something said and nothing hostile in it.
inline Ran run_clean(const TempFolder& scratch, const std::string& arguments, int exit_code) {
  SCOPED_TRACE(nlohmann::json(valid_utf8(arguments)).dump(-1, ' ', true));
  const Ran ran = run_sheaf(scratch, arguments);
  EXPECT_EQ(ran.exit_code, exit_code) << ran.err;
  EXPECT_FALSE(ran.out.empty() && ran.err.empty());
  expect_clean(ran);
  return ran;
}

}  // namespace sheaf::test
