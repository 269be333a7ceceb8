#include "core/metrics/answer_tokens.h"

#include <algorithm>

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

TokenBag::TokenBag(std::vector<std::string> tokens) : total_(tokens.size()) {
  for (std::string& token : tokens) ++counts_[std::move(token)];
}

TokenOverlap TokenBag::overlap(const TokenBag& wanted) const {
  if (wanted.counts_.size() > counts_.size()) {
    const TokenOverlap other = wanted.overlap(*this);
    return {other.recall, other.precision, other.f1};
  }
  size_t shared = 0;
  for (const auto& [token, count] : wanted.counts_)
    if (const auto found = counts_.find(token); found != counts_.end())
      shared += std::min(count, found->second);
  if (shared == 0) return {};
  const auto same = static_cast<double>(shared);
  const double precision = same / static_cast<double>(total_);
  const double recall = same / static_cast<double>(wanted.total_);
  return {precision, recall, 2 * precision * recall / (precision + recall)};
}

}  // namespace sheaf
