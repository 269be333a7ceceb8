#pragma once

#include "core/engine/engine_stats.h"
#include "core/estimate/hardware.h"
#include "core/estimate/phases.h"
#include "core/job/job.h"
#include "core/segments/stack.h"

namespace sheaf {

/// A model as far as an estimate must know it.
struct DescribedModel {
  ModelConfig config;
  double stored_bits = 0;  ///< of a weight of its layers, as its file has them; 0: unknown
};

/// What an estimate is made for.
struct EstimateCase {
  std::string model;  ///< its name
  ModelConfig config;
  const Hardware* hardware = nullptr;
  Job::Method method = {};
  Job::Engine engine = {};
  Job::Cost cost = {};  ///< each of its devices takes a part of the corpus
  WeightStorage weights = WeightStorage::automatic;
  double stored_bits = 0;  ///< as DescribedModel has it
  bool by_phase = false;   ///< whether the work of each phase is counted, which takes time
};

/// What lies in a device's memory, in bytes.
struct MemoryPlan {
  double weights = 0;
  bool packed = false;        ///< weights stay as the file has them
  double expand_seconds = 0;  ///< time that expanding packed weights adds to a step, experts left out
  double expert_seconds = 0;  ///< time that expanding one expert adds
  double activations = 0;     ///< of a step
  double pool = 0;            ///< of keys and values
  double usable = 0;          ///< memory that the device has for a job
  int64_t kv_bytes_per_token = 0;
  int32_t tokens_per_step = 0;
  int32_t pages = 0;

  /// A quarter of a step must fit beside the weights and some keys: the engine makes steps smaller.
  bool fits() const { return weights + activations / 4 + 1e9 / 8 < usable; }
};

MemoryPlan plan_memory(const EstimateCase& asked);

/// A run of the engine over stacks with every step predicted instead of computed.
struct SimulatedRun {
  double seconds = 0;
  double host_seconds = 0;    ///< seconds with the device waiting
  double decode_seconds = 0;  ///< seconds of the device for decode tokens
  StageSeconds stages;
  EngineStats engine;
  PhaseTable phases;  ///< where the case asks for it
};

/// `answer_tokens`, where not 0: every answer that is not one of a list ends after so many.
SimulatedRun simulate(const EstimateCase& asked, const MemoryPlan& memory, int32_t answer_tokens,
                      std::vector<Stack> stacks);

}  // namespace sheaf
