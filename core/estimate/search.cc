#include "core/estimate/search.h"

#include <utility>

namespace sheaf {

std::vector<double> least(std::vector<double> start,
                          const std::function<double(const std::vector<double>&)>& loss) {
  std::vector<double> best = std::move(start);
  double least_loss = loss(best);
  auto better = [&](size_t i, double value) {
    std::vector<double> tried = best;
    tried[i] = value;
    const double loss_there = loss(tried);
    if (!(loss_there < least_loss)) return false;
    least_loss = loss_there;
    best = std::move(tried);
    return true;
  };
  for (const double factor : {8.0, 3.0, 1.7, 1.3, 1.1, 1.03, 1.01}) {
    bool moved = true;
    for (int round = 0; moved && round < 200; ++round) {
      moved = false;
      for (size_t i = 0; i < best.size(); ++i) {
        if (better(i, best[i] * factor) || better(i, best[i] / factor)) moved = true;
      }
    }
  }
  for (size_t i = 0; i < best.size(); ++i) better(i, 0);
  return best;
}

}  // namespace sheaf
