#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace sheaf {

struct JinjaNode;

/// What a chat template is rendered with.
struct JinjaInputs {
  struct Message {
    std::string role, content;
  };
  std::vector<Message> messages;
  std::string bos_token, eos_token;
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;  ///< nullopt: not defined
};

/// The template itself refuses a dialog (raise_exception).
class JinjaRefusal : public BadText {
  using BadText::BadText;
};

/// A chat template in the part of Jinja that models' own templates use: text, set, for, if, expressions, some
/// filters, tests and methods, laid out as transformers does (trim_blocks, lstrip_blocks). It is data for a
/// small interpreter: nothing of the machine can be reached from it, and steps, nesting and text are bounded.
/// Whatever else a template does is refused as BadText, which says the line and what was not understood.
class JinjaTemplate {
 public:
  explicit JinjaTemplate(std::string_view text);
  std::string render(const JinjaInputs& inputs) const;

 private:
  std::shared_ptr<const JinjaNode> root_;
};

}  // namespace sheaf
