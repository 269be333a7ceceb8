#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/utf8.h"
#include "core/tokenizer/byte_bpe.h"
#include "core/tokenizer/char_bpe.h"
#include "core/tokenizer/read_tokenizer.h"
#include "core/tokenizer/tokenizer_json_reader.h"

namespace sheaf {
namespace {

using nlohmann::json;

const json null_json;

const json& member(const json& object, const char* key) {
  if (!object.is_object()) return null_json;
  const auto it = object.find(key);
  return it == object.end() ? null_json : *it;
}

std::string text_of(const json& object, const char* key) {
  const json& v = member(object, key);
  return v.is_string() ? v.get<std::string>() : std::string();
}

bool flag_of(const json& object, const char* key, bool fallback = false) {
  const json& v = member(object, key);
  return v.is_boolean() ? v.get<bool>() : fallback;
}

// The parts of a Sequence, or the one step itself.
std::vector<const json*> steps_of(const json& node, const char* list) {
  std::vector<const json*> steps;
  if (node.is_null()) return steps;
  if (text_of(node, "type") != "Sequence") return {&node};
  for (const json& step : member(node, list)) steps.push_back(&step);
  return steps;
}

class Builder {
 public:
  Builder(TokenizerJson file, const std::string& source) : file_(std::move(file)), source_(source) {}

  std::unique_ptr<SplittingTokenizer> build() {
    const json& model = member(file_.rest, "model");
    const std::string type = text_of(model, "type");
    if (!file_.has_vocabulary || (!type.empty() && type != "BPE"))
      refuse("{}: model type \"{}\" is not supported (supported: BPE)", source_, type);
    if (member(model, "dropout").is_number() && member(model, "dropout").get<double>() > 0)
      refuse("{}: a tokenizer with dropout is not supported: it gives different ids each time", source_);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_of(model, key).empty()) refuse("{}: model.{} is not supported", source_, key);
    read_added();
    read_pre_tokenizer();
    return byte_level_ ? build_byte_level(model) : build_char_level(model);
  }

 private:
  void read_added() {
    int64_t last = -1;
    for (const auto& [word, id] : file_.vocabulary) last = std::max(last, id);
    for (const json& entry : member(file_.rest, "added_tokens")) {
      const json& id = member(entry, "id");
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= Vocabulary::most_tokens)
        refuse("{}: the id of an added token is missing or out of range", source_);
      if (flag_of(entry, "single_word"))
        refuse("{}: added token \"{}\" asks for single_word, which is not supported", source_,
               text_of(entry, "content"));
      added_.push_back({text_of(entry, "content"), id.get<TokenId>(), flag_of(entry, "special"),
                        flag_of(entry, "lstrip"), flag_of(entry, "rstrip")});
      last = std::max(last, id.get<int64_t>());
    }
    const auto tokens = static_cast<int64_t>(file_.vocabulary.size() + added_.size());
    if (last >= tokens * 2 + 1024)
      refuse("{}: token id {} is too large for {} tokens", source_, last, tokens);
    count_ = static_cast<size_t>(last + 1);
  }

  void read_pre_tokenizer() {
    for (const json* step : steps_of(member(file_.rest, "pre_tokenizer"), "pretokenizers")) {
      const std::string type = text_of(*step, "type");
      if (type == "ByteLevel") {
        byte_level_ = true;
        if (flag_of(*step, "add_prefix_space", true)) {
          if (!rules_.empty())
            refuse("{}: ByteLevel with add_prefix_space after other pre-tokenizers is not supported",
                   source_);
          space_in_front_ = true;
        }
        if (flag_of(*step, "use_regex", true)) rules_.push_back(CutRule::gpt2);
      } else if (type == "Digits") {
        rules_.push_back(flag_of(*step, "individual_digits") ? CutRule::digits_each : CutRule::digits_run);
      } else if (type == "Split") {
        read_split(*step);
      } else if (type == "Metaspace") {
        metaspace_ = step;
      } else {
        refuse("{}: pre-tokenizer \"{}\" is not supported (supported: Split, ByteLevel, Digits, Metaspace)",
               source_, type);
      }
    }
  }

  void read_split(const json& step) {
    const json& pattern = member(step, "pattern");
    const std::string regex = text_of(pattern, "Regex"), behavior = text_of(step, "behavior");
    const bool invert = flag_of(step, "invert");
    if (regex.empty() && text_of(pattern, "String") == " " && behavior == "MergedWithPrevious" && !invert)
      return;  // Gemma's: changes nothing once spaces have been replaced
    // Every known pattern matches all of a text, so matches isolated and gaps removed are the same thing.
    if (!(behavior == "Isolated" || (behavior == "Removed" && invert)))
      refuse("{}: Split with behavior \"{}\" is not supported", source_, behavior);
    const CutRule rule = rule_of_regex(regex, source_);
    const bool leaves_gaps =
        rule == CutRule::number_each || rule == CutRule::number_run || rule == CutRule::ascii_triples;
    if (behavior == "Removed" && leaves_gaps)
      refuse("{}: Split with behavior \"Removed\" is not supported: it would drop text", source_);
    rules_.push_back(rule);
  }

  std::string rule_names() const {
    using enum CutRule;
    static const std::map<std::vector<CutRule>, std::string> names = {
        {{gpt2}, "gpt-2"},    {{cl100k}, "cl100k"}, {{qwen2}, "qwen2"},
        {{tekken}, "tekken"}, {{o200k}, "o200k"},   {{digits_each, gpt2}, "smollm"}};
    const auto found = names.find(rules_);
    return found == names.end() ? "its own cuts" : found->second;
  }

  bool reads_nfc() {
    bool nfc = false;
    for (const json* step : steps_of(member(file_.rest, "normalizer"), "normalizers")) {
      const std::string type = text_of(*step, "type");
      if (type != "NFC") refuse("{}: normalizer \"{}\" is not supported (supported: NFC)", source_, type);
      nfc = true;
    }
    return nfc;
  }

  std::optional<TokenId> unknown_of(const json& model) const {
    const std::string name = text_of(model, "unk_token");
    if (name.empty()) return std::nullopt;
    for (const auto& [word, id] : file_.vocabulary)
      if (word == name) return static_cast<TokenId>(id);
    refuse("{}: the unknown token \"{}\" is not in the vocabulary", source_, name);
  }

  /// Fills the merges by way of `id_of`, which finds a token by its spelling in the file, and adds the added
  /// tokens.
  template <class Parts, class IdOf>
  void read_tables(Parts& parts, IdOf id_of) const {
    parts.merges.reserve(file_.merges.size() / 2);
    std::string joined;
    for (size_t i = 0; i + 1 < file_.merges.size(); i += 2) {
      const std::string &left = file_.merges[i], &right = file_.merges[i + 1];
      joined.assign(left).append(right);
      const TokenId a = id_of(left), b = id_of(right), c = id_of(joined);
      if (a < 0 || b < 0 || c < 0)
        refuse("{}: merge {} makes or uses a token that is not in the vocabulary", source_, i / 2);
      parts.merges.add(a, b, static_cast<uint32_t>(i / 2), c);
    }
    for (const AddedToken& token : added_) {
      parts.vocabulary.set(token.id, token.content, false);
      parts.added.add(token);
    }
  }

  std::unique_ptr<SplittingTokenizer> build_byte_level(const json& model) {
    ByteBpeParts parts;
    parts.nfc = reads_nfc();
    parts.words = {rule_names(), rules_};
    parts.space_in_front = space_in_front_;
    parts.whole_words_first = flag_of(model, "ignore_merges");
    parts.unknown = unknown_of(model);
    parts.fuse_unknown = flag_of(model, "fuse_unk");
    if (metaspace_ != nullptr) refuse("{}: Metaspace together with ByteLevel is not supported", source_);
    if (flag_of(model, "byte_fallback"))
      refuse("{}: byte_fallback together with ByteLevel is not supported", source_);
    parts.vocabulary.resize(count_);
    for (const auto& [word, id] : file_.vocabulary) {
      auto bytes = bytes_of_spelling(word);
      const bool findable = bytes.has_value();
      parts.vocabulary.set(static_cast<TokenId>(id), findable ? std::move(*bytes) : std::string(word),
                           findable);
    }
    read_tables(parts, [&](const std::string& spelling) {
      const auto bytes = bytes_of_spelling(spelling);
      return bytes ? parts.vocabulary.find_id(*bytes) : -1;
    });
    return std::make_unique<ByteBpe>(std::move(parts));
  }

  // Llama 2's older layout: normalizers Prepend and Replace, no pre-tokenizer.
  void read_space_normalizers(CharBpeParts& parts) {
    parts.space_in_front = CharBpeParts::Space::never;
    bool replaced = metaspace_ != nullptr;
    for (const json* step : steps_of(member(file_.rest, "normalizer"), "normalizers")) {
      const std::string type = text_of(*step, "type");
      if (type == "Prepend" && text_of(*step, "prepend") == "\u2581") {
        parts.space_in_front = CharBpeParts::Space::always;
      } else if (type == "Replace" && text_of(member(*step, "pattern"), "String") == " " &&
                 text_of(*step, "content") == "\u2581") {
        replaced = true;
      } else {
        refuse(
            "{}: normalizer \"{}\" is not supported for this kind (supported: Prepend and Replace of spaces)",
            source_, type);
      }
    }
    if (metaspace_ != nullptr) {
      if (text_of(*metaspace_, "replacement") != "\u2581")
        refuse("{}: Metaspace with a mark other than U+2581 is not supported", source_);
      std::string scheme = text_of(*metaspace_, "prepend_scheme");
      if (scheme.empty()) scheme = flag_of(*metaspace_, "add_prefix_space", true) ? "always" : "never";
      parts.space_in_front = scheme == "always"  ? CharBpeParts::Space::always
                             : scheme == "first" ? CharBpeParts::Space::first
                                                 : CharBpeParts::Space::never;
      parts.space_before_space = false;
      parts.cut_at_spaces = flag_of(*metaspace_, "split", true);
    }
    if (!replaced)
      refuse("{}: a BPE over characters that does not write spaces as U+2581 is not supported", source_);
  }

  std::unique_ptr<SplittingTokenizer> build_char_level(const json& model) {
    CharBpeParts parts;
    read_space_normalizers(parts);
    if (!rules_.empty()) refuse("{}: a pre-tokenizer over characters is not supported", source_);
    if (flag_of(model, "ignore_merges"))
      refuse("{}: ignore_merges is only supported with ByteLevel", source_);
    const bool fallback = flag_of(model, "byte_fallback");
    parts.name = "BPE over characters";
    parts.unknown = unknown_of(model);
    parts.fuse_unknown = flag_of(model, "fuse_unk");
    parts.tokens = static_cast<int32_t>(count_);
    parts.vocabulary.resize(count_);
    for (const auto& [word, id] : file_.vocabulary) {
      const auto token = static_cast<TokenId>(id);
      const int byte = fallback ? byte_of_spelling(word) : -1;
      if (byte >= 0) {
        parts.byte_tokens[static_cast<size_t>(byte)] = token;
        parts.vocabulary.set(token, std::string(1, static_cast<char>(byte)), false);
      } else {
        const bool raw_space = word.find(' ') != std::string::npos;
        parts.vocabulary.set(token, raw_space ? word : spaces_from_blocks(word), !raw_space);
      }
    }
    read_tables(parts, [&](const std::string& spelling) {
      return parts.vocabulary.find_id(spaces_from_blocks(spelling));
    });
    return std::make_unique<CharBpe>(std::move(parts));
  }

  TokenizerJson file_;
  const std::string& source_;
  size_t count_ = 0;
  std::vector<AddedToken> added_;
  std::vector<CutRule> rules_;
  bool byte_level_ = false;
  bool space_in_front_ = false;
  const json* metaspace_ = nullptr;
};

// A token in tokenizer_config.json is a string or {"content": string}.
std::string token_text(const json& v) {
  if (v.is_string()) return v.get<std::string>();
  return text_of(v, "content");
}

void read_config(SplittingTokenizer& tokenizer, const json& file, std::string_view config_text,
                 const std::string& source) {
  // A template that puts a special token before the text: that is the beginning of text.
  for (const json* step : steps_of(member(file, "post_processor"), "processors")) {
    const json& single = member(*step, "single");
    if (!single.is_array() || single.empty()) continue;
    const std::string first = text_of(member(single.front(), "SpecialToken"), "id");
    if (first.empty()) continue;
    tokenizer.bos = tokenizer.find(first);
    tokenizer.starts_with_bos = tokenizer.bos.has_value();
  }
  if (!config_text.empty()) {
    std::string trouble;
    const json config = read_json(config_text, {}, &trouble);
    if (!trouble.empty()) refuse("{}: {}", source, trouble);
    if (const std::string name = token_text(member(config, "bos_token")); !name.empty())
      tokenizer.bos = tokenizer.find(name);
    if (const std::string name = token_text(member(config, "eos_token")); !name.empty())
      tokenizer.eos = tokenizer.find(name);
    tokenizer.starts_with_bos =
        flag_of(config, "add_bos_token", tokenizer.starts_with_bos) && tokenizer.bos.has_value();
  }
  const auto first_special = [&](std::initializer_list<const char*> names) -> std::optional<TokenId> {
    for (const char* name : names)
      if (const auto id = tokenizer.find(name); id && tokenizer.is_special(*id)) return id;
    return std::nullopt;
  };
  if (!tokenizer.eos)
    tokenizer.eos = first_special({"<|end_of_text|>", "<|endoftext|>", "</s>", "<|im_end|>"});
  if (!tokenizer.bos) tokenizer.bos = first_special({"<s>", "<|begin_of_text|>"});
  tokenizer.collect_end_tokens();
}

}  // namespace

std::unique_ptr<SplittingTokenizer> read_tokenizer_json(std::string_view text, std::string_view config,
                                                        const std::string& source) {
  TokenizerJson file = parse_tokenizer_json(text, source);
  const json rest = file.rest;
  auto tokenizer = Builder(std::move(file), source).build();
  read_config(*tokenizer, rest, config, source + "'s tokenizer_config.json");
  return tokenizer;
}

}  // namespace sheaf
