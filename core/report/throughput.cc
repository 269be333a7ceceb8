#include "core/report/throughput.h"

#include <algorithm>

namespace sheaf {
namespace {

void add_to(Throughput::Point& to, const Throughput::Point& what) {
  to.steps += what.steps;
  to.rows += what.rows;
  to.tokens += what.tokens;
  to.answer_tokens += what.answer_tokens;
}

}  // namespace

void Throughput::add(double seconds, const Point& done) {
  seconds = std::max(seconds, 0.0);
  seconds_ = std::max(seconds_, seconds);
  while (seconds / point_seconds_ >= static_cast<double>(kPoints)) {
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point moved = points_[i];
      points_[i] = {};
      add_to(points_[i / 2], moved);
    }
    points_.resize((points_.size() + 1) / 2);
    point_seconds_ *= 2;
  }
  const auto at = static_cast<size_t>(seconds / point_seconds_);
  if (at >= points_.size()) points_.resize(at + 1);
  add_to(points_[at], done);
}

nlohmann::ordered_json Throughput::json() const {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array(), rows = steps, tokens = steps,
                         answers = steps;
  for (const Point& point : points_) {
    steps.push_back(point.steps);
    rows.push_back(point.rows);
    tokens.push_back(point.tokens);
    answers.push_back(point.answer_tokens);
  }
  return {{"seconds", seconds_},         {"point_seconds", point_seconds_},
          {"steps", std::move(steps)},   {"rows", std::move(rows)},
          {"tokens", std::move(tokens)}, {"answer_tokens", std::move(answers)}};
}

}  // namespace sheaf
