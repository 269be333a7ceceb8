#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <sentencepiece_processor.h>

#include "core/base/error.h"
#include "core/text/utf8.h"
#include "core/tokenizer/char_bpe.h"
#include "core/tokenizer/read_tokenizer.h"

namespace sheaf {
namespace {

using sentencepiece::SentencePieceProcessor;

/// A field of a protocol buffer message.
struct Field {
  uint64_t number;
  uint64_t value = 0;           ///< of a varint
  float single = 0;             ///< of 32 bits
  std::string_view bytes = {};  ///< of a text or message
};

std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t v = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    v |= uint64_t{byte & 0x7Fu} << shift;
    if (!(byte & 0x80)) return v;
  }
  return std::nullopt;
}

/// Calls `use` with each field of a message. False where the bytes make no sense or `use` says false.
template <class Use>
bool read_fields(std::string_view bytes, Use use) {
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    if (!tag) return false;
    Field field{.number = *tag >> 3};
    const uint64_t type = *tag & 7;
    uint64_t size = type == 1 ? 8 : type == 5 ? 4 : 0;  // of what follows
    if (type == 0 || type == 2) {
      const auto number = take_varint(bytes);
      if (!number) return false;
      (type == 0 ? field.value : size) = *number;
    } else if (size == 0) {
      return false;
    }
    if (size > bytes.size()) return false;
    if (type == 2) field.bytes = bytes.substr(0, static_cast<size_t>(size));
    if (type == 5) std::memcpy(&field.single, bytes.data(), 4);
    bytes.remove_prefix(static_cast<size_t>(size));
    if (!use(field)) return false;
  }
  return true;
}

// The library walks a normalizer's character map without looking at its bounds; this does. The map is the
// size of a double-array trie in bytes, the trie's 32-bit units, and the replacement texts, each ending in a
// zero byte.
bool is_sound_charsmap(std::string_view map) {
  uint32_t trie_bytes = 0;
  if (map.size() < 4) return false;
  std::memcpy(&trie_bytes, map.data(), 4);
  if (trie_bytes % 4 != 0 || trie_bytes < 1024 || trie_bytes >= map.size() - 4) return false;
  std::vector<uint32_t> units(trie_bytes / 4);
  std::memcpy(units.data(), map.data() + 4, trie_bytes);
  const size_t texts = map.size() - 4 - trie_bytes;
  if (map.back() != '\0') return false;
  for (size_t i = 0; i < units.size(); ++i) {
    const uint32_t unit = units[i];
    if (unit >> 31) continue;  // a leaf: never walked from
    const size_t base = i ^ static_cast<size_t>((unit >> 10) << ((unit & 0x200) >> 6));
    if ((base | 0xFF) >= units.size()) return false;
    const bool has_leaf = unit >> 8 & 1;
    if (has_leaf && (units[base] & 0x7FFFFFFF) >= texts) return false;
  }
  return true;
}

/// What decides who encodes: a plain BPE model is encoded by CharBpe (several times as fast, the same ids),
/// any other by the sentencepiece library.
struct SentencePieceFacts {
  bool readable = false;  ///< a protocol buffer as it should be, its character map and scores sound
  bool bpe = false;
  bool plain_text = false;   ///< the normalizer changes nothing but spaces, and keeps all of those
  bool plain_pieces = true;  ///< no user-defined and no unused pieces
  bool space_in_front = true;
};

// ModelProto: pieces = 1 (score = 2, type = 3, user-defined = 4, unused = 5), trainer_spec = 2 (model_type =
// 3, BPE = 2; treat_whitespace_as_suffix = 24), normalizer_spec = 3 (precompiled_charsmap = 2,
// add_dummy_prefix = 3, remove_extra_whitespaces = 4, escape_whitespaces = 5), denormalizer_spec = 5.
SentencePieceFacts sentencepiece_facts(std::string_view model) {
  SentencePieceFacts facts;
  bool charsmap = false, suffix = false, removes = true, escapes = true, pieces = false;
  const auto read_piece = [&](const Field& field) {
    if (field.number == 3 && (field.value == 4 || field.value == 5)) facts.plain_pieces = false;
    return field.number != 2 || std::isfinite(field.single);
  };
  const auto read_trainer = [&](const Field& field) {
    if (field.number == 3) facts.bpe = field.value == 2;
    if (field.number == 24) suffix = field.value != 0;
    return true;
  };
  const auto read_denormalizer = [](const Field& field) {
    return field.number != 2 || field.bytes.empty() || is_sound_charsmap(field.bytes);
  };
  const auto read_normalizer = [&](const Field& field) {
    if (field.number == 2) charsmap = !field.bytes.empty();
    if (field.number == 3) facts.space_in_front = field.value != 0;
    if (field.number == 4) removes = field.value != 0;
    if (field.number == 5) escapes = field.value != 0;
    return read_denormalizer(field);
  };
  const bool sound = read_fields(model, [&](const Field& top) {
    pieces = pieces || top.number == 1;
    return top.number == 1   ? read_fields(top.bytes, read_piece)
           : top.number == 2 ? read_fields(top.bytes, read_trainer)
           : top.number == 3 ? read_fields(top.bytes, read_normalizer)
           : top.number == 5 ? read_fields(top.bytes, read_denormalizer)
                             : true;
  });
  facts.readable = sound && pieces;
  facts.plain_text = !charsmap && escapes && !suffix && !removes;
  return facts;
}

int byte_of_piece(const SentencePieceProcessor& processor, int id) {
  return processor.IsByte(id) ? byte_of_spelling(processor.IdToPiece(id)) : -1;
}

class SentencePieceTokenizer final : public SplittingTokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<SentencePieceProcessor> processor, const SentencePieceFacts& facts,
                         Vocabulary vocabulary, AddedTokens added)
      : SplittingTokenizer(std::move(vocabulary), std::move(added), facts.space_in_front),
        processor_(std::move(processor)),
        facts_(facts) {}

  std::optional<TokenId> find(std::string_view piece) const override {
    if (const auto id = SplittingTokenizer::find(piece)) return id;
    if (piece.size() != 1) return std::nullopt;
    const int id = processor_->PieceToId(fmt::format("<0x{:02X}>", static_cast<unsigned char>(piece[0])));
    return processor_->IsByte(id) ? std::optional<TokenId>(id) : std::nullopt;
  }

  std::string describe() const override {
    return fmt::format("SentencePiece ({}, by the library), {} tokens", facts_.bpe ? "BPE" : "unigram",
                       vocab_size());
  }

 protected:
  void encode_gap(std::string_view gap, Before, Tokens& out) const override {
    if (gap.size() >= std::numeric_limits<int32_t>::max() / 4)
      refuse("a text of {} bytes is too long to tokenize", gap.size());
    std::vector<int> ids;
    if (const auto status = processor_->Encode(gap, &ids); !status.ok())
      fail("sentencepiece could not encode: {}", status.ToString());
    out.insert(out.end(), ids.begin(), ids.end());
  }

 private:
  std::unique_ptr<SentencePieceProcessor> processor_;
  SentencePieceFacts facts_;
};

std::unique_ptr<SplittingTokenizer> own_engine(const SentencePieceProcessor& processor,
                                               const SentencePieceFacts& facts, Vocabulary vocabulary,
                                               AddedTokens added, const std::string& source) {
  CharBpeParts parts;
  parts.name = "SentencePiece (BPE)";
  parts.vocabulary = std::move(vocabulary);
  parts.added = std::move(added);
  parts.tokens = processor.GetPieceSize();
  parts.space_in_front = facts.space_in_front ? CharBpeParts::Space::always : CharBpeParts::Space::never;
  if (processor.unk_id() >= 0) parts.unknown = processor.unk_id();
  std::vector<float> scores;
  for (int id = 0; id < parts.tokens; ++id) {
    scores.push_back(processor.GetScore(id));
    if (const int byte = byte_of_piece(processor, id); byte >= 0)
      parts.byte_tokens[static_cast<size_t>(byte)] = id;
  }
  merges_from_scores(parts, scores, source);
  return std::make_unique<CharBpe>(std::move(parts));
}

}  // namespace

bool looks_like_sentencepiece(std::string_view model) {
  return sentencepiece_facts(model).readable;
}

std::unique_ptr<SplittingTokenizer> read_sentencepiece(std::string_view model, const std::string& source,
                                                       bool library_only) {
  const SentencePieceFacts facts = sentencepiece_facts(model);
  if (!facts.readable) refuse("{}: this is not a valid SentencePiece model", source);
  auto processor = std::make_unique<SentencePieceProcessor>();
  try {
    if (const auto status = processor->LoadFromSerializedProto(model); !status.ok())
      refuse("{}: sentencepiece rejects this model: {}", source, status.ToString());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {  // its trie throws its own kind
    refuse("{}: sentencepiece rejects this model: {}", source, e.what());
  }

  Vocabulary vocabulary;
  AddedTokens added;
  const int count = processor->GetPieceSize();
  if (count <= 0 || count > Vocabulary::most_tokens)
    refuse("{}: the vocabulary has {} tokens; it must have 1 to {}", source, count, Vocabulary::most_tokens);
  vocabulary.resize(static_cast<size_t>(count));
  for (int id = 0; id < count; ++id) {
    const std::string& piece = processor->IdToPiece(id);
    if (valid_prefix(piece) != piece.size()) refuse("{}: token {} is not valid UTF-8", source, id);
    const int byte = byte_of_piece(*processor, id);
    const bool special = processor->IsControl(id) || processor->IsUnknown(id);
    if (special) added.add({piece, id});
    vocabulary.set(id, byte >= 0 ? std::string(1, static_cast<char>(byte)) : spaces_from_blocks(piece),
                   !special && byte < 0 && piece.find(' ') == std::string::npos);
  }
  const auto known = [](int id) { return id >= 0 ? std::optional<TokenId>(id) : std::nullopt; };
  const auto bos = known(processor->bos_id()), eos = known(processor->eos_id());
  std::unique_ptr<SplittingTokenizer> tokenizer;
  if (facts.bpe && facts.plain_text && facts.plain_pieces && !library_only)
    tokenizer = own_engine(*processor, facts, std::move(vocabulary), std::move(added), source);
  else
    tokenizer = std::make_unique<SentencePieceTokenizer>(std::move(processor), facts, std::move(vocabulary),
                                                         std::move(added));
  tokenizer->bos = bos;
  tokenizer->eos = eos;
  tokenizer->starts_with_bos = bos.has_value();
  tokenizer->collect_end_tokens();
  return tokenizer;
}

}  // namespace sheaf
