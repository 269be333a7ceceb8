#include "core/text/html_text.h"

#include <gtest/gtest.h>
#include <random>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

std::u32string characters_of(std::string_view text) {
  std::u32string all;
  for (size_t at = 0; at < text.size();) {
    const Decoded one = decode_valid(&text[at]);
    all += static_cast<char32_t>(one.point);
    at += one.bytes;
  }
  return all;
}

/// What stands in the HTML where the text has `wanted`.
std::string original_of(const std::string& html, std::string_view wanted) {
  const HtmlText read = html_text(html);
  const size_t begin = read.text.find(wanted);
  if (begin == std::string::npos) return "not found in: " + read.text;
  const OriginalPlace place = original_place(read.runs, read.text, begin, begin + wanted.size());
  const std::u32string all = characters_of(html);
  std::string original;
  for (const char32_t c :
       all.substr(static_cast<size_t>(place.start), static_cast<size_t>(place.end - place.start)))
    append_utf8(c, original);
  return original;
}

TEST(HtmlText, IsWhatAReaderSees) {
  const std::pair<const char*, const char*> cases[] = {
      {"<p>Red <b>wool</b> scarf.</p><p>180&nbsp;cm</p>", "Red wool scarf.\n180 cm"},
      {"  <div>\n  A   B\n</div>  ", "A B"},
      {"a<br>b<br/>c", "a\nb\nc"},
      {"<ul><li>one</li><li>two</li></ul>end", "one\ntwo\nend"},
      {"<table><tr><th>Color</th><td>red</td></tr><tr><td>Size</td><td>M</td><td>L</td></tr></table>",
       "Color: red\nSize: M | L"},
      {"x<script>var a = '<p>no</p>';</script>y<style>p { }</style>z", "xyz"},
      {"a<!-- <p>hidden</p> -->b<!DOCTYPE html>", "ab"},
      {"Tom &amp; Jerry &lt;3 &#228;&#xE4;&auml; &unknown; &euro;5", "Tom & Jerry <3 äää &unknown; €5"},
      {"<a href=\"x>y\" title='a > b'>link</a>", "link"},
      {"5 < 6 and <3 cm", "5 < 6 and <3 cm"},
      {"plain\n  text stays", "plain\n  text stays"},
      {"", ""},
      {"<p></p>", ""},
      {"unclosed <b text", "unclosed <b text"},
      {"<SCRIPT>x</Script>y", "y"},
  };
  for (const auto& [html, text] : cases) EXPECT_EQ(html_text(html).text, text) << html;
}

TEST(HtmlText, PlacesPointIntoTheHtml) {
  const std::string html = "<p>Größe: <b>M</b></p>\n<p>Tom &amp; Jerry, 11,5&nbsp;% vol</p>";
  EXPECT_EQ(original_of(html, "Größe"), "Größe");
  EXPECT_EQ(original_of(html, "M"), "M");
  EXPECT_EQ(original_of(html, "Tom & Jerry"), "Tom &amp; Jerry");
  EXPECT_EQ(original_of(html, "&"), "&amp;");
  EXPECT_EQ(original_of(html, "11,5 % vol"), "11,5&nbsp;% vol");
  EXPECT_EQ(original_of(html, "Größe: M"), "Größe: <b>M");
  EXPECT_EQ(original_of("plain ä text", "text"), "text");
}

TEST(HtmlTextFuzz, EveryWordStandsWhereItIsSaidToStand) {
  const char* const pieces[] = {
      "<p>",   "</p>", "<b>",   "</b>",   "word",     "Größe",     " ",    "\n",     "<br>", "<td>",
      "</td>", "<tr>", "&amp;", "&nbsp;", "<script>", "</script>", "<!--", "-->",    "<",    ">",
      "\"",    "='",   "&",     "12,5",   "</",       "<a href='", "é",    "&#x41;", "日本"};
  std::mt19937 random(5);
  int found = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string html;
    for (size_t n = random() % 14; n > 0; --n) html += pieces[random() % std::size(pieces)];
    const HtmlText read = html_text(html);
    const std::u32string all = characters_of(html);
    for (const char* word : {"word", "Größe", "12,5", "日本"}) {
      for (size_t at = read.text.find(word); at != std::string::npos; at = read.text.find(word, at + 1)) {
        const OriginalPlace place =
            original_place(read.runs, read.text, at, at + std::string_view(word).size());
        ASSERT_GE(place.start, 0) << html;
        ASSERT_LE(place.end, static_cast<int64_t>(all.size())) << html;
        const std::u32string there =
            all.substr(static_cast<size_t>(place.start), static_cast<size_t>(place.end - place.start));
        ASSERT_EQ(there.substr(0, 1), characters_of(word).substr(0, 1)) << html;
        ASSERT_EQ(there.substr(there.size() - 1), characters_of(word).substr(characters_of(word).size() - 1))
            << html;
        ++found;
      }
    }
  }
  EXPECT_GT(found, 10'000);
}

}  // namespace
}  // namespace sheaf
