#pragma once
#include <mutex>
#include <span>

#include "io/answers/answer_log.h"

namespace sheaf {

/// Keys of answers.
class AnswerKeys {
 public:
  /// `settings`: what answers depend on beside records and questions (io/files/job_fingerprint.h).
  /// `sampled`: the record's random numbers count too.
  AnswerKeys(const nlohmann::ordered_json& settings, bool sampled);

  std::vector<AnswerKey> of(const Record& record, const RecordParts& parts, bool together);

 private:
  using Digest = std::array<uint8_t, 32>;
  struct Bin {
    std::shared_ptr<const BinParts> parts;  ///< kept, so that its address stays its own
    Digest digest;
    std::vector<Digest> questions;
  };
  const Bin& bin_of(const RecordParts& parts);

  Digest settings_;
  bool sampled_;
  std::unordered_map<const BinParts*, Bin> bins_;
};

/// The answers that a run need not decode, and those it has decoded.
class Reuse final : public AnswerStore {
 public:
  /// `earlier`: of finished runs, the first one that has an answer gives it.
  Reuse(AnswerKeys keys, AnswerLog& log, std::span<const EarlierAnswers> earlier)
      : keys_(std::move(keys)), log_(log), earlier_(earlier) {}

  std::vector<AnswerKey> keys(const Record& record, const RecordParts& parts, bool together) override {
    return keys_.of(record, parts, together);
  }
  bool knows(const AnswerKey& key) override {
    for (const EarlierAnswers& run : earlier_)
      if (run.has(key)) return true;
    const std::lock_guard lock(mutex_);
    return log_.has(key);
  }
  std::optional<Answer> find(const AnswerKey& key) override {
    for (const EarlierAnswers& run : earlier_)
      if (std::optional<Answer> answer = run.find(key)) return answer;
    const std::lock_guard lock(mutex_);
    return log_.find(key);
  }
  void add(const AnswerKey& key, const Answer& answer) override {
    const std::lock_guard lock(mutex_);
    log_.add(key, answer);
  }
  void keep(const AnswerKey& key, const Answer& answer) override {
    const std::lock_guard lock(mutex_);
    log_.keep(key, answer);
  }
  bool was_kept(const AnswerKey& key) override {
    const std::lock_guard lock(mutex_);
    return log_.was_kept(key);
  }
  void commit(int64_t position) {
    const std::lock_guard lock(mutex_);
    log_.commit(position);
  }

 private:
  AnswerKeys keys_;
  AnswerLog& log_;
  std::span<const EarlierAnswers> earlier_;
  std::mutex mutex_;  ///< of the log
};

}  // namespace sheaf
