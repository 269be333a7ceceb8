#include "core/estimate/phases.h"

#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "core/engine/step_batch.h"
#include "core/model/work.h"
#include "core/text/format.h"
#include "core/text/table.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr const char* kWhat[] = {"instructions, documents", "questions, keys", "answers"};

/// What the inputs and outputs of a token's matrix products hold, in numbers of all layers.
double activations_of_token(const ModelConfig& config) {
  const double hidden = config.hidden, heads = double{1} * config.heads * config.head_dim,
               keys = double{2} * config.kv_heads * config.head_dim;
  const auto mlp = [&](double width) { return 2 * hidden + 3 * width; };
  double numbers = 0;
  for (const LayerConfig& layer : config.layers) {
    numbers += hidden + heads + keys + heads + hidden;
    if (const int32_t width = config.mlp_width(layer); width > 0) numbers += mlp(width);
    if (layer.experts)
      numbers += hidden + config.experts.count + config.experts.per_token * mlp(config.experts.ffn);
  }
  return numbers;
}

/// Weights that a step of so many tokens reads in the layers.
double weights_read(const ModelConfig& config, double tokens) {
  return static_cast<double>(unrouted_weights(config)) + static_cast<double>(expert_layers(config)) *
                                                             experts_hit(config.experts, tokens) *
                                                             static_cast<double>(expert_weights(config));
}

std::string large(double count) {
  constexpr const char* units[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < std::size(units)) {
    count /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", count, units[unit]);
}

TextTable::Row row_of(const std::string& phase, const char* what, const FlopsAndBytes& work, double balance) {
  return {phase,
          what,
          large(work.flops) + "FLOP",
          large(work.bytes) + "B",
          fmt::format("{:.1f}", work.intensity()),
          balance == 0 || work.flops == 0 ? ""
          : work.intensity() < balance    ? "memory"
                                          : "compute"};
}

ordered_json work_json(const FlopsAndBytes& work) {
  return {{"flops", work.flops}, {"bytes", work.bytes}, {"intensity", work.intensity()}};
}

ordered_json phase_json(const PhaseWork& phase) {
  return {{"tokens", phase.tokens},
          {"products", work_json(phase.products)},
          {"attention", work_json(phase.attention)},
          {"total", work_json(phase.total())}};
}

}  // namespace

PhaseWork PhaseTable::total() const {
  PhaseWork sum;
  for (const PhaseWork& phase : *this) {
    sum.tokens += phase.tokens;
    sum.products += phase.products;
    sum.attention += phase.attention;
  }
  return sum;
}

PhaseTable PhaseTable::operator*(double times) const {
  PhaseTable scaled = *this;
  for (PhaseWork& phase : scaled) phase = phase * times;
  return scaled;
}

void PhaseCount::start(const StepBatch& batch) {
  std::vector<Phase> phase_of(static_cast<size_t>(batch.rows()), Phase::own);
  std::fill_n(phase_of.begin(), batch.decode_tokens, Phase::decode);
  for (const RowRun& run : batch.shared_rows)
    std::fill_n(phase_of.begin() + run.first, run.count, Phase::shared);
  Tokens tokens{}, picks{};
  for (const Phase phase : phase_of) ++tokens[static_cast<size_t>(phase)];
  for (const Pick& pick : batch.picks) ++picks[static_cast<size_t>(phase_of[static_cast<size_t>(pick.row)])];
  add_products(tokens, picks);
  for (const auto& [window, layers] : layer_windows(config_))
    add_attention(batch, phase_of, window, static_cast<double>(layers));
}

void PhaseCount::add_products(const Tokens& tokens, const Tokens& picks) {
  const double all = std::accumulate(tokens.begin(), tokens.end(), 0.0),
               all_picks = std::accumulate(picks.begin(), picks.end(), 0.0);
  if (all == 0) return;
  const double weights = bytes_.weight * weights_read(config_, all) / all,
               numbers = bytes_.activation * activations_of_token(config_);
  const double table = double{1} * config_.hidden * config_.vocab,
               output = all_picks > 0 ? bytes_.output_weight * table / all_picks : 0;
  for (size_t p = 0; p < tokens.size(); ++p) {
    Work work;
    work.rows = static_cast<int64_t>(tokens[p]);
    work.picks = static_cast<int64_t>(picks[p]);
    table_[p].tokens += tokens[p];
    table_[p].products += {gemm_flops(work, config_),
                           tokens[p] * (weights + numbers) +
                               picks[p] * (output + bytes_.activation * (config_.hidden + config_.vocab))};
  }
}

void PhaseCount::add_attention(const StepBatch& batch, const std::vector<Phase>& phase_of, int32_t window,
                               double layers) {
  const double dim = double{1} * config_.heads * config_.head_dim, key = bytes_.keys / config_.layer_count();
  for (const AttentionTile& tile : batch.tiles) {
    const KeySpan& span = batch.spans[static_cast<size_t>(tile.span)];
    Tokens rows{}, seen{};
    int32_t begin = span.keys, end = 0;  // of the keys that any row sees
    for (int32_t i = 0; i < tile.row_count; ++i) {
      const TileRow& row = batch.tile_rows[static_cast<size_t>(tile.first_row + i)];
      const auto at = static_cast<size_t>(row.row);
      const int32_t first = span.first_seen(batch.positions[at], window);
      if (first >= row.visible) continue;
      ++rows[static_cast<size_t>(phase_of[at])];
      seen[static_cast<size_t>(phase_of[at])] += row.visible - first;
      begin = std::min(begin, first);
      end = std::max(end, row.visible);
    }
    const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
    if (all == 0) continue;
    const double keys = window > 0 ? end - begin : span.keys;
    for (size_t p = 0; p < rows.size(); ++p)
      table_[p].attention += FlopsAndBytes{4 * dim * seen[p], key * keys * rows[p] / all} * layers;
  }
  // Queries are read, what attention gives is written, and so are the new keys and values.
  for (const Phase phase : phase_of)
    table_.of(phase).attention += FlopsAndBytes{0, 2 * bytes_.activation * dim + key} * layers;
}

std::string phases_text(const PhaseTable& table, double balance) {
  TextTable text{{{"phase", "of", "computed", "read and written", "FLOP/B", "bound by"}},
                 {false, false, true, true, true, false}};
  for (size_t p = 0; p < table.size(); ++p) {
    const PhaseWork& phase = table[p];
    if (phase.tokens == 0) continue;
    text.rows.push_back({kPhaseNames[p],
                         fmt::format("{} tokens of {}", number_text(std::round(phase.tokens)), kWhat[p]), "",
                         "", "", ""});
    text.rows.push_back(row_of("", "matrix products", phase.products, balance));
    text.rows.push_back(row_of("", "attention", phase.attention, balance));
  }
  text.rows.push_back(row_of("all", "", table.total().total(), balance));
  return text.text() +
         (balance > 0
              ? fmt::format("At {:.0f} FLOP/B, the device takes as long to compute as to read.\n", balance)
              : "");
}

ordered_json phases_json(const PhaseTable& table, double balance) {
  ordered_json json = ordered_json::object();
  for (size_t p = 0; p < table.size(); ++p) json[kPhaseNames[p]] = phase_json(table[p]);
  json["all"] = phase_json(table.total());
  if (balance > 0) json["device_flops_per_byte"] = balance;
  return json;
}

}  // namespace sheaf
