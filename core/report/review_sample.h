#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/task/row.h"

namespace sheaf {

/// A value of a run that a person may be asked to check.
struct ReviewValue {
  int64_t row = 0;  ///< of the run, from 0
  std::string category, attribute;
  RowAnswer answer;
};

/// How sure the model was of a value, in [0, 1]: its confidence, else the probability of what it wrote;
/// nothing where the row does not say.
std::optional<double> sureness(const RowAnswer& answer);

/// Chooses values to check. Every attribute of every category is a stratum. The strata take turns, in an
/// order drawn from the seed, and each gives the value that the model was least sure of. So the first values
/// of a sample are a sample too. Without confidence and log-probabilities, the seed decides. The choice does
/// not depend on the order in which values are added.
class ReviewSample {
 public:
  ReviewSample(size_t count, uint64_t seed) : count_(count), seed_(seed) {}

  /// `id`: of the record, as text.
  void add(const std::string& id, ReviewValue value);
  /// At most `count` values, in the order in which to show them.
  std::vector<ReviewValue> take() &&;
  size_t strata() const { return strata_.size(); }
  /// Whether a value came with its sureness.
  bool by_sureness() const { return by_sureness_; }

 private:
  struct Candidate {
    double sure;
    uint64_t lot;  ///< drawn: decides between values of which the model was equally sure
    ReviewValue value;
    bool operator<(const Candidate& other) const;
  };

  size_t count_;
  uint64_t seed_;
  bool by_sureness_ = false;
  std::map<std::pair<std::string, std::string>, std::vector<Candidate>> strata_;  ///< heaps, the surest first
};

}  // namespace sheaf
