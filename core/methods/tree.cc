#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/methods/method.h"

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

/// A question that sees `sees`; its answer continues it. `places`: of its samples.
void add_question(Stack& stack, const RecordParts& record, std::span<const size_t> places,
                  std::vector<Sight> sees, Tokens tokens) {
  add_slots(stack, record, places,
            stack.add_after(std::move(sees), record.own_questions.empty() ? Role::key : Role::question,
                            std::move(tokens)));
}

}  // namespace

void KeyChain::add(Stack& stack, Slot slot, Tokens tokens) {
  slot.prompt = stack.add({Role::key, std::move(tokens), position, keys, false});
  keys.push_back({slot.prompt});
  values.push_back({slot.prompt});
  slot.answer = stack.add_after(values, Role::value, {});
  values.push_back({slot.answer, true});
  // Algorithm 2: the next key's positions leave room for the longest value.
  position = stack.end_position(slot.prompt) + slot.max_tokens;
  stack.slots.push_back(std::move(slot));
}

void build_separate(std::span<const RecordParts> records, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    for (const size_t q : record.asked()) {
      Stack& stack = out.emplace_back();
      Segment prompt;
      prompt.role = Role::question;
      for (const Tokens* part : {&record.bin->instruction, &record.head, &record.document,
                                 &record.bin->opening, &record.questions()[q].tokens})
        append(prompt.tokens, *part);
      add_slots(stack, record, {&q, 1}, stack.add(std::move(prompt)));
    }
  }
}

void build_prefix(std::span<const RecordParts> records, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    for (const std::vector<size_t>& places : asked_places(record)) {
      Stack& stack = out.emplace_back();
      const SegmentId instruction = add_instruction(stack, *record.bin);
      add_question(stack, record, places, add_document(stack, instruction, record),
                   record.questions()[places[0]].tokens);
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
    for (const std::vector<size_t>& places : asked_places(record))
      add_question(stack, record, places, above, record.questions()[places[0]].tokens);
  }
}

void build_at_most(int32_t most,
                   const std::function<void(std::span<const RecordParts>, std::vector<Stack>&)>& build,
                   std::span<const RecordParts> records, std::vector<Stack>& out) {
  std::vector<RecordParts> prompt;
  int32_t room = most;
  for (const RecordParts& record : records) {
    const std::vector<bool> none(record.questions().size(), true);
    if (room == 0) {
      build(prompt, out);
      prompt.clear();
      room = most;
    }
    prompt.push_back(record);
    prompt.back().known = none;
    for (const std::vector<size_t>& places : asked_places(record)) {
      if (room == 0) {
        build(prompt, out);
        prompt.erase(prompt.begin(), prompt.end() - 1);
        prompt.back().known = none;
        room = most;
      }
      for (const size_t place : places) prompt.back().known[place] = false;
      --room;
    }
  }
  if (!prompt.empty()) build(prompt, out);
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
    for (const std::vector<size_t>& places : asked_places(records[j])) {
      Tokens tokens = labels[j].section;
      append(tokens, records[j].questions()[places[0]].tokens);
      add_question(stack, records[j], places, sees, std::move(tokens));
    }
  }
}

void build_positional(std::span<const RecordParts> records, bool joint, std::vector<Stack>& out) {
  Stack& stack = out.emplace_back();
  const BinParts& bin = *records.front().bin;
  const SegmentId instruction = stack.add({Role::instruction, bin.instruction, 0, {}, true});

  if (!joint) {
    for (const RecordParts& record : records) {
      Tokens tokens = record.document;
      append(tokens, bin.opening);
      const SegmentId document = stack.add_after({{instruction}}, Role::document, std::move(tokens));
      KeyChain chain{{{instruction}, {document}}, {{instruction}, {document}}, stack.end_position(document)};
      for (size_t q = 0; q < record.questions().size(); ++q)
        chain.add(stack, make_slot(record, q), record.questions()[q].tokens);
    }
    return;
  }

  KeyChain chain{{{instruction}}, {}, stack.end_position(instruction)};
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
      chain.add(stack, make_slot(records[j], q), std::move(tokens));
    }
  }
}

Slot make_slot(const RecordParts& record, size_t question) {
  const QuestionParts& parts = record.questions()[question];
  Slot slot;
  slot.max_tokens = parts.max_tokens;
  slot.stop = parts.stop;
  slot.allowed = parts.copied ? record.copies : parts.allowed;
  slot.watch = parts.watch;
  slot.search = parts.search;
  slot.thinking = parts.thinking;
  slot.decoding = record.decoding;
  slot.stream = mix(record.stream, record.question_of(question));
  if (const size_t sample = record.sample_of(question); sample > 0) slot.stream = mix(slot.stream, sample);
  slot.record = record.record;
  slot.question = static_cast<int32_t>(question);
  slot.alone_tokens =
      static_cast<int32_t>(record.bin->instruction.size() + record.head.size() + record.document.size() +
                           record.bin->opening.size() + parts.tokens.size());
  return slot;
}

std::vector<std::vector<size_t>> asked_places(const RecordParts& record) {
  std::vector<std::vector<size_t>> questions;
  for (const size_t place : record.asked()) {
    const bool same =
        !questions.empty() && record.question_of(questions.back()[0]) == record.question_of(place);
    same ? questions.back().push_back(place) : questions.push_back({place});
  }
  return questions;
}

void add_slots(Stack& stack, const RecordParts& record, std::span<const size_t> places, SegmentId prompt) {
  std::vector<Sight> sees = stack.segments[prompt].sees;
  sees.push_back({prompt});
  const AnswerTrie* list = record.questions()[places[0]].list();
  const bool options = list && !list->options().empty();
  if (options && places.size() > 1) fail("options are scored, and yet there are several samples");
  if (places.size() > 1)
    for (const size_t place : places) {
      Slot slot = make_slot(record, place);
      slot.prompt = prompt;
      slot.answer = stack.add_after(sees, Role::value, {});
      stack.slots.push_back(std::move(slot));
    }
  if (places.size() == 1) add_slot(stack, make_slot(record, places[0]), list, prompt);
}

void add_slot(Stack& stack, Slot slot, const AnswerTrie* list, SegmentId prompt) {
  slot.prompt = slot.answer = prompt;
  if (!list || list->options().empty()) return stack.slots.push_back(std::move(slot));
  std::vector<Sight> sees = stack.segments[static_cast<size_t>(prompt)].sees;
  sees.push_back({prompt});
  for (const auto& option : list->options()) {
    slot.allowed = option;
    slot.max_tokens = option->longest();
    slot.answer = stack.add_after(sees, Role::value, {});
    stack.slots.push_back(slot);
    ++slot.option;
    slot.alone_tokens = 0;
  }
}

}  // namespace sheaf
