#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

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

  /// `seconds`: since the start of the work.
  void add(double seconds, const Point& done);

  double point_seconds() const { return point_seconds_; }
  double seconds() const { return seconds_; }  ///< of the last thing done
  const std::vector<Point>& points() const { return points_; }
  nlohmann::ordered_json json() const;

 private:
  double point_seconds_ = 0.0625, seconds_ = 0;
  std::vector<Point> points_;
};

}  // namespace sheaf
