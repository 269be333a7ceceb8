#pragma once
#include "core/task/record.h"

namespace sheaf {

/// Says of which rejects only the number is told, so that a damaged stretch of a file does not fill the disk
/// with one line per record: those behind a hundred of the same kind, in one file and without a record
/// between. They have no id by which anybody could look for them. This depends on the hundred records before
/// it only, so reading may begin anywhere.
class AlikeRejects {
 public:
  static constexpr int64_t kToldEach = 100;  ///< records
  /// Records at numbers between two multiples of this are told together, at most.
  static constexpr int64_t kToldTogether = 1000;
  /// How many records before a place decide what is told there.
  static constexpr int64_t kLookBack = kToldEach + 1;

  /// `numbered`: the ids are numbers of records, which nobody looks for.
  explicit AlikeRejects(bool numbered) : numbered_(numbered) {}

  /// Whether the row is of the kind of those before it, which are enough to tell no more than its number.
  bool is_one_more(const std::variant<Record, Reject>& row) const;
  /// Whether the last one was such a row.
  bool in_stretch() const { return count_ > kToldEach; }
  void add(const std::variant<Record, Reject>& row);
  /// What comes next is not known to follow what came before.
  void forget() { count_ = 0; }

 private:
  bool is_like_last(const Reject& reject, const std::string& kind) const;

  bool numbered_;
  std::string file_, kind_;
  int64_t count_ = 0;  ///< of the same kind, up to the last row
};

}  // namespace sheaf
