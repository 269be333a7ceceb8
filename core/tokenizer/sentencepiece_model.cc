#include "core/tokenizer/sentencepiece_model.h"

#include <exception>
#include <limits>
#include <sentencepiece_processor.h>

#include "core/base/error.h"
#include "core/text/utf8.h"
#include "core/tokenizer/char_bpe.h"

namespace sheaf {
namespace {

using sentencepiece::SentencePieceProcessor;

int byte_of_piece(const SentencePieceProcessor& processor, int id) {
  return processor.IsByte(id) ? byte_of_spelling(processor.IdToPiece(id)) : -1;
}

class SentencePieceTokenizer final : public SplittingTokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<SentencePieceProcessor> processor, const SentencePieceFacts& facts,
                         Vocabulary vocabulary, AddedTokens added)
      : SplittingTokenizer(std::move(vocabulary), std::move(added)),
        processor_(std::move(processor)),
        facts_(facts) {}

  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids)
      if (vocabulary().holds(id) && !(skip_special && is_special(id))) text += vocabulary().bytes(id);
    if (facts_.space_in_front && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }

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
