#include <algorithm>
#include <charconv>
#include <vector>

#include "core/base/error.h"
#include "core/tokenizer/byte_bpe.h"
#include "core/tokenizer/read_tokenizer.h"

namespace sheaf {
namespace {

constexpr size_t longest_token = 1024;

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const size_t value = digits.find(c);
    if (value == digits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  return out;
}

struct RankLine {
  std::string bytes;
  int64_t rank;
};

std::optional<RankLine> read_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos) return std::nullopt;
  RankLine out;
  const char* end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + space + 1, end, out.rank);
  if (error != std::errc() || stop != end) return std::nullopt;
  auto bytes = decode_base64(line.substr(0, space));
  if (!bytes || bytes->empty()) return std::nullopt;
  out.bytes = std::move(*bytes);
  return out;
}

// Splits off the next line, without its ending.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<AddedToken> llama3_special() {
  constexpr TokenId base = 128000;
  std::vector<AddedToken> all = {{"<|begin_of_text|>", base},
                                 {"<|end_of_text|>", base + 1},
                                 {"<|start_header_id|>", base + 6},
                                 {"<|end_header_id|>", base + 7},
                                 {"<|eot_id|>", base + 9},
                                 // Llama 3.1 gave names to three reserved tokens; both names are read.
                                 {"<|finetune_right_pad_id|>", base + 4},
                                 {"<|eom_id|>", base + 8},
                                 {"<|python_tag|>", base + 10}};
  int reserved = 0;
  for (TokenId id = base + 2; id < base + 256; ++id)
    if (id != base + 6 && id != base + 7 && id != base + 9)
      all.push_back({fmt::format("<|reserved_special_token_{}|>", reserved++), id});
  return all;
}

/// The added tokens of gpt-oss. o200k_base by itself has two of these ids; the others are free there.
std::vector<AddedToken> harmony_special() {
  std::vector<AddedToken> all = {{"<|startoftext|>", 199998}, {"<|endoftext|>", 199999},
                                 {"<|return|>", 200002},      {"<|constrain|>", 200003},
                                 {"<|channel|>", 200005},     {"<|start|>", 200006},
                                 {"<|end|>", 200007},         {"<|message|>", 200008},
                                 {"<|call|>", 200012},        {"<|endofprompt|>", 200018}};
  const size_t named = all.size();
  for (TokenId id = 200000; id < 201088; ++id)
    if (std::ranges::find(all.begin(), all.begin() + static_cast<ptrdiff_t>(named), id, &AddedToken::id) ==
        all.begin() + static_cast<ptrdiff_t>(named))
      all.push_back({fmt::format("<|reserved_{}|>", id), id});
  return all;
}

std::vector<AddedToken> special_of(size_t ranks) {
  if (ranks == 128000) return llama3_special();
  if (ranks == 100256)
    return {{"<|endoftext|>", 100257},
            {"<|fim_prefix|>", 100258},
            {"<|fim_middle|>", 100259},
            {"<|fim_suffix|>", 100260},
            {"<|endofprompt|>", 100276}};
  if (ranks == 199998) return harmony_special();
  return {};
}

}  // namespace

bool looks_like_tiktoken(std::string_view text) {
  return read_line(take_line(text = text.substr(0, std::min(text.size(), size_t{4096})))).has_value();
}

std::unique_ptr<SplittingTokenizer> read_tiktoken(std::string_view text, const std::string& source) {
  std::vector<RankLine> lines;
  size_t number = 0;
  int64_t highest = -1;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = take_line(rest);
    ++number;
    if (line.empty()) continue;
    auto entry = read_line(line);
    if (!entry) refuse("{}:{}: this is not a line of a tiktoken file (\"base64 rank\")", source, number);
    if (entry->rank < 0 || entry->rank >= Vocabulary::most_tokens)
      refuse("{}:{}: rank {} is out of range", source, number, entry->rank);
    if (entry->bytes.size() > longest_token)
      refuse("{}:{}: the token has {} bytes; at most {} are allowed", source, number, entry->bytes.size(),
             longest_token);
    highest = std::max(highest, entry->rank);
    lines.push_back(std::move(*entry));
  }
  if (lines.empty()) refuse("{}: the file has no tokens", source);
  if (highest >= static_cast<int64_t>(lines.size()) * 2 + 1024)
    refuse("{}: rank {} is too large for {} tokens", source, highest, lines.size());

  const std::vector<AddedToken> special = special_of(lines.size());
  TokenId last = static_cast<TokenId>(highest);
  for (const AddedToken& s : special) last = std::max(last, s.id);

  ByteBpeParts parts;
  Vocabulary& vocabulary = parts.vocabulary;
  vocabulary.resize(static_cast<size_t>(last) + 1);
  std::vector<bool> taken(static_cast<size_t>(last) + 1);
  for (RankLine& line : lines) {
    if (taken[static_cast<size_t>(line.rank)]) refuse("{}: rank {} appears twice", source, line.rank);
    taken[static_cast<size_t>(line.rank)] = true;
    vocabulary.set(static_cast<TokenId>(line.rank), std::move(line.bytes), true);
  }
  // Any two neighbours whose bytes are a token merge, the lowest rank first.
  parts.merges.reserve(lines.size() * 3);
  for (TokenId id = 0; id <= static_cast<TokenId>(highest); ++id) {
    const std::string_view bytes = vocabulary.bytes(id);
    if (vocabulary.find_id(bytes) != id) continue;
    for (size_t at = 1; at < bytes.size(); ++at) {
      const TokenId left = vocabulary.find_id(bytes.substr(0, at));
      if (left < 0) continue;
      const TokenId right = vocabulary.find_id(bytes.substr(at));
      if (right >= 0) parts.merges.add(left, right, static_cast<uint32_t>(id), id);
    }
  }
  for (const AddedToken& s : special) {
    if (vocabulary.bytes(s.id).empty() || s.content.starts_with("<|reserved"))
      vocabulary.set(s.id, s.content, false);
    parts.added.add(s);
  }
  if (lines.size() == 199998)
    parts.words = {"o200k", {CutRule::o200k}};
  else
    parts.words = {lines.size() == 128000 ? "llama3" : "cl100k", {CutRule::cl100k}};
  parts.whole_words_first = true;
  auto tokenizer = std::make_unique<ByteBpe>(std::move(parts));
  tokenizer->bos = tokenizer->find("<|begin_of_text|>");
  tokenizer->starts_with_bos = tokenizer->bos.has_value();
  tokenizer->eos = tokenizer->find("<|end_of_text|>");
  if (!tokenizer->eos) tokenizer->eos = tokenizer->find("<|endoftext|>");
  tokenizer->collect_end_tokens();
  return tokenizer;
}

}  // namespace sheaf
