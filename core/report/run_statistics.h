#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/histogram.h"
#include "core/engine/answer.h"
#include "core/engine/engine_stats.h"
#include "core/plan/pipeline.h"
#include "core/report/row_sample.h"
#include "core/task/record.h"
#include "core/task/row.h"

namespace sheaf {

/// What was done when: points of equal length in time, at most kPoints of them however long a run is. When
/// they are full, neighbours are merged and a point's time doubles.
class Throughput {
 public:
  static constexpr size_t kPoints = 300;

  struct Point {
    int64_t steps = 0;
    int64_t rows = 0;           ///< whose answers were completed
    int64_t tokens = 0;         ///< computed: prompt and decoded
    int64_t answer_tokens = 0;  ///< picked
  };
  /// The counts of a point by their keys in a report.
  static constexpr std::pair<const char*, int64_t Point::*> kCounts[] = {
      {"steps", &Point::steps},
      {"rows", &Point::rows},
      {"tokens", &Point::tokens},
      {"answer_tokens", &Point::answer_tokens}};

  /// `seconds`: since the start of the work.
  void add(double seconds, const Point& done);

  double point_seconds() const { return point_seconds_; }
  const std::vector<Point>& points() const { return points_; }
  nlohmann::ordered_json json() const;

 private:
  double point_seconds_ = 0.0625, seconds_ = 0;
  std::vector<Point> points_;
};

/// What a run's report says beyond its totals, counted while it runs. Its memory does not grow with the
/// corpus: the series are bounded, the values are those of the schema, and reject reasons are kept by kind.
class RunStatistics {
 public:
  /// The clock of the throughput starts; without a call, with the first step.
  void start();
  /// After every step, and once after the last row.
  void step(const EngineStats& engine, const PipelineStats& pipeline);
  void step(double seconds, const EngineStats& engine, const PipelineStats& pipeline);
  /// A row as it is written, with the answers and the record it was made from.
  void row(const Row& row, const std::vector<Answer>& answers, const Record& record = {});
  void reject(const Reject& reject);
  /// The most frequent kinds of reasons: `reject_reasons` of a report.
  nlohmann::ordered_json reject_reasons() const;

  /// As of the last step.
  const EngineStats& engine() const { return last_engine_; }

  /// The keys of a report that come from here: throughput, per_step, value_tokens, endings, values,
  /// questions, sample, reject_reasons.
  void add_to(nlohmann::ordered_json& report) const;

 private:
  struct Count {
    int64_t asked = 0, found = 0, noted = 0;
    void add(bool is_found, bool is_noted) {
      ++asked;
      found += is_found;
      noted += is_noted;
    }
  };
  struct AttributeCount {
    std::string name;
    Count count = {};
    int64_t cut = 0;      ///< values that reached the length limit
    int64_t literal = 0;  ///< found values that stand in their document
    CommonValues common = {};
  };
  struct CategoryCount {
    int64_t rows = 0;
    std::vector<AttributeCount> attributes;  ///< in the order of a row
  };
  struct Reason {
    int64_t records = 0;
    std::string example, place;  ///< the first of its kind
  };

  void extracted(const ExtractedValues& extracted, const Record& record);
  void answered(const RowAnswer& answer);

  using Clock = std::chrono::steady_clock;
  Clock::time_point start_{};
  EngineStats last_engine_;
  int64_t last_rows_ = 0;
  Throughput throughput_;
  Histogram tokens_per_step_, slots_per_step_, value_tokens_;
  int64_t endings_[5] = {};
  std::map<std::string, CategoryCount, std::less<>> categories_;
  Count questions_;
  RowSample sample_;
  std::map<std::string, Reason, std::less<>> reasons_;  ///< by kind
};

}  // namespace sheaf
