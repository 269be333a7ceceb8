#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// What lists of objects in a document have that no field of a gold entry says.
struct EntryCounts {
  int64_t wanted = 0, given = 0, found = 0;  ///< entries of gold, of the prediction, and of both
  int64_t invented = 0;  ///< values of predicted entries that no entry of gold is paired with
};

/// One thing to score: a question, or one attribute of one document. All text is valid UTF-8.
struct MetricItem {
  std::string id;
  std::string unit;  ///< items drawn together: a dialogue's (quac), a document's; empty: the item alone
  std::string category, attribute;  ///< attributes only

  /// Nothing: there is no prediction. Empty: the prediction is "no answer" (null). One text as a rule;
  /// several for an answer of several spans (drop), or a choice under both its names, letter and text
  /// (accuracy). judged: the judge's word for it.
  std::optional<std::vector<std::string>> prediction;
  /// The accepted answers, each one text as a rule, several spans for drop. Empty: no answer is right.
  std::vector<std::vector<std::string>> references;

  /// drop: of each reference: number, span, spans or date. longbench: all classes of a classification.
  std::vector<std::string> kinds = {};
  /// quac: whether these were predicted rightly; nothing where the run says nothing of them.
  std::optional<bool> yesno = {}, followup = {};

  std::optional<double> confidence = {};    ///< of the prediction, where the run says it
  std::optional<double> null_margin = {};   ///< attributes: method.null_bias from which on it is null
  std::string type = {};                    ///< attributes: as the schema says it; empty: not known
  std::optional<EntryCounts> entries = {};  ///< attributes: a count of entries in place of a value
};

/// Whether an answer is the letter of an option as models write it: "c", "C.", "(C)".
bool is_option_letter(std::string_view text);

/// How a metric counts. Every value it has is computed from sums over the items, so that a sample of the
/// items has the same values computed the same way.
struct Metric {
  std::string_view name;
  std::string_view about;  ///< one line for the help
  struct ValueName {
    std::string_view name;  ///< as the official script calls it
    bool is_count = false;
    bool optional = false;        ///< left out if no item counts towards it
    std::string_view about = {};  ///< of a count whose name does not say it
  };
  std::span<const ValueName> values;
  std::span<const ValueName> scores;  ///< of an item
  int32_t main = -1;                  ///< the value that says most; -1: F1, or the first
  int32_t right = -1;                 ///< which score is 0 or 1: right or not; -1: none
  int32_t terms = 0;                  ///< sums it keeps
  double best = 1;                    ///< what a value is at best: 1 or 100

  /// Scores an item: `terms` is what it adds to the sums of its unit, `scores` what it got; NaN where it does
  /// not count.
  void (*measure)(const MetricItem& item, std::span<double> terms, std::span<double> scores);
  /// Completes the sums of a unit; null: nothing to do.
  void (*close_unit)(std::span<double> terms) = nullptr;
  /// From sums to values; NaN if no item counts towards a value.
  void (*evaluate)(std::span<const double> sums, std::span<double> values);
  /// The group an item belongs to in the breakdown; null: its category.
  std::string_view (*group)(const MetricItem& item) = nullptr;
};

std::span<const Metric> all_metrics();
/// Refuses an unknown name.
const Metric& find_metric(std::string_view name);

struct Interval {
  double low = 0, high = 0;
};

struct ScoreOptions {
  int32_t resamples = 1000;  ///< 0: no intervals
  uint64_t seed = 0;
};

/// What a metric says of some items.
struct Scores {
  const Metric* metric = nullptr;
  std::vector<double> values;                      ///< one for each of metric->values
  std::vector<std::optional<Interval>> intervals;  ///< 95 % of the resamples; nothing for counts
  std::vector<double> items;                       ///< [items × metric->scores] in the order of the items
  std::vector<double> units;                       ///< [units × metric->terms] in order of first appearance
  int64_t unit_count = 0;
};

Scores score_items(const Metric& metric, std::span<const MetricItem> items, const ScoreOptions& options = {});

/// Two runs over the same items: the values of the second less those of the first.
struct Comparison {
  struct Value {
    double difference = 0;
    Interval interval;   ///< 95 % of the resamples of both runs together
    double p_value = 1;  ///< two-sided: how often runs whose units were swapped at random differ as much
  };
  std::vector<std::optional<Value>> values;   ///< nothing for counts
  struct McNemar {                            ///< where items are right or wrong, each on its own
    int64_t only_first = 0, only_second = 0;  ///< items that only this run got right
    double p_value = 1;                       ///< exact, two-sided
  };
  std::optional<McNemar> mcnemar;
};

Comparison compare_scores(const Scores& first, const Scores& second, const ScoreOptions& options = {});

/// The values of the items of one category (drop: one kind of answer), or of one attribute of one category.
struct Group {
  std::string category;
  std::string attribute;       ///< empty: all of the category's
  std::vector<double> values;  ///< one for each of the metric's
};

/// Categories in alphabetical order, each before its attributes. Empty where the items have no category.
std::vector<Group> break_down(const Metric& metric, std::span<const MetricItem> items);

/// The items of each type of attribute as a category of its own, in alphabetical order; items whose type is
/// not known are left out.
std::vector<Group> break_down_by_type(const Metric& metric, std::span<const MetricItem> items);

/// ExtractGPT's macro scores: precision, recall and F1 averaged over the attributes of all categories that
/// have a value, wanted or given. `groups`: of the metric `attributes`.
std::vector<double> macro_scores(std::span<const Group> groups);

}  // namespace sheaf
