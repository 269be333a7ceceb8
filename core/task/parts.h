#pragma once
#include <algorithm>
#include <ranges>

#include "core/segments/stack.h"

namespace sheaf {

struct EntryParts;

/// A question, or the key of an attribute, as tokens, and how its answer is decoded.
struct QuestionParts {
  Tokens tokens;
  int32_t max_tokens = 1;
  Stop stop = Stop::line;
  std::shared_ptr<const AllowedAnswers> allowed;  ///< the only possible answers, if there are such
  std::shared_ptr<const Watch> watch = {};
  bool copied = false;  ///< only RecordParts::copies are allowed
  std::shared_ptr<const AnswerSearch> search = {};
  std::shared_ptr<const Thinking> thinking = {};
  std::shared_ptr<const EntryParts> entries = {};  ///< what is asked of each entry that the answer lists

  const AnswerTrie* list() const { return allowed ? allowed->list() : nullptr; }
  /// The most tokens that its answer takes, or all its options together.
  int32_t most_tokens() const {
    int32_t together = 0;
    if (list())
      for (const auto& option : list()->options()) together += option->longest();
    return std::max(together, max_tokens);
  }
};

/// The questions of a later round about the entries that an answer lists.
struct EntryParts {
  /// What stands before the questions about each entry, one for each that the answer lists, in its order.
  std::function<std::vector<Tokens>(const Tokens& answer)> entries;
  size_t most_entries = 0;                ///< of an answer
  size_t most_tokens = 0;                 ///< before the questions about an entry
  size_t spare_tokens = 0;                ///< part of most_tokens that few entries need
  std::vector<std::string> anchors = {};  ///< the only possible ones; empty: any
  std::vector<QuestionParts> questions = {};
};

/// How the j-th document of a joint prompt is told from the others.
struct DocumentLabel {
  Tokens open;          ///< before the document: <product id="2">
  Tokens close;         ///< after it
  Tokens section;       ///< opens its part of the answer when it stands alone there
  Tokens next_section;  ///< opens it after the part of the document before
};

/// What the records of one bin share: equal instructions, and for extraction equal attributes.
struct BinParts {
  Tokens instruction;
  Tokens opening;           ///< after a document: the end of the user's turn and the start of the answer
  Tokens closing;           ///< what every document ends with; put back where one is cut
  std::string advice = {};  ///< how its prompts can be made shorter; empty: as the method says
  std::vector<QuestionParts>
      questions;  ///< the attributes' keys; empty where every record has questions of its own
  std::function<DocumentLabel(size_t)>
      label;  ///< joint stacking only: of the j-th document of a prompt, from 0
};

/// One of several documents that a record's questions are asked about one by one.
struct DocumentParts {
  Tokens tokens;
  std::vector<float> relevance;  ///< in (0, 1), per question
};

/// The first of two rounds: each document alone gives a finding, and the questions are asked about the
/// findings of all.
struct FindingParts {
  Tokens instruction;  ///< before a document
  /// What a document is asked: one per question of the record, or one for all of them.
  std::vector<QuestionParts> asked;
  /// The findings of a record's documents as the one document of its last prompt.
  std::function<Tokens(std::span<const Tokens> findings)> document;
  std::function<size_t(size_t findings)> most_tokens;  ///< most tokens of a document with so many findings

  size_t index(size_t question) const { return asked.size() == 1 ? 0 : question; }
};

/// One record as tokens. Text is tokenized part by part in every method alike, so that the same question has
/// the same tokens whatever it is packed with.
struct RecordParts {
  std::shared_ptr<const BinParts> bin;
  int32_t record = 0;   ///< index into the window's records
  int32_t samples = 1;  ///< every question stands so often in a row, once for each of its samples
  uint64_t stream = 0;  ///< seeds the record's random numbers
  Tokens head = {};     ///< stands before the document; records with equal ones share it
  Tokens document;
  std::shared_ptr<const Decoding> decoding = {};  ///< of its answers; nothing: as the job says
  std::vector<DocumentParts> documents;           ///< read one by one; then there is no `document`
  bool scored_by_question = false;  ///< documents are as relevant as they make the question likely
  std::shared_ptr<const FindingParts> findings = {};  ///< `map-reduce`: what the documents are asked first
  std::vector<QuestionParts> own_questions;
  std::shared_ptr<const AllowedAnswers> copies;  ///< of the document; where a question is `copied`
  /// The copies of tokens [begin, end) of the document, which is given as it was before it was cut.
  std::function<std::shared_ptr<const AllowedAnswers>(std::span<const TokenId> document, size_t begin,
                                                      size_t end)>
      part_copies;

  std::vector<bool> known = {};  ///< questions that need not be asked; empty: none

  /// What of a question's place in questions() tells the question, and which sample of it.
  size_t question_of(size_t place) const { return place / static_cast<size_t>(samples); }
  size_t sample_of(size_t place) const { return place % static_cast<size_t>(samples); }
  bool asks(size_t question) const { return known.empty() || !known[question]; }
  /// Leaves out more questions; empty: none.
  void leave_out(const std::vector<bool>& questions) {
    known.resize(std::max(known.size(), questions.size()));
    for (size_t i = 0; i < questions.size(); ++i) known[i] = known[i] || questions[i];
  }
  /// The questions that are asked, by their index.
  auto asked() const {
    return std::views::iota(size_t{0}, questions().size()) |
           std::views::filter([this](size_t question) { return asks(question); });
  }
  const std::vector<QuestionParts>& questions() const {
    return own_questions.empty() ? bin->questions : own_questions;
  }
  size_t document_tokens() const {
    size_t tokens = head.size() + document.size();
    for (const DocumentParts& each : documents) tokens += each.tokens.size();
    return tokens;
  }
};

/// Whether one segment serves both.
bool has_same_document(const RecordParts& a, const RecordParts& b);

/// The record with one question in place of all of its own, as long as they are together: what a list of
/// answers takes.
RecordParts ask_together(RecordParts record);

}  // namespace sheaf
