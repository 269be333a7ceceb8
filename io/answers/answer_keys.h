#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/plan/known_answers.h"

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

}  // namespace sheaf
