#include <algorithm>
#include <set>

#include "core/methods/builder.h"

namespace sheaf {

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
      sees.push_back({stack.add(
          {Role::document, document.tokens, stack.end_position(instruction), {{instruction}}, shared})});
      end = std::max(end, stack.end_position(sees.back().segment));
      tokens += static_cast<int32_t>(document.tokens.size());
    }
    for (size_t q = 0; q < record.questions().size(); ++q) {
      if (!record.asks(q)) continue;
      Tokens question = record.bin->opening;
      append(question, record.questions()[q].tokens);
      const size_t first = stack.slots.size();
      add_slots(stack, record, q, stack.add({Role::question, std::move(question), end, sees, false}));
      stack.slots[first].alone_tokens += tokens;
    }
  }
}

}  // namespace sheaf
