#pragma once
#include <map>

#include "core/job/words.h"
#include "core/methods/method.h"
#include "core/plan/prompt_count.h"
#include "core/task/record_row.h"

namespace sheaf {

/// What a stack must not exceed.
struct PlanLimits {
  int32_t context = 0;                     ///< positions the model has
  int32_t prompt_tokens = 0;               ///< prompt and answer tokens of a stack of several records
  std::function<bool(const Stack&)> fits;  ///< whether the key/value pool could hold it
  TooLong too_long = TooLong::refuse;
  int32_t long_context = 0;  ///< positions that the model would have with model.context; 0: no more
};

/// A record as tokens.
struct ReadyRecord {
  std::string bin;  ///< records of one bin may share a prompt
  RecordParts parts;
  std::string refused = {};  ///< why it cannot be asked; empty: it can
};

/// The records of a window as their task words them.
std::vector<ReadyRecord> make_ready(Task& task, std::span<const Record> records);

struct PlannedRecord {
  Outcome outcome = {};  ///< with room for its answers: the questions, times the parts
  int32_t asked = 0;     ///< answers to decode, which were not known before
};

/// The stacks of one window and the records that no prompt can hold.
struct Plan {
  std::vector<Stack> stacks;
  std::vector<PlannedRecord> records;
  std::vector<std::pair<int32_t, std::string>> refused;  ///< record and reason
};

/// Positions of the longest prompt that asks one of the record's questions alone.
int64_t least_positions(const RecordParts& record);

struct BinCount {
  int64_t records = 0;
  int64_t stacks = 0;
  int64_t head_tokens = 0;  ///< before the documents of a prompt: its instruction and examples
};

/// Turns windows of records into stacks, for a run, a benchmark and an estimate alike: bins them, orders a
/// bin for sharing, stacks as many records per prompt as the method and the limits allow.
class Planner {
 public:
  Planner(Builder builder, PlanLimits limits) : builder_(std::move(builder)), limits_(std::move(limits)) {}

  /// Counts the records that can be worded; it remembers their contexts. Null: nobody wants to know.
  PromptCount* prompts = nullptr;

  Plan plan(std::vector<ReadyRecord> records);
  AnswerScope scope() const { return builder_.scope; }

  const std::map<std::string, BinCount>& bins() const { return bins_; }

 private:
  void stack_bin(const std::string& name, std::vector<RecordParts> records, Plan& plan);
  void stack_group(std::span<const RecordParts> group, Plan& plan, BinCount& count);
  void stack_long(const RecordParts& record, const std::string& reason, Plan& plan, BinCount& count);
  /// Appends the stacks of a group; where they cannot be decoded, appends nothing and says why.
  std::string try_build(std::span<const RecordParts> group, std::vector<Stack>& stacks) const;
  /// Why it cannot be decoded; empty where it can.
  std::string too_long(int64_t positions, std::string_view advice) const;
  std::string unfit(const Stack& stack, std::string_view advice) const;

  Builder builder_;
  PlanLimits limits_;
  std::map<std::string, BinCount> bins_;
};

}  // namespace sheaf
