#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/methods/builder.h"

namespace sheaf {
namespace {

/// The last token of a question is kept for a segment of its own: see Slot.
void add_question(Stack& stack, std::vector<Sight>& sees, const Tokens& tokens) {
  if (tokens.size() == 1) return;
  const int32_t position = stack.end_position(sees.back().segment);
  sees.push_back({stack.add({Role::question, {tokens.begin(), tokens.end() - 1}, position, sees, false})});
}

}  // namespace

void build_pced(std::span<const RecordParts> records, const Job::Method& method, bool shared,
                std::vector<Stack>& out) {
  for (const RecordParts& record : records) {
    check_chains(record, "pced");
    for (size_t q = 0; q < record.questions().size(); ++q) {
      if (!record.asks(q)) continue;
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
        const SegmentId document = stack.add(
            {Role::document, chain.tokens, stack.end_position(instruction), {{instruction}}, shared});
        chains.push_back({{instruction}, {document}});
        slot.chain_priors.push_back(method.prior_weight * std::log(chain.relevance[q]));
        slot.alone_tokens += alone + static_cast<int32_t>(chain.tokens.size());
      }
      for (std::vector<Sight>& chain : chains) add_question(stack, chain, question);
      for (const std::vector<Sight>& chain : chains) {
        const SegmentId last = stack.add(
            {Role::question, {question.back()}, stack.end_position(chain.back().segment), chain, false});
        if (&chain == &chains.front()) slot.prompt = slot.answer = last;
      }
      stack.slots.push_back(std::move(slot));
    }
  }
}

}  // namespace sheaf
