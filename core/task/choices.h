#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/segments/answer_trie.h"
#include "core/task/task.h"

namespace sheaf {

/// "models/tiny: its tokenizer (byte-level BPE (gpt-2), 12 tokens)", to say what it cannot do.
std::string tokenizer_name(const TaskContext& context);

/// Refuses a tokenizer that has no token for any letter of the instruction.
void check_tokenizer(const TaskContext& context);

/// `texts` as the only answers that may be given. Refuses where the tokenizer has no tokens for one of them
/// or spells two alike.
std::shared_ptr<const AnswerTrie> make_choices(const TaskContext& context,
                                               const std::vector<std::string>& texts);

}  // namespace sheaf
