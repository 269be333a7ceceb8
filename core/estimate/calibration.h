#pragma once
#include <string>
#include <vector>

#include "core/estimate/probe.h"
#include "core/job/words.h"

namespace sheaf {

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

/// What `sheaf bench --calibrate` found on one device.
struct Calibration {
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
