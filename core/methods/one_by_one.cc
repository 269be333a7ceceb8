#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/methods/method.h"

namespace sheaf {
namespace {

/// The last token of a question is kept for a segment of its own: see Slot.
void add_question(Stack& stack, std::vector<Sight>& sees, const Tokens& tokens) {
  if (tokens.size() == 1) return;
  sees.push_back({stack.add_after(sees, Role::question, {tokens.begin(), tokens.end() - 1})});
}

/// What follows a document in every chain.
Tokens question_tokens(const RecordParts& record, size_t question) {
  Tokens tokens = record.bin->opening;
  append(tokens, record.questions()[question].tokens);
  if (tokens.empty()) fail("a question has no tokens");
  return tokens;
}

/// Asks one question of a record whose documents have their relevance.
class ScoredChains final : public NextRound {
 public:
  ScoredChains(const RecordParts& record, size_t question, Job::Method method, bool shared)
      : record_(record), question_(question), method_(std::move(method)), shared_(shared) {
    record_.scored_by_question = false;
    record_.known.assign(record_.questions().size(), true);
    record_.known[question] = false;
  }

  Stack after(std::span<const Tokens> answers, std::span<const double> logprobs) const override {
    RecordParts record = record_;
    const double best = *std::ranges::max_element(logprobs);
    for (size_t i = 0; i < record.documents.size(); ++i) {
      const double behind = (logprobs[i] - best) / static_cast<double>(answers[i].size());
      record.documents[i].relevance[question_] =
          static_cast<float>(std::clamp(std::exp(behind), kLeast, kMost));
    }
    return make(record);
  }

  Stack longest() const override { return make(record_); }

 private:
  static constexpr double kLeast = 1e-8, kMost = 1 - 1e-6;  // in (0, 1) as a float too

  Stack make(const RecordParts& record) const {
    std::vector<Stack> stacks;
    build_pced({&record, 1}, method_, shared_, stacks);
    return std::move(stacks.front());
  }

  RecordParts record_;
  size_t question_;
  Job::Method method_;
  bool shared_;
};

/// How likely each document makes a question: a prompt with the document and the question's first token,
/// which the others are forced to follow.
Stack score_question(const RecordParts& record, size_t q, const Tokens& question, bool shared) {
  Stack stack;
  const auto rest = std::make_shared<AnswerTrie>(
      std::vector<Tokens>{Tokens(question.begin() + 1, question.end())}, TokenId{-1});
  SegmentId instruction = -1;
  for (size_t i = 0; i < record.documents.size(); ++i) {
    const Tokens& text = record.documents[i].tokens;
    if (!shared || i == 0)
      instruction = stack.add({Role::instruction, record.bin->instruction, 0, {}, shared});
    const SegmentId document = stack.add_after({{instruction}}, Role::document, text, shared);
    Slot slot;
    slot.prompt = slot.answer =
        stack.add_after({{instruction}, {document}}, Role::question, {question.front()});
    slot.max_tokens = rest->longest();
    slot.allowed = rest;
    slot.record = record.record;
    slot.question = static_cast<int32_t>(q);
    slot.alone_tokens = static_cast<int32_t>(record.bin->instruction.size() + text.size() + 1);
    stack.slots.push_back(std::move(slot));
  }
  return stack;
}

}  // namespace

void check_chains(const RecordParts& record, std::string_view method) {
  if (record.documents.empty())
    refuse(
        "the method {} reads the documents of a record one by one, but these records have only one; set "
        "input.documents",
        method);
}

void build_pced(std::span<const RecordParts> records, const Job::Method& method, bool shared,
                std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    check_chains(record, "pced");
    for (const size_t q : record.asked()) {
      const Tokens question = question_tokens(record, q);
      if (record.scored_by_question && question.size() > 1) {
        out.push_back(score_question(record, q, question, shared));
        out.back().next = std::make_shared<ScoredChains>(record, q, method, shared);
        continue;
      }
      Stack& stack = out.emplace_back();
      Slot slot = make_slot(record, q);
      const int32_t alone = slot.alone_tokens;
      slot.contrast = method.contrast < 0 ? kDynamicContrast : method.contrast;
      slot.aggregate = method.aggregate;
      const auto add_instruction = [&] {
        return stack.add({Role::instruction, record.bin->instruction, 0, {}, shared});
      };
      SegmentId instruction = add_instruction();
      std::vector<std::vector<Sight>> chains(1, {{instruction}});
      for (const DocumentParts& chain : record.documents) {
        if (!shared) instruction = add_instruction();
        const SegmentId document = stack.add_after({{instruction}}, Role::document, chain.tokens, shared);
        chains.push_back({{instruction}, {document}});
        slot.chain_priors.push_back(method.prior_weight * std::log(chain.relevance[q]));
        slot.alone_tokens += alone + static_cast<int32_t>(chain.tokens.size());
      }
      for (std::vector<Sight>& chain : chains) add_question(stack, chain, question);
      for (const std::vector<Sight>& chain : chains) {
        const SegmentId last = stack.add_after(chain, Role::question, {question.back()});
        if (&chain == &chains.front()) slot.prompt = slot.answer = last;
      }
      stack.slots.push_back(std::move(slot));
    }
  }
}

void build_ape(std::span<const RecordParts> records, bool shared, std::vector<Stack>& out,
               const DocumentSoftmax& softmax) {
  for (const RecordParts& record : records) {
    check_chains(record, "ape");
    Stack& stack = out.emplace_back();
    const SegmentId instruction = stack.add({Role::instruction, record.bin->instruction, 0, {}, shared});
    std::vector<Sight> sees{{instruction}};
    int32_t end = stack.end_position(instruction), tokens = 0;
    std::set<Tokens> known;  // a document that a record has twice is read once
    for (const DocumentParts& document : record.documents) {
      if (!known.insert(document.tokens).second) continue;
      sees.push_back(
          {stack.add_after({{instruction}}, Role::document, document.tokens, shared), false, softmax});
      end = std::max(end, stack.end_position(sees.back().segment));
      tokens += static_cast<int32_t>(document.tokens.size());
    }
    for (const std::vector<size_t>& places : asked_places(record)) {
      Tokens question = record.bin->opening;
      append(question, record.questions()[places[0]].tokens);
      const size_t first = stack.slots.size();
      add_slots(stack, record, places, stack.add({Role::question, std::move(question), end, sees, false}));
      for (size_t i = 0; i < places.size(); ++i) stack.slots[first + i].alone_tokens += tokens;
    }
  }
}

}  // namespace sheaf
