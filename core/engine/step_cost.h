#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace sheaf {

/// How long steps take by their load, as seen in this run. A load of 1 is a token whose next one is picked.
class StepCost {
 public:
  void count(double load, double seconds);
  /// What a step would take. Between loads that were seen and below them, a straight line: time grows faster
  /// with the load the larger it is, so that what more tokens add is rather guessed too high than too low.
  double seconds(double load) const;
  bool known() const { return steps_ > 0; }

 private:
  struct Seen {
    double load = 0;
    double seconds = 0;
    int64_t step = 0;  ///< the last one, counted from 1; 0: none
  };
  static size_t place(double load);
  const Seen* nearest(double load, bool above) const;

  std::array<Seen, 80> seen_ = {};  ///< by load: whole numbers first, then four to a doubling
  int64_t steps_ = 0;
};

}  // namespace sheaf
