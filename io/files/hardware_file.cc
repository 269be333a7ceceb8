#include "io/files/hardware_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/paths.h"
#include "io/base/process.h"
#include "io/base/yaml_reader.h"
#include "io/files/profile_file.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

// At least, whatever the profile's own steps show: real steps differ from made-up ones, on a CPU by more.
constexpr double kLeastError = 0.10, kLeastCpuError = 0.25;
// Another device's efficiencies: kernels and clocks differ.
constexpr double kBorrowedError = 0.40;
constexpr Range<double> kPositive{1e-6, 1e12};

Instance read_instance(const YamlPtr& node) {
  YamlMap map(node, "instances");
  Instance instance;
  map.text("name", instance.name);
  map.integer("devices", instance.devices, {1, 1024});
  map.number("usd_per_hour", instance.usd_per_hour, {0, 1e6});
  map.require("name");
  map.require("usd_per_hour");
  map.finish();
  return instance;
}

/// A device as written, and where its efficiencies come from.
struct Entry {
  Hardware hardware;
  std::vector<std::string> profiles;
  std::string like;
  std::string where;
};

Entry read_entry(const YamlNode::Entry& node) {
  YamlMap map(node.value, node.key);
  Entry entry;
  Hardware& hardware = entry.hardware;
  hardware.name = node.key;
  std::string kind = "gpu";
  map.text("title", hardware.title);
  map.choice("kind", kind, {"gpu", "cpu"});
  for (const auto& [key, target, unit] : {std::tuple{"tflops", &hardware.flops, 1e12},
                                          {"fp8_tflops", &hardware.fp8_flops, 1e12},
                                          {"bandwidth_gb", &hardware.bandwidth, 1e9},
                                          {"memory_gb", &hardware.memory, 1e9},
                                          {"load_gb", &hardware.load_rate, 1e9}}) {
    double value = target == &hardware.load_rate ? 2 : 0;
    map.number(key, value, kPositive);
    *target = value * unit;
  }
  map.accept_old("profile", "calibration");
  map.text_list("profile", entry.profiles);
  map.text("like", entry.like);
  const YamlPtr instances = map.node("instances");
  map.require("title");
  map.require("memory_gb");
  if (kind == "gpu") {
    map.require("tflops");
    map.require("bandwidth_gb");
  }
  map.finish();
  if (entry.profiles.empty() == entry.like.empty())
    refuse("{}: {} needs either profile (a file) or like (another device)", map.where(), node.key);
  hardware.gpu = kind == "gpu";
  if (instances) {
    if (instances->kind != YamlNode::Kind::list)
      refuse("{}: {}.instances must be a list, not {}", instances->place.text(), node.key,
             instances->describe());
    for (const YamlPtr& item : instances->items) hardware.instances.push_back(read_instance(item));
  }
  entry.where = map.where(entry.like.empty() ? "profile" : "like");
  return entry;
}

std::vector<DeviceProfile> profiles_of(const Entry& entry, const fs::path& folder) {
  std::vector<DeviceProfile> profiles;
  for (const std::string& name : entry.profiles) {
    const std::string path = (folder / name).string();
    if (!fs::is_regular_file(path))
      refuse("{}: {}: no such profile file: {}", entry.where, entry.hardware.name, path);
    profiles.push_back(read_profile(path));
  }
  return profiles;
}

/// What a device computes in for the job's model.
Precision wanted_on(const Hardware& hardware, const Job::ModelPart& model) {
  if (hardware.gpu) return model.dtype == Precision::fp8 ? Precision::fp8 : Precision::bf16;
  const Precision wanted = model.on_cpu();
  return wanted == Precision::automatic || only_on_gpu(wanted) ? Precision::f32 : wanted;
}

/// The profile closest to how a job computes: the precision counts more than what keys are kept in. The
/// first of several that are as close.
const DeviceProfile& closest(const std::vector<DeviceProfile>& profiles, Precision precision, bool fp8_keys) {
  const auto distance = [&](const DeviceProfile& each) {
    return (each.precision != precision ? 2 : 0) + (each.fp8_keys != fp8_keys ? 1 : 0);
  };
  return *std::ranges::min_element(profiles, {}, distance);
}

void take_measured(Entry& entry, const fs::path& folder) {
  const std::vector<DeviceProfile> profiles = profiles_of(entry, folder);
  Hardware& hardware = entry.hardware;
  const DeviceProfile& profile = closest(profiles, hardware.wanted, hardware.wanted_fp8_keys);
  hardware.precision = profile.precision;
  hardware.fp8_keys = profile.fp8_keys;
  hardware.device = fit_device(profile);
  hardware.measured_on =
      profile.machine.empty() ? profile.backend : fmt::format("{} ({})", profile.backend, profile.machine);
  hardware.measured = profile.date;
  hardware.error = std::max(hardware.gpu ? kLeastError : kLeastCpuError, hardware.device.error);
}

/// Where there are others, efficiencies with keys in FP8 are not borrowed: other GPUs may not multiply them.
void take_borrowed(Entry& entry, const std::vector<Entry>& entries, const fs::path& folder) {
  const auto found =
      std::ranges::find_if(entries, [&](const Entry& other) { return other.hardware.name == entry.like; });
  if (found == entries.end() || found->profiles.empty())
    refuse("{}: {}: like names {}, which is not a device with its own profile", entry.where,
           entry.hardware.name, entry.like);
  Entry lender = *found;
  if (lender.hardware.fp8_keys) {
    lender.hardware.wanted_fp8_keys = false;
    take_measured(lender, folder);
  }
  Hardware& hardware = entry.hardware;
  const Hardware& other = lender.hardware;
  if (!hardware.gpu || !other.gpu)
    refuse("{}: {}: like works only between GPUs; profile this device instead", entry.where, hardware.name);
  const bool fp8 = other.precision == Precision::fp8 && hardware.fp8_flops > 0;
  hardware.device =
      other.device.scaled(fp8 ? hardware.fp8_flops / other.fp8_flops : hardware.flops / other.flops,
                          hardware.bandwidth / other.bandwidth);
  hardware.precision = other.precision;
  hardware.fp8_keys = other.fp8_keys;
  hardware.measured_on = other.measured_on;
  hardware.measured = other.measured;
  hardware.borrowed = true;
  hardware.error = std::max(kBorrowedError, other.error);
}

/// "2026-11", or with a day.
bool is_month(const std::string& text) {
  int year = 0, month = 0, used = 0;
  return (text.size() == 7 || text.size() == 10) &&
         std::sscanf(text.c_str(), "%4d-%2d%n", &year, &month, &used) == 2 && used == 7 && year > 2000 &&
         month >= 1 && month <= 12;
}

std::vector<Entry> read_entries(const std::string& path, std::string& prices_as_of) {
  YamlMap map(read_yaml(path, "a list of devices"), "");
  map.text("prices_as_of", prices_as_of);
  const YamlPtr node = map.node("hardware");
  map.require("prices_as_of");
  map.require("hardware");
  map.finish();
  if (!is_month(prices_as_of))
    refuse("{}: prices_as_of must be the month of the prices, for example \"2026-11\"; got {}",
           map.where("prices_as_of"), shorten_text(prices_as_of, 40));
  if (node->kind != YamlNode::Kind::map || node->entries.empty())
    refuse("{}: hardware must be a map of devices, not {}", node->place.text(), node->describe());
  std::vector<Entry> entries;
  for (const YamlNode::Entry& entry : node->entries) entries.push_back(read_entry(entry));
  return entries;
}

}  // namespace

KvPrecision attended_keys(const Job::Engine& engine, const ModelConfig& config) {
  const bool expanded = engine.reproducible || config.family == "qwen2" || config.head_dim <= 32 ||
                        config.head_dim > 128 || config.head_dim % 8 != 0;
  return expanded ? KvPrecision::automatic : engine.kv_dtype;
}

HardwareList read_hardware(const std::string& path, const Job::ModelPart& model, KvPrecision keys) {
  HardwareList list;
  list.path = path;
  std::vector<Entry> entries = read_entries(path, list.prices_as_of);
  const fs::path folder = fs::path(path).parent_path();
  for (Entry& entry : entries) {
    entry.hardware.wanted = wanted_on(entry.hardware, model);
    entry.hardware.wanted_fp8_keys = entry.hardware.gpu && keys == KvPrecision::fp8;
    if (!entry.profiles.empty()) take_measured(entry, folder);
  }
  for (Entry& entry : entries)
    if (entry.profiles.empty()) take_borrowed(entry, entries, folder);
  for (Entry& entry : entries) list.devices.push_back(std::move(entry.hardware));
  return list;
}

std::optional<DeviceModel> find_device_model(const std::string& device, Precision on_gpu, KvPrecision keys) {
  std::optional<DeviceModel> other;
  try {
    const std::string path = find_hardware_file();
    std::string prices_as_of;
    for (const Entry& entry : read_entries(path, prices_as_of)) {
      std::vector<DeviceProfile> profiles = profiles_of(entry, fs::path(path).parent_path());
      std::erase_if(profiles, [&](const DeviceProfile& each) {
        return each.device != device || (entry.hardware.gpu && each.precision != on_gpu);
      });
      if (entry.hardware.gpu && !profiles.empty())
        return fit_device(closest(profiles, on_gpu, keys == KvPrecision::fp8));
      for (const DeviceProfile& profile : profiles) {
        DeviceModel model = fit_device(profile);
        const bool here = profile.machine == processor_and_cores();
        model.error = std::max(here ? kLeastCpuError : kBorrowedError, model.error);
        if (here) return model;
        if (!other) other = std::move(model);
      }
    }
  } catch (const Error&) {  // a job does not need the list
  }
  return other;
}

std::string find_hardware_file() {
  std::error_code ignored;
  const std::string name = "configs/hardware.yaml";
  std::vector<fs::path> places = {name};
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    places.push_back(folder / name);
  for (const fs::path& place : places)
    if (fs::is_regular_file(place, ignored)) return place.string();
  if (std::string installed = find_installed_file(name); !installed.empty()) return installed;
  refuse(
      "configs/hardware.yaml: not found here, nor installed with the program "
      "(share/sheaf/configs/hardware.yaml); "
      "give it with --hardware-file");
}

}  // namespace sheaf
