#include "core/tokenizer/char_bpe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr std::string_view block = "\xE2\x96\x81";  // U+2581
constexpr size_t longest_token = 1024;

size_t pair(char before, char after) {
  return static_cast<size_t>(static_cast<unsigned char>(before)) << 8 | static_cast<unsigned char>(after);
}

}  // namespace

std::string spaces_from_blocks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t found = 0; (found = text.find(block)) != std::string_view::npos;) {
    out.append(text.substr(0, found)).push_back(' ');
    text.remove_prefix(found + block.size());
  }
  return out.append(text);
}

int byte_of_spelling(std::string_view s) {
  if (s.size() != 6 || !s.starts_with("<0x") || s[5] != '>') return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  const int high = digit(s[3]), low = digit(s[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void merges_from_scores(CharBpeParts& parts, std::span<const float> scores, const std::string& source) {
  Vocabulary& vocabulary = parts.vocabulary;
  std::vector<TokenId> pieces;
  std::vector<float> order;
  for (TokenId id = 0; id < parts.tokens; ++id) {
    if (vocabulary.find_id(vocabulary.bytes(id)) != id) continue;
    const float score = scores[static_cast<size_t>(id)];
    if (!std::isfinite(score)) refuse("{}: the score of token {} is not a number", source, id);
    if (vocabulary.bytes(id).size() > longest_token)
      refuse("{}: token {} is {} bytes long; at most {} are allowed", source, id, vocabulary.bytes(id).size(),
             longest_token);
    pieces.push_back(id);
    order.push_back(score);
  }
  std::ranges::sort(order, std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  const auto rank_of = [&order](float score) {
    return static_cast<uint32_t>(std::ranges::lower_bound(order, score, std::greater<>()) - order.begin());
  };
  // A character that is no token of its own can still be part of a merge.
  for (const TokenId id : pieces) {
    const std::string bytes = vocabulary.bytes(id);
    for (size_t at = 0; at < bytes.size(); at += sequence_bytes(bytes[at])) {
      const std::string_view character = std::string_view(bytes).substr(at, sequence_bytes(bytes[at]));
      if (vocabulary.find_id(character) >= 0) continue;
      const TokenId extra = vocabulary.size();
      vocabulary.resize(static_cast<size_t>(extra) + 1);
      vocabulary.set(extra, std::string(character), true);
    }
  }
  parts.merges.reserve(pieces.size() * 4);
  for (const TokenId id : pieces) {
    const std::string_view bytes = vocabulary.bytes(id);
    const uint32_t rank = rank_of(scores[static_cast<size_t>(id)]);
    for (size_t at = sequence_bytes(bytes[0]); at < bytes.size(); at += sequence_bytes(bytes[at])) {
      const TokenId left = vocabulary.find_id(bytes.substr(0, at));
      const TokenId right = vocabulary.find_id(bytes.substr(at));
      if (left >= 0 && right >= 0) parts.merges.add(left, right, rank, id);
    }
  }
}

CharBpe::CharBpe(CharBpeParts parts)
    : SplittingTokenizer(std::move(parts.vocabulary), std::move(parts.added),
                         parts.space_in_front != CharBpeParts::Space::never),
      parts_(std::move(parts)) {
  for (size_t c = 0; c < ascii_tokens_.size(); ++c) {
    const char byte = static_cast<char>(c);
    ascii_tokens_[c] = vocabulary().find_id({&byte, 1});
  }
  for (TokenId id = 0; id < parts_.tokens; ++id) {
    const std::string& bytes = vocabulary().bytes(id);
    if (vocabulary().find_id(bytes) != id) continue;
    for (size_t at = 1; at < bytes.size(); ++at) joined_[pair(bytes[at - 1], bytes[at])] = true;
  }
  const bool all_bytes = std::ranges::none_of(parts_.byte_tokens, [](TokenId id) { return id < 0; });
  cuts_ = all_bytes || !parts_.unknown || !parts_.fuse_unknown;
}

void CharBpe::encode_gap(std::string_view gap, Before before, Tokens& out) const {
  if (gap.size() >= std::numeric_limits<int32_t>::max())
    refuse("a text of {} bytes is too long to tokenize", gap.size());
  using Space = CharBpeParts::Space;
  const bool wanted = parts_.space_in_front == Space::always  ? before != Before::text
                      : parts_.space_in_front == Space::first ? before == Before::nothing
                                                              : false;
  const bool starts_with_space = gap.starts_with(' ') || gap.starts_with(block);
  scratch_.lend([&](Scratch& scratch) {
    std::string& text = scratch.text;
    text.assign(wanted && (parts_.space_before_space || !starts_with_space) ? " " : "");
    if (gap.find(block) == std::string_view::npos)
      text.append(gap);
    else
      text += spaces_from_blocks(gap);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = word_end(text, begin);
      const std::string_view word = std::string_view(text).substr(begin, end - begin);
      begin = end;
      scratch.cache.append(word, out, [&] { encode_word(word, scratch, out); });
    }
  });
}

// A cut between two characters that no token holds side by side changes nothing.
size_t CharBpe::word_end(std::string_view text, size_t begin) const {
  for (size_t at = begin + 1; at < text.size(); ++at) {
    if (inside_character(text[at])) continue;
    if ((cuts_ && !joined_[pair(text[at - 1], text[at])]) || (parts_.cut_at_spaces && text[at] == ' '))
      return at;
  }
  return text.size();
}

void CharBpe::push_bytes(std::string_view bytes, Tokens& out) const {
  const auto token = [this](char c) { return parts_.byte_tokens[static_cast<unsigned char>(c)]; };
  if (std::ranges::all_of(bytes, [&](char c) { return token(c) >= 0; })) {
    for (const char c : bytes) out.push_back(token(c));
  } else if (parts_.unknown && !(parts_.fuse_unknown && !out.empty() && out.back() == *parts_.unknown)) {
    out.push_back(*parts_.unknown);
  }
}

void CharBpe::encode_word(std::string_view word, Scratch& scratch, Tokens& out) const {
  Tokens& symbols = scratch.symbols;
  symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const uint32_t bytes = sequence_bytes(word[at]);
    const std::string_view character = word.substr(at, bytes);
    const TokenId id =
        bytes == 1 ? ascii_tokens_[static_cast<unsigned char>(word[at])] : vocabulary().find_id(character);
    if (id >= 0)
      symbols.push_back(id);
    else
      push_bytes(character, symbols);
    at += bytes;
  }
  merge_all(parts_.merges, symbols, scratch.merge);
  for (const TokenId id : symbols) {
    if (id < parts_.tokens)
      out.push_back(id);
    else
      push_bytes(vocabulary().bytes(id), out);
  }
}

std::optional<TokenId> CharBpe::find(std::string_view piece) const {
  if (const auto id = SplittingTokenizer::find(piece); id && *id < parts_.tokens) return id;
  if (piece.size() == 1 && parts_.byte_tokens[static_cast<unsigned char>(piece[0])] >= 0)
    return parts_.byte_tokens[static_cast<unsigned char>(piece[0])];
  return std::nullopt;
}

std::string CharBpe::describe() const {
  return fmt::format("{}, {} tokens", parts_.name, parts_.tokens);
}

}  // namespace sheaf
