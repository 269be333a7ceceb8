#pragma once

#include "core/task/task.h"

namespace sheaf {

/// "models/tiny: its tokenizer (byte-level BPE (gpt-2), 12 tokens)", to say what it cannot do.
std::string tokenizer_name(const TaskContext& context);

/// Refuses a tokenizer that has no token for any letter of the instruction.
void check_tokenizer(const TaskContext& context);

/// `texts` as the only answers that may be given. Refuses where the tokenizer has no tokens for one of them
/// or spells two alike. `scored`: the likeliest as a whole is taken.
std::shared_ptr<const AnswerTrie> make_choices(const TaskContext& context,
                                               const std::vector<std::string>& texts, bool scored = false);

/// Whether the value is one of the attribute's options.
bool is_chosen(const Attribute& attribute);
/// Makes the options of such an attribute the only answers, and null where `nullable`. `scored`: the
/// likeliest as a whole is taken.
void add_choices(const TaskContext& context, const Attribute& attribute, bool nullable, bool scored,
                 QuestionParts& question);

}  // namespace sheaf
