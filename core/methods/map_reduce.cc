#include "core/base/random_stream.h"
#include "core/methods/builder.h"

namespace sheaf {
namespace {

/// Several stacks as one.
Stack join_stacks(std::vector<Stack> stacks) {
  Stack joined;
  for (Stack& stack : stacks) {
    const auto before = static_cast<SegmentId>(joined.segments.size());
    for (Segment& segment : stack.segments) {
      for (Sight& sight : segment.sees) sight.segment += before;
      joined.segments.push_back(std::move(segment));
    }
    for (Slot& slot : stack.slots) {
      slot.prompt += before;
      slot.answer += before;
      joined.slots.push_back(std::move(slot));
    }
  }
  return joined;
}

/// The questions of a record, asked about the findings of its documents.
class LastPrompt final : public NextRound {
 public:
  LastPrompt(RecordParts record, bool shared)
      : record_(std::move(record)), documents_(record_.documents.size()), shared_(shared) {
    record_.documents.clear();
  }

  Stack after(std::span<const Tokens> answers) const override {
    return make([&](size_t group) {
      return record_.findings->document(answers.subspan(group * documents_, documents_));
    });
  }

  Stack longest() const override {
    return make([&](size_t) { return Tokens(record_.findings->most_tokens(documents_), 0); });
  }

 private:
  /// `document`: of the findings of the n-th question that is asked, or of all.
  template <class Document>
  Stack make(const Document& document) const {
    std::vector<RecordParts> records;
    for (size_t q = 0; q < record_.questions().size(); ++q) {
      if (!record_.asks(q)) continue;
      if (records.empty() || record_.findings->index(q) > 0) {
        RecordParts& record = records.emplace_back(record_);
        record.document = document(records.size() - 1);
        record.known.assign(record_.questions().size(), true);
      }
      records.back().known[q] = false;
    }
    std::vector<Stack> stacks;
    shared_ ? build_tree(records, stacks) : build_separate(records, stacks);
    return join_stacks(std::move(stacks));
  }

  RecordParts record_;
  size_t documents_;
  bool shared_;
};

/// The prompts of one record's documents, nothing or all of what they have in common shared.
class FirstRound {
 public:
  FirstRound(Stack& stack, const RecordParts& record, bool shared)
      : stack_(stack), record_(record), shared_(shared) {
    if (!shared) return;
    const SegmentId instruction = stack.add({Role::instruction, record.findings->instruction, 0, {}, true});
    for (const DocumentParts& document : record.documents)
      chains_.push_back(
          {{instruction},
           {stack.add(
               {Role::document, document.tokens, stack.end_position(instruction), {{instruction}}, true})}});
  }

  void ask(size_t question, size_t document) {
    const QuestionParts& asked = record_.findings->asked[question];
    const Tokens& text = record_.documents[document].tokens;
    Segment prompt;
    prompt.role = Role::question;
    if (shared_) {
      prompt.sees = chains_[document];
      prompt.first_position = stack_.end_position(prompt.sees.back().segment);
    } else {
      prompt.tokens = record_.findings->instruction;
      append(prompt.tokens, text);
    }
    append(prompt.tokens, asked.tokens);
    Slot slot;
    slot.prompt = slot.answer = stack_.add(std::move(prompt));
    slot.max_tokens = asked.max_tokens;
    slot.stop = asked.stop;
    // None of the streams of the record's answers (make_slot).
    slot.stream = mix(mix(record_.stream, ~uint64_t{question}), document);
    slot.record = record_.record;
    slot.question = static_cast<int32_t>(question);
    slot.alone_tokens =
        static_cast<int32_t>(record_.findings->instruction.size() + text.size() + asked.tokens.size());
    stack_.slots.push_back(std::move(slot));
  }

 private:
  Stack& stack_;
  const RecordParts& record_;
  bool shared_;
  std::vector<std::vector<Sight>> chains_;  ///< what is asked about each document sees
};

}  // namespace

void build_map_reduce(std::span<const RecordParts> records, bool shared, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    check_chains(record, "map-reduce");
    Stack& stack = out.emplace_back();
    FirstRound round(stack, record, shared);
    for (size_t q = 0; q < record.questions().size(); ++q) {
      if (!record.asks(q)) continue;
      for (size_t document = 0; document < record.documents.size(); ++document)
        round.ask(record.findings->index(q), document);
      if (record.findings->asked.size() == 1) break;
    }
    stack.next = std::make_shared<LastPrompt>(record, shared);
  }
}

}  // namespace sheaf
