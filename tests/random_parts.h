#pragma once
#include <memory>
#include <random>
#include <vector>

#include "core/task/parts.h"
#include "tests/random_tokens.h"

namespace sheaf::test {

/// Random token-level records: documents with keys that all records share, or with questions of their own.
struct RandomRecords {
  int32_t records = 3;
  int32_t questions = 4;
  int32_t vocab = 61;
  int32_t max_tokens = 5;
  bool own_questions = false;
  int32_t longest = 9;  ///< tokens of a part
};

inline std::vector<RecordParts> make_random_records(const RandomRecords& wanted, uint32_t seed) {
  std::mt19937 random(seed);
  auto question = [&] {
    QuestionParts parts;
    parts.tokens = random_part(random, wanted.longest, wanted.vocab);
    parts.max_tokens = wanted.max_tokens;
    return parts;
  };
  auto bin = std::make_shared<BinParts>();
  bin->instruction = random_part(random, 2 * wanted.longest, wanted.vocab);
  if (!wanted.own_questions) {
    bin->opening = random_part(random, 3, wanted.vocab);
    for (int32_t q = 0; q < wanted.questions; ++q) bin->questions.push_back(question());
  }
  std::vector<DocumentLabel> labels;
  for (int32_t j = 0; j < wanted.records; ++j)
    labels.push_back({random_part(random, 3, wanted.vocab), random_part(random, 3, wanted.vocab),
                      random_part(random, 3, wanted.vocab), random_part(random, 3, wanted.vocab)});
  bin->label = [labels](size_t j) { return labels[j]; };
  std::vector<RecordParts> records;
  for (int32_t j = 0; j < wanted.records; ++j) {
    RecordParts record;
    record.bin = bin;
    record.record = j;
    record.stream = seed * 1000u + static_cast<uint64_t>(j);
    record.document = random_part(random, 2 * wanted.longest, wanted.vocab);
    for (int32_t q = 0; wanted.own_questions && q < wanted.questions; ++q)
      record.own_questions.push_back(question());
    records.push_back(std::move(record));
  }
  return records;
}

/// Gives records documents to be asked one by one instead of the one they have; neighbours have some in
/// common, and some rows one twice.
inline void add_random_chains(std::vector<RecordParts>& records, size_t most, int32_t longest,
                              uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> relevance(0.01f, 0.99f);
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].document.clear();
    const size_t count = std::uniform_int_distribution<size_t>(1, most)(random);
    for (size_t k = 0; k < count; ++k) {
      DocumentParts& chain = records[i].documents.emplace_back();
      if (k == 0 && i % 2 == 1)
        chain.tokens = records[i - 1].documents[0].tokens;
      else if (k == 2 && i % 3 == 0)
        chain.tokens = records[i].documents[0].tokens;  // twice in one row
      else
        chain.tokens = random_part(random, longest, 61);
      for (size_t q = 0; q < records[i].questions().size(); ++q) chain.relevance.push_back(relevance(random));
    }
  }
}

/// Gives records with such documents a first round, with `most` tokens of a finding; `each`: every question
/// has findings of its own.
inline void add_random_findings(std::vector<RecordParts>& records, int32_t most, bool each, uint32_t seed) {
  std::mt19937 random(seed);
  const Tokens instruction = random_part(random, 8, 61);
  for (RecordParts& record : records) {
    FindingParts findings;
    findings.instruction = instruction;
    for (size_t q = 0; q < (each ? record.questions().size() : 1); ++q)
      findings.asked.push_back({random_part(random, 6, 61), most, Stop::line, nullptr});
    findings.document = [](std::span<const Tokens> found) {
      Tokens document{1};
      for (const Tokens& finding : found) {
        append(document, finding);
        document.push_back(2);
      }
      return document;
    };
    findings.most_tokens = [most](size_t count) { return 1 + count * static_cast<size_t>(most + 1); };
    record.findings = std::make_shared<FindingParts>(std::move(findings));
  }
}

}  // namespace sheaf::test
