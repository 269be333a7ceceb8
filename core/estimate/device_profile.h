#pragma once

#include "core/engine/step_batch.h"
#include "core/job/words.h"

namespace sheaf {

/// Rows of one kind in a step that is made up to be timed: `groups` × `runs` × `rows` of them. The runs of a
/// group see one trunk of keys, computed before; each run then has `own` keys of its own before its new rows.
struct ProbePart {
  int32_t groups = 1;
  int32_t trunk = 0;
  int32_t runs = 1;
  int32_t own = 0;
  int32_t rows = 1;  ///< one: a decode row, more: prefill

  bool operator==(const ProbePart&) const = default;
  int64_t total_rows() const { return int64_t{groups} * runs * rows; }
};

/// A made-up step. Decode parts come first, as in real steps; the last row of every run is picked, unless
/// `picks` limits that to the last so many.
struct Probe {
  std::vector<ProbePart> parts;
  int32_t picks = INT32_MAX;

  int64_t rows() const;
  int64_t pages(int32_t page_size) const;  ///< of keys and values that it takes
};

/// The step batch of a probe, on pages numbered from 0.
StepBatch make_probe_batch(const Probe& probe, int32_t page_size);

enum class ProbeKind {
  bare,       ///< rows that see but themselves: products and picks by the number of rows
  attention,  ///< many keys
  held_out,   ///< steps as real jobs have them, kept to check the curves with
};

struct ListedProbe {
  ProbeKind kind;
  Probe probe;
};

/// Bare probes first, with rising rows.
using ProbeList = std::vector<ListedProbe>;

ProbeList probes_for_gpu();
ProbeList probes_for_cpu();

/// Seconds of a step by kind of work.
struct StageSeconds {
  double products = 0;   ///< matrix products of the layers with what is fused into them
  double attention = 0;  ///< queries, keys, values
  double rest = 0;       ///< norms, embedding, rotary angles
  double pick = 0;       ///< output projection and choice of tokens

  double total() const { return products + attention + rest + pick; }
  StageSeconds& operator+=(const StageSeconds& other);
  StageSeconds operator*(double factor) const;
};

/// A stage as files and reports call it.
struct NamedStage {
  const char* name;
  double StageSeconds::*seconds;
};
constexpr NamedStage kStages[] = {{"products", &StageSeconds::products},
                                  {"attention", &StageSeconds::attention},
                                  {"rest", &StageSeconds::rest},
                                  {"pick", &StageSeconds::pick}};

inline StageSeconds& StageSeconds::operator+=(const StageSeconds& other) {
  for (const NamedStage& stage : kStages) this->*stage.seconds += other.*stage.seconds;
  return *this;
}
inline StageSeconds StageSeconds::operator*(double factor) const {
  StageSeconds scaled;
  for (const NamedStage& stage : kStages) scaled.*stage.seconds = this->*stage.seconds * factor;
  return scaled;
}

/// What a made-up step of a known shape took.
struct Measurement {
  std::string shape;
  Probe probe;
  StageSeconds device;
  double host = 0;        ///< seconds beside the device: planning, launching, reading the picks
  bool held_out = false;  ///< not for the curves: shows how far they are off
};

/// What `sheaf bench --profile` found on one device.
struct DeviceProfile {
  std::string device;   ///< Backend::device of where it was made
  std::string backend;  ///< and Backend::describe: "NVIDIA H200 (cuda:0), bf16"
  std::string date;     ///< 2026-01-31
  std::string version;  ///< of sheaf
  std::vector<Measurement> measurements;
  std::string machine = {};               ///< a CPU's: "Neoverse-V1, 2 cores"
  Precision precision = Precision::bf16;  ///< what it computed in
  bool fp8_keys = false;                  ///< whether keys and values were FP8
};

}  // namespace sheaf
