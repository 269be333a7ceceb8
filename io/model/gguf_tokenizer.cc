#include <algorithm>

#include "core/base/error.h"
#include "core/text/utf8.h"
#include "core/tokenizer/byte_bpe.h"
#include "core/tokenizer/char_bpe.h"
#include "io/model/gguf.h"

namespace sheaf {
namespace {

// tokenizer.ggml.token_type
enum TokenType : int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class GgufVocabulary {
 public:
  explicit GgufVocabulary(const GgufFile& file) : file_(file), texts_(file.strings("tokenizer.ggml.tokens")) {
    if (texts_.empty() || static_cast<int64_t>(texts_.size()) > Vocabulary::most_tokens)
      refuse("{}: the vocabulary has {} tokens; it must have 1 to {}", file.path(), texts_.size(),
             Vocabulary::most_tokens);
    if (file.has("tokenizer.ggml.token_type")) types_ = file.ints("tokenizer.ggml.token_type");
    if (!types_.empty() && types_.size() != texts_.size())
      refuse("{}: there are {} token types for {} tokens", file.path(), types_.size(), texts_.size());
    for (size_t i = 0; i < texts_.size(); ++i)
      if (valid_prefix(texts_[i]) != texts_[i].size())
        refuse("{}: token {} is not valid UTF-8", file.path(), i);
  }

  size_t count() const { return texts_.size(); }
  std::string_view text(size_t id) const { return texts_[id]; }
  int64_t type(size_t id) const { return types_.empty() ? int64_t{normal} : types_[id]; }
  bool is_added(size_t id) const {
    return type(id) == control || type(id) == unknown || type(id) == user_defined;
  }

  AddedToken added(size_t id, bool rstrip = false) const {
    return {std::string(texts_[id]), static_cast<TokenId>(id), type(id) != user_defined, false, rstrip};
  }

  std::optional<TokenId> id(const char* key) const {
    const std::string name = std::string("tokenizer.ggml.") + key;
    if (!file_.has(name)) return std::nullopt;
    const uint64_t value = file_.uint(name);
    // Some files write -1 for "none".
    if (value >= texts_.size()) return std::nullopt;
    return static_cast<TokenId>(value);
  }

 private:
  const GgufFile& file_;
  std::vector<std::string_view> texts_;
  std::vector<int64_t> types_;
};

std::unique_ptr<SplittingTokenizer> byte_level(const GgufFile& file, const GgufVocabulary& words) {
  ByteBpeParts parts;
  const std::string pre(file.string("tokenizer.ggml.pre", "default"));
  GgufPre rules = pre_of_gguf(pre, file.path());
  parts.words = std::move(rules.words);
  parts.whole_words_first = rules.whole_words_first;
  parts.nfc = rules.nfc;
  parts.space_in_front = file.boolean("tokenizer.ggml.add_space_prefix", false);
  parts.vocabulary.resize(words.count());
  for (size_t i = 0; i < words.count(); ++i) {
    const auto id = static_cast<TokenId>(i);
    auto bytes = words.is_added(i) ? std::nullopt : bytes_of_spelling(words.text(i));
    const bool findable = bytes.has_value();
    parts.vocabulary.set(id, findable ? std::move(*bytes) : std::string(words.text(i)), findable);
    if (words.is_added(i)) parts.added.add(words.added(i));
  }
  const auto merges = file.strings("tokenizer.ggml.merges");
  parts.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || valid_prefix(merge) != merge.size())
      refuse("{}: merge {} does not have two parts", file.path(), i);
    const auto find = [&](std::string_view spelling) {
      const auto bytes = bytes_of_spelling(spelling);
      return bytes ? parts.vocabulary.find_id(*bytes) : -1;
    };
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    const TokenId a = find(left), b = find(right), c = find(std::string(left).append(right));
    if (a < 0 || b < 0 || c < 0)
      refuse("{}: merge {} makes or uses a token that is not in the vocabulary", file.path(), i);
    parts.merges.add(a, b, static_cast<uint32_t>(i), c);
  }
  return std::make_unique<ByteBpe>(std::move(parts));
}

std::unique_ptr<SplittingTokenizer> sentencepiece(const GgufFile& file, const GgufVocabulary& words) {
  CharBpeParts parts;
  parts.name = "SentencePiece BPE";
  parts.tokens = static_cast<int32_t>(words.count());
  parts.space_in_front = file.boolean("tokenizer.ggml.add_space_prefix", true) ? CharBpeParts::Space::always
                                                                               : CharBpeParts::Space::never;
  if (file.boolean("tokenizer.ggml.remove_extra_whitespaces", false))
    refuse("{}: a tokenizer that removes extra white space is not supported", file.path());
  // Phi-3's added tokens take the white space after them along; GGUF has no field for that.
  const bool phi3 = file.string("general.architecture", "") == "phi3";
  parts.vocabulary.resize(words.count());
  for (size_t i = 0; i < words.count(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = words.text(i);
    const int value = words.type(i) == byte ? byte_of_spelling(text) : -1;
    if (value >= 0) {
      parts.byte_tokens[static_cast<size_t>(value)] = id;
      parts.vocabulary.set(id, std::string(1, static_cast<char>(value)), false);
    } else if (words.is_added(i)) {
      AddedToken token = words.added(i, phi3 && text != "<unk>" && text != "<s>" && text != "<|endoftext|>");
      token.content = spaces_from_blocks(token.content);
      parts.vocabulary.set(id, token.content, false);
      parts.added.add(std::move(token));
    } else {
      parts.vocabulary.set(id, spaces_from_blocks(text),
                           words.type(i) == normal && text.find(' ') == std::string_view::npos);
    }
  }
  const auto scores = file.floats("tokenizer.ggml.scores");
  if (scores.size() != words.count())
    refuse("{}: there are {} scores for {} tokens", file.path(), scores.size(), words.count());
  parts.unknown = words.id("unknown_token_id");
  merges_from_scores(parts, scores, file.path());
  return std::make_unique<CharBpe>(std::move(parts));
}

}  // namespace

std::unique_ptr<SplittingTokenizer> read_gguf_tokenizer(const GgufFile& file) {
  if (!file.has("tokenizer.ggml.model"))
    refuse("{}: the file has no tokenizer (tokenizer.ggml.model is missing)", file.path());
  const std::string kind(file.string("tokenizer.ggml.model"));
  if (kind != "gpt2" && kind != "llama")
    refuse("{}: tokenizer kind \"{}\" is not supported (supported: gpt2, llama)", file.path(), kind);
  const GgufVocabulary words(file);
  auto tokenizer = kind == "gpt2" ? byte_level(file, words) : sentencepiece(file, words);
  tokenizer->bos = words.id("bos_token_id");
  tokenizer->eos = words.id("eos_token_id");
  tokenizer->collect_end_tokens();
  for (const char* key : {"eot_token_id", "eom_token_id"})
    if (const auto id = words.id(key);
        id && std::ranges::find(tokenizer->end_tokens, *id) == tokenizer->end_tokens.end())
      tokenizer->end_tokens.push_back(*id);
  // Where the file does not say: SentencePiece models and Llama 3 start with bos.
  const bool usual = kind == "llama" || file.string("tokenizer.ggml.pre", "") == "llama-bpe" ||
                     file.string("tokenizer.ggml.pre", "") == "tekken";
  tokenizer->starts_with_bos =
      file.boolean("tokenizer.ggml.add_bos_token", usual) && tokenizer->bos.has_value();
  return tokenizer;
}

}  // namespace sheaf
