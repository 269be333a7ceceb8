#include "core/estimate/device_model.h"

#include <cmath>

#include "core/model/shapes.h"

namespace sheaf {
namespace {

constexpr int64_t kBlock = 64;  // queries that attention computes together

/// A value between two curves, by the logarithm of their weights; the nearest one's outside.
double share_between(const std::vector<ShareCurve>& curves, double weights, double rows) {
  const double log_rows = std::log2(rows);
  size_t after = 0;
  while (after < curves.size() && curves[after].weights < weights) ++after;
  if (after == 0) return curves.front().at(log_rows);
  if (after == curves.size()) return curves.back().at(log_rows);
  const ShareCurve &low = curves[after - 1], &high = curves[after];
  const double part = std::log(weights / low.weights) / std::log(high.weights / low.weights);
  return low.at(log_rows) + part * (high.at(log_rows) - low.at(log_rows));
}

}  // namespace

StepCounts count_step(const StepBatch& batch, int32_t group) {
  int64_t pairs = 0, cells = 0, keys = 0;
  for (const AttentionTile& tile : batch.tiles) {
    const TileRow* row = batch.tile_rows.data() + tile.first_row;
    int64_t seen = 0;
    int32_t most = 0;
    for (int32_t i = 0; i < tile.row_count; ++i) {
      seen += row[i].visible;
      most = std::max(most, row[i].visible);
    }
    const int64_t queries = int64_t{tile.row_count} * group;
    pairs += seen * group;
    // Fewer queries than a block share it with others that see none of these keys.
    cells += queries < kBlock ? kBlock * most
                              : seen * group * ((queries + kBlock - 1) / kBlock * kBlock) / queries;
    keys += batch.spans[static_cast<size_t>(tile.span)].keys;
  }
  StepCounts counts;
  counts.tokens = batch.rows();
  counts.decode_tokens = batch.decode_tokens;
  counts.picks = static_cast<double>(batch.picks.size());
  counts.pairs = static_cast<double>(pairs);
  counts.cells = static_cast<double>(cells);
  counts.blocks = counts.tokens * group / kBlock;
  counts.spans = static_cast<double>(batch.tiles.size());
  counts.keys = static_cast<double>(keys);
  counts.looks = static_cast<double>(batch.tile_rows.size());
  return counts;
}

double ShareCurve::at(double log_of_rows) const {
  const auto after = std::ranges::lower_bound(log_rows, log_of_rows);
  if (after == log_rows.begin()) return share.front();
  if (after == log_rows.end()) return share.back();
  const auto i = static_cast<size_t>(after - log_rows.begin());
  const double part = (log_of_rows - log_rows[i - 1]) / (log_rows[i] - log_rows[i - 1]);
  return share[i - 1] + part * (share[i] - share[i - 1]);
}

double DeviceModel::distance(const ModelConfig& config) const {
  const auto times = [](double value, double least, double most) {
    return std::max({1.0, least / value, value / most});
  };
  const double weights = static_cast<double>(layer_weights(config)) / config.layer_count();
  double far = layers.empty() ? 1 : times(weights, layers.front().weights, layers.back().weights);
  if (fewest_layers > 0) far = std::max(far, times(config.layer_count(), fewest_layers, most_layers));
  return far;
}

double DeviceModel::widened(double near, const ModelConfig& config) const {
  constexpr double kNear = 4, kMost = 20;
  const double far = distance(config);
  return far > kNear ? std::min(kMost, near + far / kNear - 1) : near;
}

StageSeconds DeviceModel::step(const ModelConfig& config, const StepCounts& counts) const {
  StageSeconds seconds;
  if (counts.tokens <= 0) return seconds;
  const auto product = [&](const std::vector<ShareCurve>& curves, double weights, double rows) {
    const double roofline = std::max(2 * rows * weights / peak_flops, weights / peak_weights);
    return roofline / share_between(curves, weights, rows);
  };
  seconds.products =
      each_step +
      config.layer_count() *
          product(layers, static_cast<double>(layer_weights(config)) / config.layer_count(), counts.tokens);
  seconds.attention = attention_seconds(config, counts);
  seconds.rest = rest_seconds(config, counts);
  if (counts.picks > 0)
    seconds.pick = product(outputs, static_cast<double>(config.hidden) * config.vocab, counts.picks);
  return seconds;
}

double DeviceModel::attention_seconds(const ModelConfig& config, const StepCounts& counts) const {
  const double dim = config.head_dim;
  const double computed = attention.block * counts.blocks + attention.span * counts.spans +
                          dim * (attention.cell * counts.cells + attention.pair * counts.pairs);
  const double read = dim * attention.key * counts.keys;
  return config.layer_count() * (attention.fixed + config.kv_heads * std::max(computed, read));
}

double DeviceModel::rest_seconds(const ModelConfig& config, const StepCounts& counts) const {
  return config.layer_count() * (rest.fixed + config.hidden * (rest.width + rest.value * counts.tokens));
}

double DeviceModel::host_seconds(const StepCounts& counts) const {
  return host.fixed + host.row * counts.tokens + host.look * counts.looks;
}

DeviceModel DeviceModel::scaled(double flops, double bandwidth) const {
  DeviceModel other = *this;
  other.peak_flops *= flops;
  other.peak_weights *= bandwidth;
  other.attention.block /= flops;
  other.attention.span /= flops;
  other.attention.cell /= flops;
  other.attention.pair /= flops;
  other.attention.key /= bandwidth;
  other.rest.value /= bandwidth;
  return other;
}

void PredictedTime::start(const StepBatch& batch) {
  const StepCounts counts = count_step(batch, config_.heads / config_.kv_heads);
  const StageSeconds step = device_.step(config_, counts);
  stages_ += step;
  decode_ += counts.tokens > 0 ? (step.total() - step.pick) * counts.decode_tokens / counts.tokens : 0;
  now_ += device_.host_seconds(counts);
  busy_until_ = std::max(busy_until_, now_) + step.total();
  ends_.push_back(busy_until_);
}

void PredictedTime::finish() {
  now_ = std::max(now_, ends_.front());
  ends_.pop_front();
}

}  // namespace sheaf
