#include "io/jobs/engines.h"

#include <algorithm>
#include <fmt/format.h>

#include "io/files/hardware_file.h"

namespace sheaf {

Engines::Engines(Workbench& bench, bool predict, const Replace& replace, bool speculate) {
  for (std::unique_ptr<Backend>& backend : bench.backends())
    all_.push_back({replace ? replace(all_.size(), std::move(backend)) : std::move(backend)});
  for (size_t i = 0; i < all_.size(); ++i) {
    One& one = all_[i];
    const bool fp8 = bench.job().model.dtype == Precision::fp8;
    if (predict)
      one.device = find_device_model(one.backend->device(), fp8 ? Precision::fp8 : Precision::bf16);
    if (one.device) one.predicted.emplace(*one.backend, *one.device);
    EngineOptions options = bench.engine_options(*one.backend, i);
    if (!speculate) options.speculation = {};
    one.engine.emplace(one.predicted ? *one.predicted : *one.backend, bench.stop_rules(), options);
  }
}

std::vector<Engine*> Engines::pointers() {
  std::vector<Engine*> pointers;
  for (One& one : all_) pointers.push_back(&*one.engine);
  return pointers;
}

std::optional<double> Engines::predicted_seconds(size_t engine) const {
  const One& one = all_[engine];
  return one.predicted ? std::optional(one.predicted->time().seconds()) : std::nullopt;
}

double Engines::predicted_error() const {
  double error = 0;
  for (const One& one : all_)
    if (one.device) error = std::max(error, one.device->widened(one.device->error, one.backend->config()));
  return error;
}

std::string Engines::describe() const {
  return backend(0).describe() + (size() > 1 ? fmt::format(" and {} more", size() - 1) : "");
}

std::string Engines::name(size_t engine) const {
  const std::string own = backend(engine).describe();
  size_t before = 0, alike = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (backend(i).describe() != own) continue;
    ++alike;
    before += i < engine;
  }
  return alike > 1 ? fmt::format("{} #{}", own, before + 1) : own;
}

}  // namespace sheaf
