#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/metrics/metric.h"
#include "core/task/gold.h"
#include "io/datasets/gold.h"
#include "io/files/predictions.h"

namespace sheaf {

/// Gold answers joined with predictions, and the ids that have only one of the two.
struct MetricItems {
  std::vector<MetricItem> items;     ///< in the order of the gold answers
  std::vector<std::string> missing;  ///< ids of questions or documents that have no prediction
  std::vector<std::string> unknown;  ///< ids of predictions that have no gold answer
  /// Attributes of which only a wrong value is known, and another one or none was predicted: left out.
  std::vector<std::string> unjudged = {};
  std::vector<std::string> repeated = {};   ///< ids of rows that another row has and the gold says once
  std::vector<std::string> paired = {};     ///< ids that as many rows as gold answers have, joined in order
  std::vector<std::string> ambiguous = {};  ///< ids with gold answers that differ, not as many as rows
  /// Attributes that the gold names and no row has, each with the one that is nearest to it.
  std::vector<std::string> unknown_attributes = {};
  std::vector<std::string> unnamed_attributes = {};  ///< attributes of rows that the gold never names

  std::vector<std::string> long_lists = {};  ///< lists of objects that were not paired as a whole
  int64_t repeated_rows = 0;                 ///< rows left out for their id
  UnreadableGold unreadable = {};            ///< gold values compared as text
};

struct JoinOptions {
  std::vector<std::string> no_answer;  ///< answers that mean there is none, beside null; case does not count
  bool skip_missing = false;           ///< leave out what has no prediction
  bool unmentioned_absent = false;     ///< attributes that the gold does not name count, as absent ones
  bool marked_wrong = true;            ///< values that the gold only knows to be wrong count
  /// Attributes: gold values are read by its types; without it they are compared as text.
  std::shared_ptr<const Schema> schema = {};
};

/// Refuses gold answers that are not of the metric's kind.
void check_gold(const Metric& metric, const std::vector<GoldAnswer>& gold);

/// Refuses gold answers and predictions that are not of the metric's kind, or that have no id in common.
MetricItems join_gold(const Metric& metric, const std::vector<GoldAnswer>& gold,
                      const Predictions& predictions, const JoinOptions& options = {});

/// What a user should know of ids that stand several times and of attributes that only one side names, each a
/// sentence. `path`: of the predictions.
std::vector<std::string> join_notices(const MetricItems& joined, const std::string& path,
                                      const JoinOptions& options);

/// "2 WHAT: \"a\", \"b\"", the first few by name.
std::string name_some(const std::string& what, const std::vector<std::string>& names);

/// Two runs, the first in the place of the gold answers; rows that share an id are joined in order.
MetricItems join_runs(const Predictions& first, const Predictions& second, const JoinOptions& options = {});

/// The judgements of a file of JSON lines: {"id", "judgements": {attribute: word}}, or {"id", "reply"} with
/// what the judge wrote; "category" may stand beside them. Replies that say nothing that can be read are
/// `unknown`.
MetricItems read_judged_items(const std::string& path);

}  // namespace sheaf
