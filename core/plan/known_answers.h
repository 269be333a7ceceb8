#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "core/engine/answer.h"
#include "core/task/parts.h"
#include "core/task/record.h"

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

/// Answers that need not be decoded: of an earlier run, or to an equal question earlier in this one. The
/// thread that plans calls keys() and knows(), the thread of the rows find() and add().
class KnownAnswers {
 public:
  virtual ~KnownAnswers() = default;
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

}  // namespace sheaf
