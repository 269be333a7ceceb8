#include "core/methods/builder.h"

namespace sheaf {
namespace {

SegmentId add_instruction(Stack& stack, const BinParts& bin) {
  return stack.add({Role::instruction, bin.instruction, 0, {}, true});
}

/// instruction ← document, the opening of the answer included.
SegmentId add_document(Stack& stack, SegmentId instruction, const ItemParts& item) {
  Tokens tokens = item.document;
  append(tokens, item.bin->opening);
  return stack.add({item.own_questions.empty() ? Role::document : Role::context,
                    std::move(tokens),
                    stack.end_position(instruction),
                    {{instruction}},
                    true});
}

/// A question that sees `sees`; its answer continues it.
void add_question(Stack& stack, const ItemParts& item, size_t q, std::vector<Sight> sees, Tokens tokens) {
  const int32_t position = stack.end_position(sees.back().segment);
  Slot slot = make_slot(item, q);
  slot.prompt = slot.answer = stack.add({item.own_questions.empty() ? Role::key : Role::question,
                                         std::move(tokens), position, std::move(sees), false});
  stack.slots.push_back(std::move(slot));
}

}  // namespace

void build_prefix(std::span<const ItemParts> items, std::vector<Stack>& out) {
  for (const ItemParts& item : items) {
    for (size_t q = 0; q < item.questions().size(); ++q) {
      Stack& stack = out.emplace_back();
      const SegmentId instruction = add_instruction(stack, *item.bin);
      const SegmentId document = add_document(stack, instruction, item);
      add_question(stack, item, q, {{instruction}, {document}}, item.questions()[q].tokens);
    }
  }
}

void build_tree(std::span<const ItemParts> items, std::vector<Stack>& out) {
  Stack& stack = out.emplace_back();
  const SegmentId instruction = add_instruction(stack, *items.front().bin);
  SegmentId document = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const ItemParts& item = items[i];
    // Rows about the same context (one row per question) come one after the other and share it.
    if (i == 0 || item.document != items[i - 1].document) document = add_document(stack, instruction, item);
    for (size_t q = 0; q < item.questions().size(); ++q)
      add_question(stack, item, q, {{instruction}, {document}}, item.questions()[q].tokens);
  }
}

void build_joint_tree(std::span<const ItemParts> items, std::vector<Stack>& out) {
  Stack& stack = out.emplace_back();
  std::vector<Sight> sees{{add_instruction(stack, *items.front().bin)}};
  std::vector<DocumentLabel> labels;
  for (size_t j = 0; j < items.size(); ++j) {
    labels.push_back(items[j].bin->label(j));
    Tokens tokens = labels[j].open;
    append(tokens, items[j].document);
    append(tokens, labels[j].close);
    if (j + 1 == items.size()) append(tokens, items[j].bin->opening);
    const int32_t position = stack.end_position(sees.back().segment);
    sees.push_back({stack.add({Role::document, std::move(tokens), position, sees, false})});
  }
  for (size_t j = 0; j < items.size(); ++j) {
    for (size_t q = 0; q < items[j].questions().size(); ++q) {
      Tokens tokens = labels[j].section;
      append(tokens, items[j].questions()[q].tokens);
      add_question(stack, items[j], q, sees, std::move(tokens));
    }
  }
}

}  // namespace sheaf
