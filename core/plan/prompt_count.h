#pragma once
#include <set>

#include "core/task/parts.h"

namespace sheaf {

/// What the prompts of records are made of, in tokens.
class PromptCount {
 public:
  void add(const RecordParts& record);

  int64_t contexts() const { return static_cast<int64_t>(contexts_.size()); }  ///< different ones
  int64_t questions() const { return questions_; }
  double questions_per_context() const { return mean(questions_, contexts()); }
  double instruction_tokens() const { return mean(instruction_tokens_, records_); }  ///< mean of records
  double context_tokens() const {
    return mean(context_tokens_, contexts());
  }  ///< mean; several documents together
  double question_tokens() const { return mean(question_tokens_, questions_); }

 private:
  static double mean(int64_t sum, int64_t count) {
    return count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0;
  }

  std::set<uint64_t> contexts_;  ///< hashes of them
  int64_t records_ = 0, questions_ = 0;
  int64_t instruction_tokens_ = 0, context_tokens_ = 0, question_tokens_ = 0;
};

}  // namespace sheaf
