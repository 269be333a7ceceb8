#pragma once
#include <cstdint>
#include <span>

#include "core/base/token.h"

namespace sheaf {

/// The only answers a slot may give. Decoding walks them from the root: at each node some tokens are allowed.
/// Nodes may be made while they are walked, so one thread at a time walks the answers of a document.
class AllowedAnswers {
 public:
  using Node = int32_t;
  static constexpr Node root = 0;

  virtual ~AllowedAnswers() = default;
  /// Allowed next tokens, ascending, at least one.
  virtual std::span<const TokenId> allowed(Node node) const = 0;
  /// The node after `token`, which is allowed; -1 once the answer is complete.
  virtual Node advance(Node node, TokenId token) const = 0;
  /// Where only one answer is possible: that one.
  virtual const Tokens* only_answer() const { return nullptr; }
};

}  // namespace sheaf
