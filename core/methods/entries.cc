#include <algorithm>

#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/methods/method.h"
#include "core/task/asked_value.h"

namespace sheaf {
namespace {

constexpr uint64_t kEntryStream = 0x656e747279;  // apart from the streams of samples and parts

/// A slot whose answer lists entries.
struct List {
  size_t slot;
  std::shared_ptr<const EntryParts> parts;
  size_t question_tokens;  ///< at the end of its prompt
  std::shared_ptr<const AllowedAnswers> copies;
  size_t above;  ///< sights of its prompt, from the first, that entries have too
};

class EntryRound final : public NextRound {
 public:
  EntryRound(const Stack& stack, std::vector<List> lists, bool in_a_row) : in_a_row_(in_a_row) {
    std::vector<SegmentId> number(stack.segments.size(), -1);
    for (List& list : lists) {
      Asked& asked = asked_.emplace_back();
      asked.slot = stack.slots[list.slot];
      const Segment& prompt = stack.segments[static_cast<size_t>(asked.slot.prompt)];
      asked.before.assign(prompt.tokens.begin(),
                          prompt.tokens.end() - static_cast<std::ptrdiff_t>(list.question_tokens));
      for (const Sight& sight : std::span(prompt.sees).first(list.above)) {
        if (sight.abreast)
          fail("the question of a list of objects sees a value that is decoded in parallel with it");
        asked.sees.push_back({copied(stack, sight.segment, number)});
      }
      asked.list = std::move(list);
    }
  }

  bool keeps_answers() const override { return true; }

  Stack after(std::span<const Tokens> answers, std::span<const double>) const override {
    return make([&](const List& list) { return list.parts->entries(answers[list.slot]); });
  }

  Stack longest() const override {
    return make(
        [](const List& list) { return made_up(list, list.parts->most_entries, list.parts->most_tokens); });
  }

  Stack expected() const override {
    return make([](const List& list) {
      return made_up(list, kExpectedEntries, list.parts->most_tokens - list.parts->spare_tokens);
    });
  }

 private:
  /// A list, and what its question saw.
  struct Asked {
    List list;
    Slot slot;
    Tokens before;            ///< what stands in the prompt's own segment before the question
    std::vector<Sight> sees;  ///< segments of shared_
  };

  /// The number that a segment has among those that lists' prompts see.
  SegmentId copied(const Stack& stack, SegmentId id, std::vector<SegmentId>& number) {
    const auto at = static_cast<size_t>(id);
    if (number[at] >= 0) return number[at];
    Segment segment = stack.segments[at];
    for (Sight& sight : segment.sees) sight.segment = copied(stack, sight.segment, number);
    return number[at] = shared_.add(std::move(segment));
  }

  static Slot slot_of(const Asked& asked, size_t entry, size_t question, size_t entry_tokens) {
    const QuestionParts& parts = asked.list.parts->questions[question];
    Slot slot;
    slot.max_tokens = parts.max_tokens;
    slot.stop = parts.stop;
    slot.allowed = parts.copied ? asked.list.copies : parts.allowed;
    slot.watch = parts.watch;
    slot.search = parts.search;
    slot.decoding = asked.slot.decoding;
    slot.stream = mix(mix(asked.slot.stream, kEntryStream + entry), question);
    slot.record = asked.slot.record;
    slot.question = static_cast<int32_t>(question);
    slot.parent = static_cast<int32_t>(asked.list.slot);
    slot.entry = static_cast<int32_t>(entry);
    slot.alone_tokens = asked.slot.alone_tokens - static_cast<int32_t>(asked.list.question_tokens) +
                        static_cast<int32_t>(entry_tokens + parts.tokens.size());
    return slot;
  }

  static std::vector<Tokens> made_up(const List& list, size_t entries, size_t tokens) {
    return std::vector<Tokens>(std::min(list.parts->most_entries, entries), Tokens(tokens, 0));
  }

  template <class Entries>
  Stack make(const Entries& entries) const {
    Stack stack = shared_;
    std::vector<List> inner;
    for (const Asked& asked : asked_) {
      const std::vector<Tokens> opened = entries(asked.list);
      for (size_t entry = 0; entry < opened.size(); ++entry)
        add_entry(stack, asked, entry, opened[entry], inner);
    }
    if (!inner.empty()) stack.next = std::make_shared<EntryRound>(stack, std::move(inner), in_a_row_);
    return stack;
  }

  /// `opened`: what stands before the questions about the entry.
  void add_entry(Stack& stack, const Asked& asked, size_t entry, const Tokens& opened,
                 std::vector<List>& inner) const {
    const std::vector<QuestionParts>& questions = asked.list.parts->questions;
    Tokens above = asked.before;
    append(above, opened);
    std::vector<Sight> sees = asked.sees;
    const bool shares = !sees.empty();
    if (shares && !questions.empty()) sees.push_back({stack.add_after(asked.sees, Role::key, above)});
    KeyChain chain{sees, sees, shares && in_a_row_ ? stack.end_position(sees.back().segment) : 0};
    for (size_t q = 0; q < questions.size(); ++q) {
      Tokens tokens = shares ? Tokens() : above;
      append(tokens, questions[q].tokens);
      Slot slot = slot_of(asked, entry, q, opened.size());
      if (questions[q].entries)
        inner.push_back({stack.slots.size(), questions[q].entries, questions[q].tokens.size(),
                         asked.list.copies, sees.size()});
      if (in_a_row_) {
        chain.add(stack, std::move(slot), std::move(tokens));
        continue;
      }
      const SegmentId prompt = shares ? stack.add_after(sees, Role::key, std::move(tokens))
                                      : stack.add({Role::question, std::move(tokens), 0, {}, false});
      add_slot(stack, std::move(slot), questions[q].list(), prompt);
    }
  }

  Stack shared_;  ///< segments that lists' prompts see
  std::vector<Asked> asked_;
  bool in_a_row_;  ///< an entry's keys stand in one chain
};

/// The first list of objects, at any depth; null: there is none.
const Attribute* find_list(const std::vector<Attribute>& attributes) {
  for (const Attribute& attribute : attributes) {
    if (attribute.type == ValueType::entries) return &attribute;
    if (const Attribute* inner = find_list(attribute.fields)) return inner;
  }
  return nullptr;
}

}  // namespace

std::string nested_trouble(const Job& job, const Schema& schema) {
  const Attribute* nested = find_nested(schema);
  if (!nested) return {};
  const Job::Method& method = job.method;
  const auto refused = [&](const Attribute& attribute, std::string_view what) {
    return fmt::format("{}: attribute \"{}\" has attributes of its own, which {}", schema.place(attribute),
                       attribute.name, what);
  };
  if (!job.task.trust.run.empty())
    return refused(*nested, "task.trust cannot compare; leave out one of them");
  if (method.samples > 1) return refused(*nested, "method.samples cannot vote on; set method.samples: 1");
  const Wording& wording = find_method(method.name).wording;
  if (wording.answers == AnswerForm::object) return {};
  if (wording.answers == AnswerForm::list)
    return refused(*nested,
                   fmt::format("method.name {} cannot list; use hpd, separate or standard", method.name));
  if (method.keys == KeyForm::marker)
    return refused(*nested, "have paths and no numbers; set method.keys: name");
  for (const Category& category : schema.categories) {
    const Attribute* list = find_list(category.attributes);
    if (!list) continue;
    if (method.stacking == Stacking::joint)
      return refused(*list, "are asked for once its entries are known; set method.stacking: isolated");
    if (const std::string most = too_many_asked(category.attributes); !most.empty())
      return refused(*list, fmt::format("could come to {}; lower max_entries", most));
  }
  return {};
}

void ask_entries(Stack& stack, std::span<const RecordParts> records, bool in_a_row) {
  std::vector<List> lists;
  for (size_t i = 0; i < stack.slots.size(); ++i) {
    const Slot& slot = stack.slots[i];
    const auto record = std::ranges::find(records, slot.record, &RecordParts::record);
    if (record == records.end()) fail("a slot of a stack belongs to none of its records");
    const QuestionParts& question = record->questions()[static_cast<size_t>(slot.question)];
    if (!question.entries) continue;
    const std::vector<Sight>& sees = stack.segments[static_cast<size_t>(slot.prompt)].sees;
    const auto above =
        in_a_row ? std::ranges::find_if(sees,
                                        [&](const Sight& sight) {
                                          return stack.segments[static_cast<size_t>(sight.segment)].role ==
                                                 Role::key;
                                        })
                 : sees.end();
    lists.push_back({i, question.entries, question.tokens.size(), record->copies,
                     static_cast<size_t>(above - sees.begin())});
  }
  if (lists.empty()) return;
  if (stack.next) fail("a list of objects is asked for in a stack that has a later round already");
  stack.next = std::make_shared<EntryRound>(stack, std::move(lists), in_a_row);
}

}  // namespace sheaf
