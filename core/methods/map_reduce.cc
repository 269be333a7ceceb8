#include "core/base/random_stream.h"
#include "core/methods/method.h"

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

  Stack after(std::span<const Tokens> answers, std::span<const double>) const override {
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
    for (const size_t q : record_.asked()) {
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

/// Asks for a finding: a question about one document. `chain`: what the prompt sees of instruction and
/// document; nothing: it holds them itself.
void ask(Stack& stack, const RecordParts& record, size_t question, size_t document,
         std::vector<Sight> chain) {
  const FindingParts& findings = *record.findings;
  const QuestionParts& asked = findings.asked[question];
  const Tokens& text = record.documents[document].tokens;
  Slot slot;
  if (chain.empty()) {
    Tokens tokens = findings.instruction;
    append(tokens, text);
    append(tokens, asked.tokens);
    slot.prompt = stack.add({Role::question, std::move(tokens), 0, {}, false});
  } else {
    slot.prompt = stack.add_after(std::move(chain), Role::question, asked.tokens);
  }
  slot.answer = slot.prompt;
  slot.max_tokens = asked.max_tokens;
  slot.stop = asked.stop;
  // None of the streams of the record's answers (make_slot).
  slot.stream = mix(mix(record.stream, ~uint64_t{question}), document);
  slot.record = record.record;
  slot.question = static_cast<int32_t>(question);
  slot.alone_tokens = static_cast<int32_t>(findings.instruction.size() + text.size() + asked.tokens.size());
  stack.slots.push_back(std::move(slot));
}

}  // namespace

void build_map_reduce(std::span<const RecordParts> records, bool shared, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    check_chains(record, "map-reduce");
    Stack& stack = out.emplace_back();
    std::vector<std::vector<Sight>> chains(record.documents.size());
    if (shared) {
      const SegmentId instruction = stack.add({Role::instruction, record.findings->instruction, 0, {}, true});
      for (size_t i = 0; i < chains.size(); ++i)
        chains[i] = {{instruction},
                     {stack.add_after({{instruction}}, Role::document, record.documents[i].tokens, true)}};
    }
    for (const size_t q : record.asked()) {
      for (size_t document = 0; document < chains.size(); ++document)
        ask(stack, record, record.findings->index(q), document, chains[document]);
      if (record.findings->asked.size() == 1) break;
    }
    stack.next = std::make_shared<LastPrompt>(record, shared);
  }
}

}  // namespace sheaf
