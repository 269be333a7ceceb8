#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "core/base/error.h"
#include "core/text/table.h"
#include "io/jobs/probe_timer.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// A model that is next to nothing but attention.
ModelConfig attention_model(const AttentionBench& asked, int32_t layers) {
  constexpr int32_t kWidth = 256, kVocab = 256;
  ModelConfig config;
  config.family = "llama";
  config.layers.resize(static_cast<size_t>(layers));
  config.hidden = config.ffn = kWidth;
  config.heads = asked.heads;
  config.kv_heads = asked.kv_heads;
  config.head_dim = config.rotary_dim = asked.head_dim;
  config.vocab = kVocab;
  config.context = 1 << 24;
  config.ropes = {plain_rope(10000, asked.head_dim)};
  check_config(config, "--heads, --kv-heads, --head-dim");
  return config;
}

/// Seconds of a layer's attention.
class AttentionTimer {
 public:
  AttentionTimer(const BenchModel& like, const AttentionBench& asked) : timer_(made_up(like, asked)) {}

  const Backend& backend() const { return timer_.backend(); }
  /// Null where it does not fit the device's memory, or takes no time that can be told.
  ordered_json seconds(const ProbePart& part) {
    const Probe probe{{part}, 1};
    if (!timer_.fits(probe)) return nullptr;
    const StepTime step = timer_.time_step(probe);
    // A backend that does not time its stages: the step less one whose tokens see nothing but themselves.
    const double whole = step.device.attention > 0 ? step.device.attention : step.wall - bare_step(part.runs);
    return whole > 0 ? ordered_json(whole / kLayers) : ordered_json();
  }

 private:
  static constexpr int32_t kLayers = 4;

  static BenchModel made_up(BenchModel like, const AttentionBench& asked) {
    like.made_up = std::make_shared<const ModelConfig>(attention_model(asked, kLayers));
    return like;
  }
  double bare_step(int32_t rows) {
    const auto [known, fresh] = bare_.try_emplace(rows);
    if (fresh) known->second = timer_.time_step({{{1, 0, rows, 0, 1}}, 1}).wall;
    return known->second;
  }

  ProbeTimer timer_;
  std::map<int32_t, double> bare_;  ///< seconds by rows
};

std::string microseconds(const ordered_json& seconds) {
  return seconds.is_null() ? "–" : fmt::format("{:.1f}", seconds.get<double>() * 1e6);
}

}  // namespace

ordered_json bench_attention(const BenchModel& like, const AttentionBench& asked,
                             const std::function<void(const std::string& text, bool last)>& progress) {
  if (asked.heads % asked.kv_heads != 0)
    refuse("--kv-heads {}: it must divide --heads {}", asked.kv_heads, asked.heads);
  AttentionTimer timer(like, asked);
  ordered_json found{{"backend", timer.backend().describe()},
                     {"heads", asked.heads},
                     {"kv_heads", asked.kv_heads},
                     {"head_dim", asked.head_dim},
                     {"rows", ordered_json::array()}};
  const size_t all = asked.batches.size() * asked.prefixes.size() * asked.suffixes.size();
  for (const int32_t suffix : asked.suffixes)
    for (const int32_t prefix : asked.prefixes)
      for (const int32_t batch : asked.batches) {
        ordered_json row{{"batch", batch}, {"prefix", prefix}, {"suffix", suffix}};
        // The last key of a sequence is that of the token that is computed.
        for (const auto& [name, part] : {std::pair("shared", ProbePart{1, prefix, batch, suffix - 1, 1}),
                                         {"separate", ProbePart{1, 0, batch, prefix + suffix - 1, 1}}})
          row[name] = timer.seconds(part);
        const bool both = row["shared"].is_number() && row["separate"].is_number();
        row["speed_up"] =
            both ? ordered_json(row["separate"].get<double>() / row["shared"].get<double>()) : ordered_json();
        found["rows"].push_back(std::move(row));
        progress(fmt::format("{} of {}", found["rows"].size(), all), found["rows"].size() == all);
      }
  return found;
}

std::string attention_text(const ordered_json& found) {
  TextTable table{{{"batch", "prefix", "suffix", "shared µs", "separate µs", "speed-up"}},
                  {true, true, true, true, true, true}};
  for (const ordered_json& row : found["rows"])
    table.rows.push_back(
        {row["batch"].dump(), row["prefix"].dump(), row["suffix"].dump(), microseconds(row["shared"]),
         microseconds(row["separate"]),
         row["speed_up"].is_null() ? "" : fmt::format("{:.1f}x", row["speed_up"].get<double>())});
  return fmt::format("{}: a layer of {} heads of {}, {} for keys and values\n",
                     found["backend"].get<std::string>(), found["heads"].get<int>(),
                     found["head_dim"].get<int>(), found["kv_heads"].get<int>()) +
         table.text();
}

}  // namespace sheaf
