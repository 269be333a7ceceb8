#include <gtest/gtest.h>

#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(normalize_nfc(text, storage));
}

TEST(Utf8, ReplacesMaximalInvalidParts) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(valid_utf8("plain \u00e9 \U0001F999"), "plain \u00e9 \U0001F999");
  EXPECT_EQ(valid_utf8("a\x80z"), "a" + bad + "z");
  EXPECT_EQ(valid_utf8("\xF0\x9F\xA6"), bad);  // a cut sequence is one
  EXPECT_EQ(valid_utf8("\xF0\x9F\xA6z"), bad + "z");
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), bad + bad + bad);  // a surrogate is three
  EXPECT_EQ(valid_utf8("\xC0\xAF"), bad + bad);            // overlong
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(valid_utf8("\xE2\x82"), bad);
  EXPECT_EQ(valid_utf8("\xE2\xE2\x82\xAC"), bad + "\u20ac");
  EXPECT_EQ(valid_utf8(std::string_view("\xFF\0\xFE", 3)), bad + std::string(1, '\0') + bad);
}

TEST(Utf8, EveryCodePointIsEncodedAndDecoded) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(c, text);
    ASSERT_EQ(valid_prefix(text), text.size()) << c;
    const Decoded d = decode_valid(text.data());
    ASSERT_EQ(d.point, c);
    ASSERT_EQ(d.bytes, text.size());
    ASSERT_EQ(sequence_bytes(text[0]), text.size());
  }
}

TEST(Nfc, ComposesAndOrders) {
  EXPECT_EQ(nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("s\u0307\u0323"), "\u1e69");
  EXPECT_EQ(nfc("\u212b"), "\u00c5");
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(nfc("\uac00\u11a8"), "\uac01");
  EXPECT_EQ(nfc("\uac01\u11a8"), "\uac01\u11a8");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093c");  // excluded from composition
  EXPECT_EQ(nfc("a\u0300\u0300"), "\u00e0\u0300");
  EXPECT_EQ(nfc("\u0301a"), "\u0301a");
  EXPECT_EQ(nfc("plain \u00e9"), "plain \u00e9");
}

TEST(Nfc, IsIdempotent) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "a";
    append_utf8(c, text);
    text += "\u0301\u0323";
    const std::string once = nfc(text);
    ASSERT_EQ(nfc(once), once) << c;
  }
}

TEST(CharClasses, KnowWhatThePatternsKnow) {
  const uint8_t* classes = char_classes();
  using enum CharClass::Flag;
  EXPECT_EQ(classes['a'], is_letter | is_lower);
  EXPECT_EQ(classes['A'], is_letter | is_upper);
  EXPECT_EQ(classes['5'], is_number | is_digit);
  EXPECT_EQ(classes[0x11de0], is_digit);  // only the newer Unicode of Digits knows this one
  EXPECT_TRUE(classes[0x85] & is_space);
  EXPECT_FALSE(classes[0x180E] & is_space);
  EXPECT_FALSE(classes[0x200B] & is_space);
}

}  // namespace
}  // namespace sheaf
