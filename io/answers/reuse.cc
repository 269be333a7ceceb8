#include "io/answers/reuse.h"

#include <cstring>

#include "io/base/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostBins = 4096;

/// Numbers and lists one after the other, each list with its length before it, so that no two sequences of
/// parts give the same bytes.
class Digester {
 public:
  Digester& number(uint64_t value) { return bytes(&value, sizeof value); }
  Digester& real(double value) { return bytes(&value, sizeof value); }
  Digester& text(std::string_view value) { return number(value.size()).bytes(value.data(), value.size()); }
  Digester& tokens(const Tokens& value) {
    return number(value.size()).bytes(value.data(), value.size() * sizeof(TokenId));
  }
  Digester& digest(const std::array<uint8_t, 32>& value) { return bytes(value.data(), value.size()); }
  std::array<uint8_t, 32> sum() const { return sum_.digest(); }

 private:
  Digester& bytes(const void* from, size_t size) {
    sum_.add({static_cast<const char*>(from), size});
    return *this;
  }
  Sha256 sum_;
};

void add_trie(Digester& digester, const AnswerTrie* trie) {
  digester.number(trie ? trie->answers().size() + 1 : 0);
  if (!trie) return;
  for (const Tokens& answer : trie->answers()) digester.tokens(answer);
}

std::vector<std::array<uint8_t, 32>> question_digests(const std::vector<QuestionParts>& questions);

std::array<uint8_t, 32> question_digest(const QuestionParts& question) {
  Digester digester;
  digester.tokens(question.tokens)
      .number(static_cast<uint64_t>(question.max_tokens))
      .number(static_cast<uint64_t>(question.stop))
      .number(question.copied ? 1 : 0)
      .number(question.watch ? 1 : 0);
  if (question.watch) digester.tokens(question.watch->null).real(static_cast<double>(question.watch->bias));
  const AnswerTrie* list = question.list();
  // A question without thinking or entries adds nothing for them, so that digests of earlier versions hold.
  if (question.thinking) {
    digester.number(static_cast<uint64_t>(question.thinking->budget)).tokens(question.thinking->close);
    digester.tokens(question.thinking->cut);
  }
  if (const EntryParts* entries = question.entries.get()) {
    digester.text("entries").number(entries->most_entries).number(entries->anchors.size());
    for (const std::string& anchor : entries->anchors) digester.text(anchor);
    for (const auto& each : question_digests(entries->questions)) digester.digest(each);
  }
  add_trie(digester, list);
  digester.text(question.allowed ? question.allowed->name() : "");
  digester.number(list ? list->options().size() : 0);
  if (list)
    for (const auto& option : list->options()) add_trie(digester, option.get());
  return digester.sum();
}

std::vector<std::array<uint8_t, 32>> question_digests(const std::vector<QuestionParts>& questions) {
  std::vector<std::array<uint8_t, 32>> digests;
  digests.reserve(questions.size());
  for (const QuestionParts& question : questions) digests.push_back(question_digest(question));
  return digests;
}

}  // namespace

AnswerKeys::AnswerKeys(const ordered_json& settings, bool sampled)
    : settings_(Digester().text(settings.dump()).sum()), sampled_(sampled) {}

const AnswerKeys::Bin& AnswerKeys::bin_of(const RecordParts& parts) {
  if (const auto found = bins_.find(parts.bin.get()); found != bins_.end()) return found->second;
  if (bins_.size() >= kMostBins) bins_.clear();
  const Digest digest =
      Digester().digest(settings_).tokens(parts.bin->instruction).tokens(parts.bin->opening).sum();
  return bins_.emplace(parts.bin.get(), Bin{parts.bin, digest, question_digests(parts.bin->questions)})
      .first->second;
}

std::vector<AnswerKey> AnswerKeys::of(const Record& record, const RecordParts& parts, bool together) {
  const Bin& bin = bin_of(parts);
  Digester digester;
  // The text too: answers may have to stand in it letter by letter.
  digester.digest(bin.digest).tokens(parts.head).tokens(parts.document).text(record.document);
  digester.number(parts.decoding ? 1 : 0);
  if (const Decoding* own = parts.decoding.get()) {
    digester.real(static_cast<double>(own->temperature)).real(static_cast<double>(own->top_p));
    digester.number(static_cast<uint64_t>(own->top_k)).number(own->seed).number(own->stops.size());
    for (const std::string& stop : own->stops) digester.text(stop);
  }
  const bool sampled = parts.decoding ? parts.decoding->temperature > 0 : sampled_;
  digester.number(parts.documents.size());
  for (const DocumentParts& chain : parts.documents) digester.tokens(chain.tokens);
  if (parts.scored_by_question) digester.text("documents are scored by the question");
  if (sampled) digester.number(parts.stream);
  const std::vector<Digest> own =
      parts.own_questions.empty() ? std::vector<Digest>() : question_digests(parts.own_questions);
  const std::vector<Digest>& questions = parts.own_questions.empty() ? bin.questions : own;
  if (together)
    for (const Digest& question : questions) digester.digest(question);
  const Digest about_record = digester.sum();
  std::vector<AnswerKey> keys;
  for (size_t q = 0; q < questions.size(); ++q) {
    Digester one;
    one.digest(about_record).digest(questions[q]);
    one.number(together || sampled ? parts.question_of(q) + 1 : 0);
    if (const size_t sample = parts.sample_of(q); sample > 0) one.number(sample);
    for (const DocumentParts& chain : parts.documents) one.real(static_cast<double>(chain.relevance[q]));
    const Digest sum = one.sum();
    AnswerKey& key = keys.emplace_back();
    std::memcpy(key.data(), sum.data(), key.size());
  }
  return keys;
}

}  // namespace sheaf
