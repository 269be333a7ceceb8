#include "core/estimate/device_model.h"

#include <cmath>

#include "core/model/work.h"

namespace sheaf {
namespace {

constexpr double kNear = 4;     // times beyond the profiled shapes
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

/// `group`: query heads that share a key/value head. `window`: of the layers, 0: none.
AttentionCounts count_attention(const StepBatch& batch, int32_t group, int32_t window) {
  int64_t pairs = 0, cells = 0, spans = 0, keys = 0;
  for (const AttentionTile& tile : batch.tiles) {
    const KeySpan& span = batch.spans[static_cast<size_t>(tile.span)];
    int64_t seen = 0;
    int32_t begin = span.keys, end = 0;  // of the keys that any row sees
    for (int32_t i = 0; i < tile.row_count; ++i) {
      const TileRow& row = batch.tile_rows[static_cast<size_t>(tile.first_row + i)];
      const int32_t first =
          window > 0 ? span.first_seen(batch.positions[static_cast<size_t>(row.row)], window) : 0;
      if (first >= row.visible) continue;
      seen += row.visible - first;
      begin = std::min(begin, first);
      end = std::max(end, row.visible);
    }
    if (seen == 0) continue;
    const int64_t queries = int64_t{tile.row_count} * group;
    pairs += seen * group;
    // Fewer queries than a block share it with others that see none of these keys.
    cells += queries < kBlock ? kBlock * (end - begin)
                              : seen * group * ((queries + kBlock - 1) / kBlock * kBlock) / queries;
    ++spans;
    keys += window > 0 ? end - begin : span.keys;
  }
  return {0, static_cast<double>(pairs), static_cast<double>(cells), static_cast<double>(spans),
          static_cast<double>(keys)};
}

}  // namespace

StepCounts count_step(const StepBatch& batch, const ModelConfig& config) {
  const int32_t group = config.heads / config.kv_heads;
  StepCounts counts;
  counts.tokens = batch.rows();
  counts.decode_tokens = batch.decode_tokens;
  counts.picks = static_cast<double>(batch.picks.size());
  counts.blocks = counts.tokens * group / kBlock;
  for (const auto& [window, layers] : layer_windows(config)) {
    counts.attention.push_back(count_attention(batch, group, window));
    counts.attention.back().layers = static_cast<double>(layers);
    counts.looks += static_cast<double>(batch.tile_rows.size());
  }
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

bool DeviceModel::is_far(const ModelConfig& config) const {
  return distance(config) > kNear;
}

double DeviceModel::widened(double near, const ModelConfig& config) const {
  constexpr double kMost = 20, kUnmeasuredExperts = 0.4;
  if (config.experts.count > 0)
    near = experts.empty() ? std::hypot(near, kUnmeasuredExperts) : std::max(near, expert_error);
  return is_far(config) ? std::min(kMost, near + distance(config) / kNear - 1) : near;
}

StageSeconds DeviceModel::step(const ModelConfig& config, const StepCounts& counts) const {
  StageSeconds seconds;
  if (counts.tokens <= 0) return seconds;
  seconds.products = each_step + unrouted_seconds(config, counts.tokens);
  if (config.experts.count > 0)
    seconds.products +=
        static_cast<double>(expert_layers(config)) *
        (expert_seconds(config, counts.tokens) + each_expert * experts_hit(config.experts, counts.tokens));
  seconds.attention = attention_seconds(config, counts);
  seconds.rest = rest_seconds(config, counts);
  if (counts.picks > 0) {
    const double weights = static_cast<double>(config.hidden) * config.vocab;
    seconds.pick = product_roofline(weights, counts.picks) / share_between(outputs, weights, counts.picks);
  }
  return seconds;
}

double DeviceModel::product_roofline(double weights, double rows) const {
  return std::max(2 * rows * weights / peak_flops, weights / peak_weights);
}

double DeviceModel::unrouted_seconds(const ModelConfig& config, double tokens) const {
  const double weights = static_cast<double>(unrouted_weights(config)) / config.layer_count();
  return config.layer_count() * product_roofline(weights, tokens) / share_between(layers, weights, tokens);
}

double DeviceModel::expert_roofline(const ModelConfig& config, double tokens) const {
  const auto weights = static_cast<double>(expert_weights(config));
  return std::max(2 * tokens * config.experts.per_token * weights / peak_flops,
                  experts_hit(config.experts, tokens) * weights / peak_weights);
}

double DeviceModel::expert_seconds(const ModelConfig& config, double tokens) const {
  const auto weights = static_cast<double>(expert_weights(config));
  const double share = experts.empty()
                           ? share_between(layers, config.experts.per_token * weights, tokens)
                           : share_between(experts, weights, tokens_of_expert(config.experts, tokens));
  return expert_roofline(config, tokens) / share;
}

double DeviceModel::attention_seconds(const ModelConfig& config, const StepCounts& counts) const {
  const double dim = config.head_dim;
  double seconds = 0;
  for (const AttentionCounts& each : counts.attention) {
    const double computed = attention.block * counts.blocks + attention.span * each.spans +
                            dim * (attention.cell * each.cells + attention.pair * each.pairs);
    const double read = dim * attention.key * each.keys;
    seconds += each.layers * (attention.fixed + config.kv_heads * std::max(computed, read));
  }
  return seconds;
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
  const StepCounts counts = count_step(batch, config_);
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
