#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "core/segments/allowed_answers.h"

namespace sheaf {

/// Answers that are made when they are first asked for.
class LateAnswers : public AllowedAnswers {
 public:
  using Make = std::function<std::unique_ptr<AllowedAnswers>()>;
  explicit LateAnswers(Make make) : make_(std::move(make)) {}

  std::span<const TokenId> allowed(Node node) const override { return made().allowed(node); }
  Node advance(Node node, TokenId token) const override { return made().advance(node, token); }

 private:
  const AllowedAnswers& made() const {
    if (!made_) made_ = std::exchange(make_, nullptr)();
    return *made_;
  }

  mutable Make make_;
  mutable std::unique_ptr<AllowedAnswers> made_;
};

}  // namespace sheaf
