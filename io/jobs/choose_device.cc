#include "io/jobs/choose_device.h"

#include "core/base/error.h"
#include "core/job/words.h"

namespace sheaf {

DeviceChoice choose_device(const Device& asked, Precision dtype, const BackendKind& gpu) {
  DeviceChoice choice{
      &backend_kind(Device::Kind::cpu), std::vector<int>(static_cast<size_t>(asked.engines)), {}};
  const bool gpu_only = only_on_gpu(dtype);
  const auto needs_gpu = [&](const std::string& why) {
    refuse("model.dtype: {} works only on a GPU, but {}; leave it out to compute on the CPU", word_of(dtype),
           why);
  };
  if (asked.kind == Device::Kind::cpu) {
    if (gpu_only) needs_gpu("engine.device is cpu");
    return choice;
  }
  const bool automatic = asked.kind == Device::Kind::automatic;
  if (!gpu.missing.empty()) {
    if (gpu_only) needs_gpu(gpu.missing);
    if (automatic && has_nvidia_driver())
      choice.notice =
          fmt::format("this machine has an NVIDIA driver, but {}; computing on the CPU", gpu.missing);
    if (automatic) return choice;
    refuse(
        "engine.device: {} cannot be used: {}; use a build with CUDA (the image of Dockerfile.cuda), or "
        "--device cpu",
        device_text(asked), gpu.missing);
  }
  if (dtype != Precision::automatic && !gpu_only) {
    if (automatic) return choice;
    refuse("model.dtype: {} works only on the CPU; leave it out, or set engine.device: cpu", word_of(dtype));
  }
  if (const std::string trouble = gpu.driver_trouble(); !trouble.empty()) {
    if (!automatic) refuse("engine.device: {}; or set it to cpu", trouble);
    if (gpu_only) needs_gpu(trouble);
    choice.notice = trouble + "; computing on the CPU";
  }
  const auto devices = static_cast<int>(gpu.devices().size());
  if (automatic && devices == 0 && gpu_only) needs_gpu("this machine has none");
  if (automatic && devices == 0) return choice;
  // This machine's fault, not the job's: a scheduler may try another one.
  if (devices == 0)
    fail(
        "engine.device: {}: this machine has no GPU that CUDA can see; give the task one (Kubernetes: "
        "nvidia.com/gpu: 1, Docker: --gpus all, Slurm: --gres=gpu:1), or use --device cpu",
        device_text(asked));
  choice.kind = &gpu;
  choice.devices = asked.indices;
  if (choice.devices.empty()) choice.devices.push_back(0);
  for (int number = 1; asked.all && number < devices; ++number) choice.devices.push_back(number);
  for (const int number : choice.devices) {
    if (number >= devices)
      refuse("engine.device: cuda:{} does not exist; this machine has {} CUDA device{}; use cpu or auto",
             number, devices, devices == 1 ? "" : "s");
    if (const std::string trouble = gpu.device_trouble(number); !trouble.empty())
      refuse("engine.device: {}; or set it to cpu", trouble);
  }
  return choice;
}

}  // namespace sheaf
