#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/task/record.h"
#include "core/task/row.h"

namespace sheaf {

/// What two runs say of the same thing, each on its side of the page.
struct PairValue {
  std::string name;               ///< of the attribute; of an answer: the question
  std::optional<RowAnswer> left;  ///< nothing: this run did not ask for it
  std::optional<RowAnswer> right;
};

/// A record, or a question, about which two runs differ.
struct PairItem {
  size_t record = 0;      ///< of PairReview::records
  int64_t question = -1;  ///< of the record, from 0; -1: the record's only one, or its attributes
  std::vector<PairValue> values;
};

/// What the page shows. It does not say which run is on which side.
struct PairReview {
  std::string key;    ///< tells this pair of runs from others
  uint64_t seed = 0;  ///< of the order and the sides
  std::vector<Record> records;
  std::vector<PairItem> items;
};

/// Whether the first run stands on the left. `item` names the record or the question.
bool first_is_left(const std::string& key, uint64_t seed, const std::string& item);

/// A page on which a person says which run is better and downloads the verdicts (docs/review.md). SHA-256
/// sums as for review_html().
std::string pair_html(const PairReview& review, std::string_view script_sha256,
                      std::string_view style_sha256);

}  // namespace sheaf
