#include "core/metrics/answer_tokens.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <iterator>

#include "core/metrics/python_text.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

bool is_article(std::string_view word) {
  return word == "a" || word == "an" || word == "the";
}

bool is_word_at(const char* p) {
  const char c = *p;
  if (static_cast<unsigned char>(c) < 0x80)
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return python::is_word(decode_valid(p).point);
}

}  // namespace

std::string remove_articles(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word_at(&text[end])) end += sequence_bytes(text[end]);
    if (end > at) {
      const std::string_view word = text.substr(at, end - at);
      out += is_article(word) ? std::string_view(" ") : word;
    } else {
      end += sequence_bytes(text[end]);
      out += text.substr(at, end - at);
    }
    at = end;
  }
  return out;
}

std::vector<std::string> answer_tokens(std::string_view text) {
  std::string plain = python::lower(text);
  std::erase_if(plain, python::is_punctuation);
  const std::string bare = remove_articles(plain);
  const auto words = python::split(bare);
  return {words.begin(), words.end()};
}

std::string joined_tokens(const std::vector<std::string>& tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

TokenOverlap token_overlap(std::vector<std::string> predicted, std::vector<std::string> wanted) {
  std::sort(predicted.begin(), predicted.end());
  std::sort(wanted.begin(), wanted.end());
  std::vector<std::string> shared;
  std::set_intersection(predicted.begin(), predicted.end(), wanted.begin(), wanted.end(),
                        std::back_inserter(shared));
  if (shared.empty()) return {};
  const auto same = static_cast<double>(shared.size());
  const double precision = same / static_cast<double>(predicted.size());
  const double recall = same / static_cast<double>(wanted.size());
  return {precision, recall, 2 * precision * recall / (precision + recall)};
}

double token_f1(std::vector<std::string> predicted, std::vector<std::string> wanted) {
  return token_overlap(std::move(predicted), std::move(wanted)).f1;
}

}  // namespace sheaf
