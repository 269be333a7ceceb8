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
      Tokens question = record.bin->opening;
      append(question, record.questions()[q].tokens);
      if (question.empty()) fail("a question has no tokens");
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

void build_ape(std::span<const RecordParts> records, bool shared, std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    check_chains(record, "ape");
    Stack& stack = out.emplace_back();
    const SegmentId instruction = stack.add({Role::instruction, record.bin->instruction, 0, {}, shared});
    std::vector<Sight> sees{{instruction}};
    int32_t end = stack.end_position(instruction), tokens = 0;
    std::set<Tokens> known;  // a document that a record has twice is read once
    for (const DocumentParts& document : record.documents) {
      if (!known.insert(document.tokens).second) continue;
      sees.push_back({stack.add_after({{instruction}}, Role::document, document.tokens, shared)});
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
