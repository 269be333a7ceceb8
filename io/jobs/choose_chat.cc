#include "io/jobs/choose_chat.h"

#include "io/files/chat_file.h"

namespace sheaf {

ChatChoice choose_chat(const Job::ModelPart& model, std::string_view jinja, const Tokenizer& tokenizer) {
  if (model.chat == "auto") return choose_chat_template(jinja, tokenizer);
  if (model.chat_is_file()) return {read_chat_file(model.chat), "model.chat names a file"};
  return {chat_template(model.chat), "model.chat names it"};
}

}  // namespace sheaf
