#include <gtest/gtest.h>
#include <random>

#include "core/base/error.h"
#include "core/tokenizer/splitting_tokenizer.h"

namespace sheaf {
namespace {

using Spans = std::vector<std::array<size_t, 3>>;

bool is_blank(char c) {
  return c == ' ' || c == '\n';
}

/// The definition: at each place, from the left, the longest token that stands there.
Spans find_plainly(const std::vector<AddedToken>& tokens, std::string_view text, size_t begin, size_t end,
                   bool special, size_t floor) {
  Spans spans;
  size_t at = std::max(begin, floor);
  while (at < end) {
    const AddedToken* best = nullptr;
    for (const AddedToken& token : tokens)
      if (token.content.size() <= end - at && text.substr(at, token.content.size()) == token.content &&
          (best == nullptr || token.content.size() >= best->content.size()))
        best = &token;
    if (best == nullptr) {
      ++at;
      continue;
    }
    size_t first = at;
    at += best->content.size();
    if (best->special && !special) continue;
    while (best->lstrip && first > floor && is_blank(text[first - 1])) --first;
    while (best->rstrip && at < text.size() && is_blank(text[at])) ++at;
    floor = at;
    spans.push_back({first, at, static_cast<size_t>(best->id)});
  }
  return spans;
}

TEST(AddedTokens, FindsWhatTheDefinitionFinds) {
  std::mt19937 random(11);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto text_of = [&](size_t length, std::string_view letters) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += letters[below(letters.size())];
    return text;
  };
  size_t found_spans = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string_view letters = std::string_view("ab <\n").substr(0, 1 + below(5));
    AddedTokens added;
    std::vector<AddedToken> given;
    for (size_t i = 0, count = 1 + below(6); i < count; ++i) {
      AddedToken token{text_of(1 + below(below(2) ? 3 : 9), letters), static_cast<TokenId>(i), below(2) == 0,
                       below(4) == 0, below(4) == 0};
      std::erase_if(given, [&](const AddedToken& old) { return old.content == token.content; });
      given.push_back(token);
      added.add(token);
    }
    added.link();
    for (const AddedToken& token : given) {
      ASSERT_NE(added.find_content(token.content), nullptr);
      EXPECT_EQ(added.find_content(token.content)->id, token.id);
      EXPECT_EQ(added.find_content(token.content + "x"), nullptr);
      EXPECT_EQ(added.find_content("x" + token.content), nullptr);
    }
    const std::string text = text_of(below(60), letters);
    const size_t begin = below(text.size() + 1), end = begin + below(text.size() - begin + 1);
    const bool special = below(2) == 0;
    std::vector<SpecialSpan> spans;
    size_t floor = 0;
    if (below(3) == 0) spans.push_back({0, floor = below(text.size() + 1), 99});
    const size_t before = spans.size();
    added.find(text, begin, end, special, spans);
    Spans got;
    for (size_t i = before; i < spans.size(); ++i)
      got.push_back({spans[i].begin, spans[i].end, static_cast<size_t>(spans[i].id)});
    ASSERT_EQ(got, find_plainly(given, text, begin, end, special, floor)) << round << ": " << text;
    found_spans += got.size();
  }
  EXPECT_GT(found_spans, 20'000u);
}

TEST(AddedTokens, FoundAcrossWhatIsSearchedAtOnce) {
  AddedTokens added;
  const std::string token = "<" + std::string(998, 'x') + ">";
  added.add({token, 7});
  added.add({"<x", 8});
  added.link();
  for (const size_t before : {65'000u, 65'535u, 65'536u, 131'071u, 131'000u}) {
    const std::string text = std::string(before, 'x') + token + "<x";
    std::vector<SpecialSpan> spans;
    added.find(text, 0, text.size(), true, spans);
    ASSERT_EQ(spans.size(), 2u) << before;
    EXPECT_EQ(spans[0].begin, before);
    EXPECT_EQ(spans[0].id, 7);
    EXPECT_EQ(spans[1].id, 8);
  }
}

// Trying every token at every place would take minutes.
TEST(AddedTokens, EqualLettersTakeLinearTime) {
  AddedTokens added;
  TokenId id = 0;
  for (const size_t length : {1000, 999, 512, 3}) added.add({std::string(length, 'a') + "b", id++});
  added.add({"a", id});
  added.link();
  const std::string text(16 << 20, 'a');
  std::vector<SpecialSpan> spans;
  added.find(text, 0, text.size(), true, spans);
  ASSERT_EQ(spans.size(), text.size());
  EXPECT_EQ(spans.back().id, id);
}

}  // namespace
}  // namespace sheaf
