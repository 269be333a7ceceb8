#pragma once
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "core/engine/backend.h"
#include "core/model/config.h"

namespace sheaf {

/// What a token is computed for.
enum class Phase : uint8_t {
  shared,  ///< instructions and documents: parts of prompts that several answers see
  own,     ///< questions and keys, and whole prompts where nothing is shared
  decode,  ///< answers
};
constexpr std::array<const char*, 3> kPhaseNames = {"shared", "own", "decode"};

/// FLOPs, and bytes read and written.
struct FlopsAndBytes {
  double flops = 0, bytes = 0;

  double intensity() const { return bytes > 0 ? flops / bytes : 0; }  ///< FLOPs per byte
  FlopsAndBytes& operator+=(const FlopsAndBytes& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
  FlopsAndBytes operator*(double times) const { return {flops * times, bytes * times}; }
};

struct PhaseWork {
  double tokens = 0;
  FlopsAndBytes products;   ///< matrix products of the layers, and of the output projection
  FlopsAndBytes attention;  ///< queries times keys, and weights times values

  FlopsAndBytes total() const {
    FlopsAndBytes sum = products;
    return sum += attention;
  }
  PhaseWork operator*(double times) const { return {tokens * times, products * times, attention * times}; }
};

/// By Phase.
struct PhaseTable : std::array<PhaseWork, 3> {
  PhaseWork& of(Phase phase) { return (*this)[static_cast<size_t>(phase)]; }
  const PhaseWork& of(Phase phase) const { return (*this)[static_cast<size_t>(phase)]; }
  PhaseWork total() const;
  PhaseTable operator*(double times) const;
};

/// How many bytes numbers take.
struct NumberBytes {
  double weight = 2;         ///< of a weight of the layers, as often as it is read or written for a step
  double output_weight = 2;  ///< of a weight of the output projection
  double activation = 2;
  double keys = 0;  ///< of the key and value of a token in all layers
};

/// Counts the steps of an engine by phase. A step reads each weight once, and the keys of a span once for all
/// tokens that look at it; phases that share a step share those bytes by their tokens.
class PhaseCount final : public StepObserver {
 public:
  PhaseCount(const ModelConfig& config, const NumberBytes& bytes) : config_(config), bytes_(bytes) {}

  void start(const StepBatch& batch) override;
  void finish() override {}

  const PhaseTable& table() const { return table_; }

 private:
  using Tokens = std::array<double, 3>;  ///< by Phase

  void add_products(const Tokens& tokens, const Tokens& picks);
  void add_attention(const StepBatch& batch, const std::vector<Phase>& phase_of, int32_t window,
                     double layers);

  ModelConfig config_;
  NumberBytes bytes_;
  PhaseTable table_;
};

/// For people. `balance`: FLOPs per byte at which the device takes as long to compute as to read; 0: not
/// known.
std::string phases_text(const PhaseTable& table, double balance);
nlohmann::ordered_json phases_json(const PhaseTable& table, double balance);

}  // namespace sheaf
