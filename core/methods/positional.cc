#include "core/methods/builder.h"

namespace sheaf {
namespace {

/// The chain of keys as it grows: each key sees the ones before it; each value sees its key, all keys before,
/// and of the values before it the tokens up to its own step.
struct Chain {
  std::vector<Sight> keys;    ///< what the next key sees
  std::vector<Sight> values;  ///< what the next value sees besides its own key
  int32_t position;           ///< where the next key starts
};

void add_key(Stack& stack, Chain& chain, const RecordParts& record, size_t q, Tokens tokens) {
  const SegmentId key = stack.add({Role::key, std::move(tokens), chain.position, chain.keys, false});
  chain.keys.push_back({key});
  chain.values.push_back({key});
  Slot slot = make_slot(record, q);
  slot.prompt = key;
  slot.answer = stack.add_after(chain.values, Role::value, {});
  chain.values.push_back({slot.answer, true});
  // Algorithm 2: the next key's positions leave room for the longest value.
  chain.position = stack.end_position(key) + slot.max_tokens;
  stack.slots.push_back(std::move(slot));
}

}  // namespace

void build_positional(std::span<const RecordParts> records, bool joint, std::vector<Stack>& out) {
  Stack& stack = out.emplace_back();
  const BinParts& bin = *records.front().bin;
  const SegmentId instruction = stack.add({Role::instruction, bin.instruction, 0, {}, true});

  if (!joint) {
    for (const RecordParts& record : records) {
      Tokens tokens = record.document;
      append(tokens, bin.opening);
      const SegmentId document = stack.add_after({{instruction}}, Role::document, std::move(tokens));
      Chain chain{{{instruction}, {document}}, {{instruction}, {document}}, stack.end_position(document)};
      for (size_t q = 0; q < record.questions().size(); ++q)
        add_key(stack, chain, record, q, record.questions()[q].tokens);
    }
    return;
  }

  Chain chain{{{instruction}}, {}, stack.end_position(instruction)};
  for (size_t j = 0; j < records.size(); ++j) {
    const DocumentLabel label = bin.label(j);
    Tokens tokens = label.open;
    append(tokens, records[j].document);
    append(tokens, label.close);
    if (j + 1 == records.size()) append(tokens, bin.opening);
    chain.keys.push_back({stack.add({Role::document, std::move(tokens), chain.position, chain.keys, false})});
    chain.position = stack.end_position(chain.keys.back().segment);
  }
  chain.values = chain.keys;
  for (size_t j = 0; j < records.size(); ++j) {
    for (size_t q = 0; q < records[j].questions().size(); ++q) {
      Tokens tokens;
      if (q == 0) tokens = j == 0 ? bin.label(j).section : bin.label(j).next_section;
      append(tokens, records[j].questions()[q].tokens);
      add_key(stack, chain, records[j], q, std::move(tokens));
    }
  }
}

}  // namespace sheaf
