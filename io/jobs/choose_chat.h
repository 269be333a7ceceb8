#pragma once
#include <string_view>

#include "core/job/job.h"
#include "core/tokenizer/chat_template.h"

namespace sheaf {

/// The chat template that a job asks for: by name, in a file, or the one that fits the model. `jinja` is the
/// model's own.
ChatChoice choose_chat(const Job::ModelPart& model, std::string_view jinja, const Tokenizer& tokenizer);

}  // namespace sheaf
