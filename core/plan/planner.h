#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/methods/builder.h"
#include "core/task/item.h"
#include "core/task/task.h"

namespace sheaf {

/// What a stack must not exceed.
struct PlanLimits {
  int32_t context = 0;                     ///< positions the model has
  int32_t prompt_tokens = 0;               ///< prompt and answer tokens of a stack of several items
  std::function<bool(const Stack&)> fits;  ///< whether the key/value pool could hold it
};

/// The stacks of one window and the items that no prompt can hold.
struct Plan {
  std::vector<Stack> stacks;
  std::vector<int32_t> slots_of_item;                    ///< answers to expect, per item
  std::vector<std::pair<int32_t, std::string>> refused;  ///< item and reason
};

struct BinCount {
  int64_t items = 0;
  int64_t stacks = 0;
};

/// Turns windows of items into stacks: bins them, orders a bin for sharing, stacks as many items per prompt
/// as the method and the limits allow.
class Planner {
 public:
  Planner(Task& task, Builder builder, PlanLimits limits)
      : task_(task), builder_(std::move(builder)), limits_(std::move(limits)) {}

  Plan plan(std::span<const Item> items);

  const std::map<std::string, BinCount>& bins() const { return bins_; }

 private:
  void stack_bin(const std::string& name, std::vector<ItemParts> items, Plan& plan);
  void stack_group(std::span<const ItemParts> group, Plan& plan, BinCount& count);
  /// Why it cannot be decoded; empty where it can.
  std::string too_long(int64_t positions) const;
  std::string unfit(const Stack& stack) const;

  Task& task_;
  Builder builder_;
  PlanLimits limits_;
  std::map<std::string, BinCount> bins_;
};

}  // namespace sheaf
