#include "core/methods/builder.h"

#include "core/engine/random_stream.h"
#include "core/error.h"

namespace sheaf {
namespace {

Builder make_pced_builder(const Job::Method& method, bool shared) {
  return {method.name, 1, [method, shared](std::span<const ItemParts> items, std::vector<Stack>& out) {
            build_pced(items, method, shared, out);
          }};
}

}  // namespace

Builder make_builder(const Job::Method& method) {
  const bool joint = method.stacking == "joint";
  if (method.name == "standard" || method.name == "separate") return {method.name, 1, build_separate};
  if (method.name == "prefix") return {method.name, 1, build_prefix};
  if (method.name == "ippd") return {method.name, method.documents, build_tree};
  if (method.name == "parallel-prompting") return {method.name, 1, build_tree};
  if (method.name == "hpd" && method.values == "positional")
    return {method.name, method.documents,
            [joint](std::span<const ItemParts> items, std::vector<Stack>& out) {
              build_positional(items, joint, out);
            },
            true};
  if (method.name == "hpd") return {method.name, method.documents, joint ? build_joint_tree : build_tree};
  if (method.name == "pced") return make_pced_builder(method, true);
  refuse("method.name: there is no method \"{}\"", method.name);
}

Builder make_separate_builder(const Job::Method& method) {
  if (method.name == "pced") return make_pced_builder(method, false);
  return {"separate", 1, build_separate};
}

Slot make_slot(const ItemParts& item, size_t question) {
  const QuestionParts& parts = item.questions()[question];
  Slot slot;
  slot.max_tokens = parts.max_tokens;
  slot.stop = parts.stop;
  slot.allowed = parts.allowed;
  slot.stream = mix(item.stream, question);
  slot.item = item.item;
  slot.question = static_cast<int32_t>(question);
  slot.alone_tokens = static_cast<int32_t>(item.bin->instruction.size() + item.document.size() +
                                           item.bin->opening.size() + parts.tokens.size());
  return slot;
}

}  // namespace sheaf
