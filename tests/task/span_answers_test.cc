// Values that are copied: whatever is picked of the allowed tokens stands in the document, and all that
// stands there can be picked.
#include <gtest/gtest.h>
#include <set>

#include "core/base/error.h"
#include "core/task/find_text.h"
#include "core/task/text_answers.h"
#include "core/task/value.h"
#include "core/text/printable.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"
#include "tests/made_up_tokenizer.h"

namespace sheaf {
namespace {

using test::bytes_and, test::MadeUpTokenizer;

std::shared_ptr<const TokenSpelling> tokens_of(const Tokenizer& tokenizer) {
  const Job job;
  return make_span_tokens({tokenizer, chat_template("plain"), job});
}

/// Whether `text` can be written, token by token, and is complete with its last token.
bool accepts(const SpanAnswers& answers, const Tokens& text) {
  SpanAnswers::Node node = SpanAnswers::root;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto allowed = answers.allowed(node);
    if (!std::ranges::binary_search(allowed, text[i])) return false;
    node = answers.advance(node, text[i]);
    if (node < 0) return i + 1 == text.size();
  }
  return false;
}

Tokens as_bytes(const MadeUpTokenizer& tokenizer, const std::string& text) {
  Tokens tokens;
  for (const char c : text) tokens.push_back(*tokenizer.find({&c, 1}));
  return tokens;
}

std::string literal(std::string_view text) {
  return " " + nlohmann::json(text).dump();
}

class SpanAnswersTest : public testing::Test {
 protected:
  bool takes(std::string_view document, const std::string& value) const {
    return accepts({tokens_, document, 0, document.size()}, as_bytes(tokenizer_, literal(value)));
  }
  MadeUpTokenizer tokenizer_ = bytes_and({" \"", "\",", " null", "\"}\n"});
  std::shared_ptr<const TokenSpelling> tokens_ = tokens_of(tokenizer_);
};

TEST_F(SpanAnswersTest, AllowsWholeWordsOfOneLine) {
  const std::string document = "Oak & Pine tea, 12oz \"XL\" 7\\8\nGreen  box";
  for (const char* value : {"Oak", "Oak & Pine tea", "tea", "tea,", "12oz", "12", "oz", "\"XL\"", "XL",
                            "7\\8", "Green  box", "oak", "GREEN"})
    EXPECT_TRUE(takes(document, value)) << value;
  for (const char* value : {"", " ", "Oa", "ak", "Oak ", " Oak", "Oak Pine", "1", "12o", "8\nGreen", "Birch",
                            "Green box", "tea, 12oz XL", "&", "& Pine", ", 12oz", "\\8"})
    EXPECT_FALSE(takes(document, value)) << value;
}

TEST(BareSpans, EndAtALineBreakAndHaveNoQuotes) {
  const MadeUpTokenizer tokenizer = bytes_and({" null", "null", " Oak", "\n\n"});
  const Job job;
  const std::string document = "Oak \"XL\" 7\\8\nGreen null tea";
  const auto takes = [&](bool spaced, const std::string& text) {
    const auto tokens = make_bare_span_tokens({tokenizer, chat_template("plain"), job},
                                              {*tokenizer.find(spaced ? " null" : "null")}, spaced);
    return accepts({tokens, document, 0, document.size()}, as_bytes(tokenizer, text));
  };
  for (const char* text : {"Oak", "oak", "\"XL\"", "Oak \"XL\" 7\\8", "Green null", "tea", "XL"}) {
    EXPECT_TRUE(takes(true, std::string(" ") + text + "\n")) << text;
    EXPECT_TRUE(takes(false, std::string(text) + "\n")) << text;
    EXPECT_FALSE(takes(true, std::string(text) + "\n")) << "without a space: " << text;
    EXPECT_FALSE(takes(false, std::string(" ") + text + "\n")) << "with a space: " << text;
    EXPECT_FALSE(takes(false, text)) << "without an end: " << text;
  }
  for (const char* text : {"Oa", "8\nGreen", "Birch", "", "\\\"XL\\\""})
    EXPECT_FALSE(takes(false, std::string(text) + "\n")) << text;
  const auto tokens =
      make_bare_span_tokens({tokenizer, chat_template("plain"), job}, {*tokenizer.find("null")}, false);
  const SpanAnswers answers(tokens, document, 0, document.size());
  EXPECT_TRUE(accepts(answers, {*tokenizer.find("null")})) << "null needs no end";
  Tokens two = as_bytes(tokenizer, "tea");
  two.push_back(*tokenizer.find("\n\n"));
  EXPECT_TRUE(accepts(answers, two));
}

TEST_F(SpanAnswersTest, BeginsWithPunctuationOnlyWhereItBelongsToWhatFollows) {
  const std::string document = "(large) #3, sea salt: -20 12-oz | € 5 ¡sí! .5 mm\u2019s \u201cOak\u201d";
  for (const char* value :
       {"(large)", "large)", "#3", "3", "sea salt", "-20", "oz", "€ 5", "€", "¡sí!", ".5", "\u201cOak\u201d"})
    EXPECT_TRUE(takes(document, value)) << value;
  for (const char* value : {", sea salt", ") #3", ": -20", "-oz", "| € 5", "! .5", "\u2019s", ","})
    EXPECT_FALSE(takes(document, value)) << value;
}

TEST_F(SpanAnswersTest, IsNeverPunctuationAlone) {
  const std::string document = "(large) #3 (!) Oak! a-b --- €";
  for (const char* value : {"(", "#", "(!", "(!)", "-", "---", "!", "(large) #", "large) #"})
    EXPECT_FALSE(takes(document, value)) << value;
  for (const char* value : {"(large)", "(large) #3", "Oak!", "a-", "€"})
    EXPECT_TRUE(takes(document, value)) << value;
  EXPECT_FALSE(may_end_value(document, 1));
  EXPECT_TRUE(may_end_value(document, document.find(" #")));
}

TEST_F(SpanAnswersTest, TakesNoEmojiApart) {
  const std::string chad = "\U0001F1F9\U0001F1E9", ireland = "\U0001F1EE\U0001F1EA",
                    family = "\U0001F468\u200D\U0001F469\u200D\U0001F467", thumb = "\U0001F44D\U0001F3FD",
                    england = "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
                    heart = "\u2764\uFE0F\u200D\U0001F525";
  const std::string document = chad + ireland + " " + family + thumb + " x" + england + heart;
  for (const std::string& value :
       {chad, ireland, chad + ireland, family, thumb, family + thumb, england, heart, "x" + england})
    EXPECT_TRUE(takes(document, value)) << value;
  for (const char* value : {"\U0001F1F9", "\U0001F1E9", "\U0001F1E9\U0001F1EE", "\U0001F468", "\U0001F467",
                            "\U0001F469\u200D\U0001F467", "\U0001F44D", "\U0001F3FD", "\U0001F3F4", "\u2764",
                            "\u2764\uFE0F", "\U0001F525"})
    EXPECT_FALSE(takes(document, value)) << value;
  EXPECT_TRUE(takes("\u0646\u0645\u06CC\u200C\u062E", "\u0646\u0645\u06CC\u200C\u062E"));
  EXPECT_FALSE(takes("\u0646\u0645\u06CC\u200C\u062E", "\u0646\u0645\u06CC"))
      << "a joiner holds a word together";
  // Letters of flags without end take no time.
  std::string flags;
  for (int i = 0; i < 100'000; ++i) flags += "\U0001F1F9";
  int64_t splits = 0;
  for (size_t at = 0; at < flags.size(); at += 4) splits += splits_words(flags, at) ? 1 : 0;
  EXPECT_GT(splits, 0);
}

TEST_F(SpanAnswersTest, CutsOnlyBetweenWholeCharactersWithTheirMarks) {
  EXPECT_TRUE(takes("\u65b0\u6b3e\u7537\u978b", "\u6b3e\u7537"));
  EXPECT_TRUE(takes("e\u0301te\u0301", "e\u0301te\u0301"));
  EXPECT_FALSE(takes("e\u0301te\u0301", "e\u0301te")) << "its mark is missing";
  EXPECT_FALSE(takes("\u00dcber", "ber"));
}

TEST_F(SpanAnswersTest, NullIsAlwaysAllowed) {
  for (const std::string document : {"", " \n ", "Oak"})
    EXPECT_TRUE(accepts({tokens_, document, 0, document.size()}, {*tokenizer_.find(" null")})) << document;
  const SpanAnswers nothing(tokens_, " \n ", 0, 3);
  EXPECT_EQ(nothing.allowed(SpanAnswers::root).size(), 1u) << "there is nothing to copy";
}

TEST_F(SpanAnswersTest, ATokenMayCloseTheTextAndGoOn) {
  const SpanAnswers answers(tokens_, "Oak", 0, 3);
  for (const char* ending : {"\"", "\",", "\"}\n"}) {
    Tokens tokens{*tokenizer_.find(" \""), *tokenizer_.find("O"), *tokenizer_.find("a"),
                  *tokenizer_.find("k")};
    tokens.push_back(*tokenizer_.find(ending));
    EXPECT_TRUE(accepts(answers, tokens)) << ending;
  }
}

TEST_F(SpanAnswersTest, OfAPartAllowOnlyItsText) {
  const std::string document = "Oak tea green box";
  const SpanAnswers part(tokens_, document, 5, 14);  // "ea green b"
  const auto takes_part = [&](const char* value) {
    return accepts(part, as_bytes(tokenizer_, literal(value)));
  };
  EXPECT_TRUE(takes_part("green"));
  for (const char* value : {"Oak", "box", "ea", "b", "green b", "tea"})
    EXPECT_FALSE(takes_part(value)) << value;
}

TEST_F(SpanAnswersTest, NeverLeadsToADeadEnd) {
  // No token spells x, so no value may hold it.
  std::vector<std::string> pieces;
  for (const char c : std::string("OakteabrO \"nul,")) pieces.emplace_back(1, c);
  const MadeUpTokenizer tokenizer(pieces);
  const SpanAnswers answers(tokens_of(tokenizer), "Oak boxer tea", 0, 13);
  std::set<SpanAnswers::Node> seen{SpanAnswers::root};
  for (std::vector<SpanAnswers::Node> open{SpanAnswers::root}; !open.empty();) {
    const SpanAnswers::Node node = open.back();
    open.pop_back();
    const auto allowed = answers.allowed(node);
    ASSERT_FALSE(allowed.empty());
    for (const TokenId token : Tokens(allowed.begin(), allowed.end()))
      if (const auto next = answers.advance(node, token); next >= 0 && seen.insert(next).second)
        open.push_back(next);
  }
  EXPECT_GT(seen.size(), 6u);
}

TEST(SpanTokens, ATokenizerWithoutQuotesIsRefused) {
  const MadeUpTokenizer tokenizer({" ", "n", "u", "l", "a"});
  EXPECT_THROW(tokens_of(tokenizer), Error);
}

/// Whether a text that stands between `before` and `after` (0: nothing) may begin with `first`.
bool begins_value(uint32_t before, uint32_t first, uint32_t after) {
  const auto is = [](uint32_t point, int flags) {
    return point != 0 && (char_classes()[point] & flags) != 0;
  };
  const bool joins =
      (first >= 0x200B && first <= 0x200D) || first == 0x2060 || (first >= 0xFE00 && first <= 0xFE0F);
  if (joins || is_hidden(first)) return false;
  if (!is(first, CharClass::is_punct)) return first != '|';
  return after != 0 && !is_space_character(after) &&
         !is(before, CharClass::is_letter | CharClass::is_number | CharClass::is_mark) &&
         std::string(",;:!?)]}").find(static_cast<char>(first)) == std::string::npos;
}

/// Whether a text may end before a place: not behind a run of punctuation that what follows belongs to.
bool ends_value(const std::vector<uint32_t>& points, size_t end) {
  const auto point = [&](size_t at) { return at < points.size() ? points[at] : 0; };
  size_t begin = end;
  while (begin > 0 && ((char_classes()[points[begin - 1]] & CharClass::is_punct) || points[begin - 1] == '|'))
    --begin;
  return begin == end || !begins_value(begin > 0 ? points[begin - 1] : 0, points[begin], point(begin + 1));
}

/// All texts from the beginning of a word to the end of one, by a plain look at every pair of places.
std::set<std::string> all_spans(const std::string& document) {
  std::vector<size_t> places;
  for (size_t at = 0; at <= document.size(); at += at < document.size() ? sequence_bytes(document[at]) : 1)
    places.push_back(at);
  std::vector<uint32_t> points;
  for (size_t i = 0; i + 1 < places.size(); ++i)
    points.push_back(decode_valid(document.data() + places[i]).point);
  std::set<std::string> spans;
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t j = i + 1; j < places.size(); ++j) {
      const std::string text = document.substr(places[i], places[j] - places[i]);
      const bool control =
          std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
      const auto point = [&](size_t place) {
        return place + 1 < places.size() ? decode_valid(document.data() + places[place]).point : 0;
      };
      if (!control && begins_value(i > 0 ? point(i - 1) : 0, point(i), point(i + 1)) &&
          splits_words(document, places[i]) && splits_words(document, places[j]) && ends_value(points, j) &&
          !is_space_character(decode_valid(document.data() + places[i]).point) &&
          !is_space_character(decode_valid(document.data() + places[j - 1]).point))
        spans.insert(text);
    }
  return spans;
}

TEST(SpanAnswersFuzz, AllowExactlyTheSpansOfTheDocument) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    Record record;
    record.document = test::random_document(random, 2 + static_cast<int>(random() % 14));
    const MadeUpTokenizer tokenizer = test::random_tokenizer(random, record.document, 60);
    const SpanAnswers answers(tokens_of(tokenizer), record.document, 0, record.document.size());
    const std::set<std::string> spans = all_spans(record.document);
    for (const std::string& span : spans) {
      EXPECT_TRUE(accepts(answers, as_bytes(tokenizer, literal(span)))) << seed << ": " << span;
      Tokens longest;
      tokenizer.encode(literal(span), false, longest);
      EXPECT_TRUE(accepts(answers, longest)) << seed << ": " << span;
    }
    // Any walk ends with a span or null, or is cut.
    const Attribute attribute{"Brand", "", ValueType::span};
    int found = 0;
    for (int walk = 0; walk < 60; ++walk) {
      Tokens tokens;
      SpanAnswers::Node node = SpanAnswers::root;
      while (node >= 0 && tokens.size() < 25) {
        const auto allowed = answers.allowed(node);
        ASSERT_TRUE(std::ranges::is_sorted(allowed));
        ASSERT_EQ(std::ranges::adjacent_find(allowed), allowed.end());
        ASSERT_FALSE(allowed.empty());
        tokens.push_back(allowed[random() % allowed.size()]);
        node = answers.advance(node, tokens.back());
      }
      RowAnswer answer = read_value(attribute, tokenizer.decode(tokens, true), node >= 0);
      if (const auto* text = std::get_if<std::string>(&answer.value); text && node < 0) {
        EXPECT_TRUE(find_text(record, *text)) << seed << ": " << *text;
      }
      bind_span(record, node >= 0, answer);
      if (const auto* text = std::get_if<std::string>(&answer.value)) {
        EXPECT_TRUE(spans.contains(*text)) << seed << ": " << *text;
        ++found;
      }
    }
    EXPECT_EQ(found > 0, !spans.empty()) << seed;
  }
}

}  // namespace
}  // namespace sheaf
