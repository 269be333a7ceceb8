#include "core/model/shapes.h"
#include "cpu/cpu_backend.h"
#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/kernels.h"
#include "cpu/large_buffer.h"
#include "io/base/process.h"
#include "io/machine/backend_kinds.h"
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace sheaf {
namespace {

using Features = std::vector<std::pair<const char*, bool>>;

Features processor_features() {
#if defined(__x86_64__)
  return {{"avx2", __builtin_cpu_supports("avx2") != 0},
          {"fma", __builtin_cpu_supports("fma") != 0},
          {"avx512f", __builtin_cpu_supports("avx512f") != 0}};
#elif defined(__aarch64__)
  // The numbers of Linux's hwcap.h, which older ones do not name.
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  return {{"neon", (first >> 1 & 1) != 0},     {"fp16", (first >> 10 & 1) != 0},
          {"dotprod", (first >> 20 & 1) != 0}, {"sve", (first >> 22 & 1) != 0},
          {"i8mm", (second >> 13 & 1) != 0},   {"bf16", (second >> 14 & 1) != 0}};
#else
  return {};
#endif
}

const char* architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown architecture";
#endif
}

MachineFact examine_processor() {
  MachineFact fact{"processor", processor_name(), "", {}};
  if (fact.text.empty()) fact.text = architecture();
  const std::string kernels = best_kernels().name;
  auto& features = fact.details["features"] = nlohmann::ordered_json::object();
  std::string has;
  for (const auto& [name, there] : processor_features()) {
    features[name] = there;
    if (there) has += (has.empty() ? " with " : " ") + std::string(name);
  }
  const std::string int_kernels = best_int_kernels().name;
  fact.text += has + "; the CPU backend uses " + kernels + ", and " + int_kernels + " for whole numbers";
  fact.details["architecture"] = architecture();
  fact.details["kernels"] = kernels;
  fact.details["int_kernels"] = int_kernels;
#if defined(__x86_64__)
  if (&best_kernels() == &base_kernels())
    fact.fix = "without AVX2 and FMA the CPU backend is several times slower; use a newer machine or a GPU";
#endif
  return fact;
}

Backends make_cpu_backends(const Model& model, const BackendOptions& options) {
  if (!options.reference)
    return make_quick_backends(model, static_cast<int>(options.devices.size()), options.threads,
                               options.precision);
  Backends backends;
  for (size_t i = 0; i < options.devices.size(); ++i) backends.push_back(make_reference_backend(model));
  return backends;
}

}  // namespace

BackendKind cpu_kind() {
  return {
      .kind = Device::Kind::cpu,
      .word = "cpu",
      .gpu = false,
      .missing = {},
      .devices = [] { return std::vector{processor_name()}; },
      .driver_trouble = [] { return std::string(); },
      .device_trouble = [](int) { return std::string(); },
      .memory = [](int) { return machine_memory(); },
      .pool_bytes = cpu_pool_bytes,
      .footprint =
          [](const ModelConfig& config, const BackendOptions& options) {
            return options.reference ? reference_footprint(config) : cpu_footprint(config, options.precision);
          },
      .make = make_cpu_backends,
      .make_random =
          [](const ModelConfig& config, const BackendOptions& options, uint32_t seed) {
            return std::move(make_cpu_backends(make_random_model(config, seed), options).front());
          },
      .examine = [] { return std::vector{examine_processor()}; },
  };
}

}  // namespace sheaf
