#pragma once
#include <compare>
#include <cstdint>

namespace sheaf {

/// What one answer of a prompt holds.
enum class AnswerForm : uint8_t {
  each,    ///< the answer to one question, or the value of one attribute
  object,  ///< extract: all values of a record, as one JSON object
  list,    ///< all answers or values of a record, as one numbered list
};

/// How prompts are worded. Methods that word them alike have the same tokens.
struct Wording {
  AnswerForm answers = AnswerForm::each;
  bool plain_text = false;  ///< ask: document, question, answer, without the model's chat turns
  bool skeleton = false;    ///< values stand under given keys; method.values and method.stacking are its own
  bool one_by_one = false;  ///< ask: a record's documents are read one by one
  bool fused =
      false;  ///< one_by_one: each document has a chain of its own, and an answer is fused from all chains
  bool findings =
      false;  ///< one_by_one: each document gives a finding, and the questions are asked about these

  auto operator<=>(const Wording&) const = default;
};

}  // namespace sheaf
