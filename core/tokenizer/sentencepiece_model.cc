#include "core/tokenizer/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <array>
#include <limits>

#include "core/error.h"
#include "core/tokenizer/char_bpe.h"
#include "core/tokenizer/word_cache.h"

namespace sheaf {
namespace {

constexpr std::string_view block = "\xE2\x96\x81";  // U+2581, SentencePiece's space

class SentencePieceTokenizer final : public SplittingTokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<sentencepiece::SentencePieceProcessor> processor, const SentencePieceFacts& facts,
                         Vocabulary vocabulary, AddedTokens added)
      : SplittingTokenizer(std::move(vocabulary), std::move(added)), processor_(std::move(processor)), facts_(facts) {
    cuts_ = facts.bpe && facts.plain_text && facts.space_in_front && facts.keeps_spaces &&
            this->vocabulary().find_id(" ") >= 0;
    for (int id = 0; id < processor_->GetPieceSize(); ++id) {
      const std::string& text = this->vocabulary().bytes(id);
      if (processor_->IsControl(id) || processor_->IsByte(id) || processor_->IsUnknown(id)) continue;
      for (size_t at = 1; at < text.size(); ++at)
        if (text[at] == ' ') joins_space_[static_cast<unsigned char>(text[at - 1])] = true;
    }
    joins_space_[' '] = true;
  }

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
    return fmt::format("SentencePiece ({}), {} tokens", facts_.bpe ? "BPE" : "unigram", vocab_size());
  }

 protected:
  void encode_gap(std::string_view gap, Before before, Tokens& out) const override {
    if (gap.size() >= std::numeric_limits<int32_t>::max() / 4) refuse("a text of {} bytes is too long to tokenize", gap.size());
    std::string plain;
    if (cuts_ && gap.find(block) != std::string_view::npos) {
      plain = spaces_from_blocks(gap);
      gap = plain;
    }
    if (!cuts_) {
      encode_whole(gap, out);
      return;
    }
    // The library puts a space in front of what it is given: so give it each word without the space it starts with. The
    // text's own first word gets the library's space, unless it continues other text.
    typename ScratchPool<WordCache>::Lease cache(cache_);
    size_t begin = 0;
    if (before == Before::text) {
      if (gap[0] != ' ') {
        const size_t end = word_end(gap, 0);
        encode_without_space(gap.substr(0, end), out);
        begin = end;
      }
      if (begin == gap.size()) return;
      ++begin;  // the space that the first word starts with
    }
    while (begin <= gap.size()) {
      const size_t end = word_end(gap, begin);
      const std::string_view word = gap.substr(begin, end - begin);
      begin = end + 1;
      if (const auto known = cache->find(word); !known.empty()) {
        for (const TokenId id : known) out.push_back(id);
        continue;
      }
      const size_t first = out.size();
      if (word.empty())
        out.push_back(vocabulary().find_id(" "));
      else
        encode_whole(word, out);
      cache->put(word, std::span(out).subspan(first));
    }
  }

 private:
  // Where the word ends that begins at `begin` (its leading space already taken off): before a space that no piece holds
  // together with the character before it.
  size_t word_end(std::string_view text, size_t begin) const {
    for (size_t at = begin + 1; at < text.size(); ++at)
      if (text[at] == ' ' && !joins_space_[static_cast<unsigned char>(text[at - 1])]) return at;
    return text.size();
  }

  void encode_whole(std::string_view text, Tokens& out) const {
    std::vector<int> ids;
    const auto status = processor_->Encode(text, &ids);
    if (!status.ok()) fail("sentencepiece could not encode: {}", status.ToString());
    out.insert(out.end(), ids.begin(), ids.end());
  }

  // A word that is not to get a space in front: a character that merges with nothing goes before it, and is taken off again.
  void encode_without_space(std::string_view word, Tokens& out) const {
    Tokens ids, guard;
    encode_whole("\n", guard);
    encode_whole(std::string("\n").append(word), ids);
    const bool intact = ids.size() >= guard.size() && std::equal(guard.begin(), guard.end(), ids.begin());
    if (intact)
      out.insert(out.end(), ids.begin() + static_cast<std::ptrdiff_t>(guard.size()), ids.end());
    else
      encode_whole(word, out);
  }

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  SentencePieceFacts facts_;
  bool cuts_ = false;
  std::array<bool, 256> joins_space_{};
  mutable ScratchPool<WordCache> cache_;
};

}  // namespace

std::unique_ptr<SplittingTokenizer> read_sentencepiece(std::string_view model, const std::string& source) {
  const SentencePieceFacts facts = sentencepiece_facts(model);
  if (!facts.readable) refuse("{}: not a SentencePiece model", source);
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  if (const auto status = processor->LoadFromSerializedProto(model); !status.ok())
    refuse("{}: sentencepiece does not take this model: {}", source, status.ToString());

  Vocabulary vocabulary;
  AddedTokens added;
  const int count = processor->GetPieceSize();
  vocabulary.resize(static_cast<size_t>(count));
  for (int id = 0; id < count; ++id) {
    const std::string& piece = processor->IdToPiece(id);
    const int byte = processor->IsByte(id) ? byte_of_spelling(piece) : -1;
    const bool special = processor->IsControl(id) || processor->IsUnknown(id);
    if (special) added.add({piece, id});
    vocabulary.set(id, byte >= 0 ? std::string(1, static_cast<char>(byte)) : spaces_from_blocks(piece),
                   !special && byte < 0);
  }
  const auto known = [&](int id) { return id >= 0 ? std::optional<TokenId>(id) : std::nullopt; };
  const auto bos = known(processor->bos_id()), eos = known(processor->eos_id());
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(std::move(processor), facts, std::move(vocabulary), std::move(added));
  tokenizer->bos = bos;
  tokenizer->eos = eos;
  tokenizer->starts_with_bos = bos.has_value();
  tokenizer->collect_end_tokens();
  return tokenizer;
}

}  // namespace sheaf
