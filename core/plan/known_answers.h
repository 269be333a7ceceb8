#pragma once
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "core/engine/answer.h"
#include "core/plan/planner.h"

namespace sheaf {

/// Stands for an answer: a digest of everything that decides it.
using AnswerKey = std::array<uint8_t, 12>;

struct AnswerKeyHash {
  size_t operator()(const AnswerKey& key) const {
    size_t hash = 0;  // a digest is as good as random
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
  }
};

/// Where answers are kept for later: those of an earlier run and of this one. The thread that plans calls
/// keys() and knows(), the thread of the rows the others.
class AnswerStore {
 public:
  virtual ~AnswerStore() = default;
  /// One per question of the record; `together`: an answer depends on the record's other questions too.
  virtual std::vector<AnswerKey> keys(const Record& record, const RecordParts& parts, bool together) = 0;
  virtual bool knows(const AnswerKey& key) = 0;
  virtual std::optional<Answer> find(const AnswerKey& key) = 0;
  /// Every answer of the run passes here, in the order of the rows; one that it has already changes nothing.
  virtual void add(const AnswerKey& key, const Answer& answer) = 0;
  /// An answer of a record whose row has to wait for others.
  virtual void keep(const AnswerKey& key, const Answer& answer) { add(key, answer); }
  /// Whether an earlier session of this run kept the answer; its row was not counted there. True once a key.
  virtual bool was_kept(const AnswerKey&) { return false; }
};

/// What is known of a record's answers.
struct KeyedAnswers {
  std::vector<AnswerKey> keys;  ///< of its answers; none where they are not kept
  std::vector<bool> known;      ///< answers that were known before the record was planned; empty: none
  std::vector<bool> taken;      ///< answers that the task has, which no store is asked for; empty: none

  bool knows(size_t question) const { return !known.empty() && known[question]; }
  bool takes(size_t question) const { return !taken.empty() && taken[question]; }
  bool decodes(size_t question) const { return !knows(question) && !takes(question); }
};

/// Answers that need not be decoded: of an earlier run, or to an equal question earlier in this one. The
/// thread that plans calls plan(), the thread of the rows complete().
class KnownAnswers {
 public:
  AnswerStore* store = nullptr;  ///< null: every answer is decoded

  /// Plans the records of a window without what is known, or will be once the rows before them are emitted.
  Plan plan(Task& task, Planner& planner, std::span<const Record> records, std::vector<KeyedAnswers>& keyed);
  /// Fills in the answers of a record that were known, and keeps all of them for the records that follow.
  /// Returns how many were reused.
  int64_t complete(const KeyedAnswers& keyed, std::vector<Answer>& answers);

 private:
  using Keys = std::unordered_set<AnswerKey, AnswerKeyHash>;
  void leave_out(std::span<const Record> records, std::vector<ReadyRecord>& ready, AnswerScope scope,
                 const Keys& lost, std::vector<KeyedAnswers>& keyed);

  std::mutex mutex_;
  Keys to_come_;  ///< of answers that are planned and not yet complete
};

}  // namespace sheaf
