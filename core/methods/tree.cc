#include "core/methods/builder.h"

namespace sheaf {
namespace {

SegmentId add_instruction(Stack& stack, const BinParts& bin) {
  return stack.add({Role::instruction, bin.instruction, 0, {}, true});
}

/// What a question of a record sees.
using Above = std::vector<Sight>;

SegmentId add_below(Stack& stack, const RecordParts& record, Tokens tokens, const Above& above) {
  return stack.add_after(above, record.own_questions.empty() ? Role::document : Role::context,
                         std::move(tokens), true);
}

/// instruction ← head ← document, the opening of the answer included. `before`: what the questions of the
/// record before it see, whose head may be the same.
Above add_document(Stack& stack, SegmentId instruction, const RecordParts& record, const Above& before = {},
                   const Tokens& head_before = {}) {
  Above above{{instruction}};
  if (!record.head.empty())
    above.push_back(record.head == head_before ? before[1]
                                               : Sight{add_below(stack, record, record.head, above)});
  Tokens tokens = record.document;
  append(tokens, record.bin->opening);
  above.push_back({add_below(stack, record, std::move(tokens), above)});
  return above;
}

/// A question that sees `sees`; its answer continues it.
void add_question(Stack& stack, const RecordParts& record, size_t q, std::vector<Sight> sees, Tokens tokens) {
  add_slots(stack, record, q,
            stack.add_after(std::move(sees), record.own_questions.empty() ? Role::key : Role::question,
                            std::move(tokens)));
}

}  // namespace

void build_separate(std::span<const RecordParts> records, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    for (const size_t q : record.asked()) {
      Stack& stack = out.emplace_back();
      Segment prompt;
      prompt.role = Role::question;
      for (const Tokens* part : {&record.bin->instruction, &record.head, &record.document,
                                 &record.bin->opening, &record.questions()[q].tokens})
        append(prompt.tokens, *part);
      add_slots(stack, record, q, stack.add(std::move(prompt)));
    }
  }
}

void build_prefix(std::span<const RecordParts> records, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    for (const size_t q : record.asked()) {
      Stack& stack = out.emplace_back();
      const SegmentId instruction = add_instruction(stack, *record.bin);
      add_question(stack, record, q, add_document(stack, instruction, record), record.questions()[q].tokens);
    }
  }
}

void build_tree(std::span<const RecordParts> records, std::vector<Stack>& out) {
  Stack& stack = out.emplace_back();
  const SegmentId instruction = add_instruction(stack, *records.front().bin);
  Above above;
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordParts& record = records[i];
    // Rows about the same context (one row per question) come one after the other and share it.
    if (i == 0)
      above = add_document(stack, instruction, record);
    else if (!has_same_document(record, records[i - 1]))
      above = add_document(stack, instruction, record, above, records[i - 1].head);
    for (const size_t q : record.asked()) add_question(stack, record, q, above, record.questions()[q].tokens);
  }
}

void build_joint_tree(std::span<const RecordParts> records, std::vector<Stack>& out) {
  Stack& stack = out.emplace_back();
  std::vector<Sight> sees{{add_instruction(stack, *records.front().bin)}};
  std::vector<DocumentLabel> labels;
  for (size_t j = 0; j < records.size(); ++j) {
    labels.push_back(records[j].bin->label(j));
    Tokens tokens = labels[j].open;
    append(tokens, records[j].document);
    append(tokens, labels[j].close);
    if (j + 1 == records.size()) append(tokens, records[j].bin->opening);
    sees.push_back({stack.add_after(sees, Role::document, std::move(tokens))});
  }
  for (size_t j = 0; j < records.size(); ++j) {
    for (size_t q = 0; q < records[j].questions().size(); ++q) {
      Tokens tokens = labels[j].section;
      append(tokens, records[j].questions()[q].tokens);
      add_question(stack, records[j], q, sees, std::move(tokens));
    }
  }
}

}  // namespace sheaf
