#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "core/engine/engine.h"
#include "core/estimate/device_profile.h"
#include "core/job/job.h"
#include "io/files/workload.h"
#include "io/jobs/bench_backend.h"

namespace sheaf {

/// How a workload is packed.
struct BenchPacking {
  Job::Method method{.name = "ippd", .documents = 0, .prompt_tokens = 32768};
  int32_t window = Job::Engine().window;  ///< records planned together
};

/// The workload's prompts, by the planner of a run; refuses one that needs more than `context` positions.
std::vector<Stack> pack(const Workload& workload, const BenchPacking& packing, int32_t context);

/// Whether the method asks for all values of a document as one text.
bool asks_for_objects(const Job::Method& method);

/// Pages that all stacks would take together, nothing shared.
int64_t most_pages(const std::vector<Stack>& stacks, int32_t page_size);

/// One timed pass over a workload.
struct BenchRun {
  double engine_seconds = 0;  ///< to make the engine and its key/value pool
  double seconds = 0;
  EngineStats stats;
  int32_t pages = 0;  ///< pages of the pool, fewer than asked where memory was short
  TimedStages stages;
};

/// Decodes the stacks with an engine of its own, which finds nothing resident of the pass before.
BenchRun run_once(Backend& backend, const EngineOptions& options, std::vector<Stack> stacks);

struct BenchSettings {
  std::string workload;  ///< its file
  BenchModel model{"qwen3-8b", ""};
  BenchPacking packing;
  int32_t tokens = 0;  ///< tokens per step; 0: as the backend prefers
  int32_t repeat = 1;  ///< runs; the first of several only warms up
};

/// Times a workload: what `sheaf bench` prints (docs/performance.md).
nlohmann::ordered_json bench_workload(const BenchSettings& settings);

/// Times made-up steps of the given shapes with random weights, on a device and in numbers `like` those
/// given; no shapes: such as suit the device. Takes a minute or two. `left_out` is told of a shape that does
/// not fit, `progress` how far it is with one.
DeviceProfile profile_device(const BenchModel& like, std::vector<std::string> shapes,
                             const std::function<void(const std::string& text)>& left_out,
                             const std::function<void(const std::string& text, bool last)>& progress);

}  // namespace sheaf
