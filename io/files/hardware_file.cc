#include "io/files/hardware_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/ranges.h>
#include <iterator>

#include "core/base/error.h"
#include "core/model/shapes.h"
#include "core/text/spelling.h"
#include "io/base/json_file.h"
#include "io/base/paths.h"
#include "io/base/process.h"
#include "io/base/program_file.h"
#include "io/base/yaml_reader.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char *kFormat = "sheaf device profile 1", *kOldFormat = "sheaf calibration 1";
constexpr size_t kLargestFile = size_t{16} << 20;
constexpr int64_t kMostRows = 1 << 20;

/// Microseconds with the digits that a clock can mean.
double microseconds(double seconds) {
  return std::round(seconds * 1e7) / 10;
}

/// "NVIDIA H200 (cuda:0), bf16" is the same device under any number.
std::string device_of(const std::string& backend) {
  return backend.substr(0, backend.find(" (cuda:"));
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  DeviceProfile read() const {
    const json root = read_json_object(path_, kLargestFile);
    only(root, {"format", "device", "dtype", "kv_dtype", "machine", "date", "version", "measurements"}, "");
    const JsonFields fields(root, path_);
    if (const std::string format = fields.text("format"); format != kFormat && format != kOldFormat)
      refuse("{}: the format is \"{}\", not \"{}\"; write the file again with sheaf bench --profile", path_,
             format, kFormat);
    const std::string backend = fields.text("device");
    DeviceProfile profile{device_of(backend), backend, fields.text("date"), fields.text("version"), {}};
    if (root.contains("machine")) profile.machine = fields.text("machine");
    if (root.contains("dtype"))
      profile.precision = precision(fields.text("dtype"));
    else if (root.contains("machine"))
      profile.precision = Precision::f32;
    if (root.contains("kv_dtype")) {
      if (const std::string keys = fields.text("kv_dtype"); keys != word_of(KvPrecision::fp8))
        refuse("{}: \"kv_dtype\" is \"{}\"; use fp8, or leave it out", path_, keys);
      profile.fp8_keys = true;
    }
    const json* list = fields.find("measurements");
    if (!list || !list->is_array() || list->empty())
      refuse("{}: \"measurements\" must be a list with at least one entry", path_);
    for (size_t i = 0; i < list->size(); ++i) profile.measurements.push_back(measurement((*list)[i], i));
    return profile;
  }

 private:
  Precision precision(const std::string& word) const {
    const auto known = read_word<Precision>(word);
    if (known && *known != Precision::automatic) return *known;
    std::vector<std::string> words = all_words<Precision>();
    std::erase(words, word_of(Precision::automatic));
    refuse("{}: \"dtype\" is \"{}\"; use one of {}", path_, word, fmt::join(words, ", "));
  }

  void only(const json& object, std::initializer_list<const char*> known, const std::string& where) const {
    for (const auto& [key, value] : object.items())
      if (std::ranges::find(known, key) == known.end())
        refuse("{}: {}has an unknown key \"{}\"", path_, where, key);
  }

  Measurement measurement(const json& object, size_t index) const {
    const std::string where = fmt::format("measurement {} ", index + 1);
    if (!object.is_object()) refuse("{}: {}must be an object", path_, where);
    only(object, {"shape", "parts", "picks", "products", "attention", "rest", "pick", "host", "held_out"},
         where);
    const JsonFields fields(object, path_ + ": " + where);
    Measurement measured;
    measured.shape = fields.text("shape");
    shape_by_name(measured.shape);
    const int64_t picks = fields.integer("picks");
    measured.probe.picks = static_cast<int32_t>(std::clamp<int64_t>(picks, 0, INT32_MAX));
    const json* parts = fields.find("parts");
    if (!parts || !parts->is_array() || parts->empty())
      refuse("{}: {}: \"parts\" must be a list with at least one entry", path_, where);
    for (const json& each : *parts) measured.probe.parts.push_back(part(each, where));
    if (measured.probe.rows() > kMostRows) refuse("{}: {}has more than {} tokens", path_, where, kMostRows);
    auto seconds = [&](const char* key) {
      const double value = fields.number(key, 0) / 1e6;
      if (!(value >= 0)) refuse("{}: {}: \"{}\" is below 0", path_, where, key);
      return value;
    };
    for (const NamedStage& stage : kStages) measured.device.*stage.seconds = seconds(stage.name);
    measured.host = seconds("host");
    measured.held_out = fields.boolean("held_out", false);
    if (!(measured.device.total() > 0)) refuse("{}: {}took no time", path_, where);
    return measured;
  }

  ProbePart part(const json& list, const std::string& where) const {
    int32_t values[5] = {};
    if (!list.is_array() || list.size() != std::size(values))
      refuse("{}: {}: a part must be [groups, trunk, runs, own, rows]", path_, where);
    for (size_t i = 0; i < std::size(values); ++i) {
      const bool from_zero = i == 1 || i == 3;
      if (!list[i].is_number_unsigned() || list[i] > kMostRows || (!from_zero && list[i] == 0))
        refuse("{}: {}: {} is not a possible part of a step", path_, where, shown_json(list));
      values[i] = list[i].get<int32_t>();
    }
    return {values[0], values[1], values[2], values[3], values[4]};
  }

  const std::string& path_;
};

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

std::string profile_text(const DeviceProfile& profile) {
  ordered_json head{{"format", kFormat}, {"device", profile.backend}};
  if (!profile.machine.empty()) head["machine"] = profile.machine;
  head["dtype"] = word_of(profile.precision);
  if (profile.fp8_keys) head["kv_dtype"] = word_of(KvPrecision::fp8);
  head.update({{"date", profile.date}, {"version", profile.version}});
  std::string text = head.dump();
  text.back() = ',';
  text += "\n\"measurements\": [";
  const char* separator = "\n";
  for (const Measurement& measured : profile.measurements) {
    ordered_json parts = ordered_json::array();
    for (const ProbePart& part : measured.probe.parts)
      parts.push_back({part.groups, part.trunk, part.runs, part.own, part.rows});
    ordered_json line{{"shape", measured.shape}, {"parts", parts}, {"picks", measured.probe.picks}};
    for (const NamedStage& stage : kStages) line[stage.name] = microseconds(measured.device.*stage.seconds);
    line["host"] = microseconds(measured.host);
    if (measured.held_out) line["held_out"] = true;
    text += separator + line.dump();
    separator = ",\n";
  }
  return text + "\n]}\n";
}

DeviceProfile read_profile(const std::string& path) {
  return Reader(path).read();
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
  if (fs::is_regular_file(name, ignored)) return name;
  if (std::string above = find_above_program(name); !above.empty()) return above;
  if (std::string installed = find_installed_file(name); !installed.empty()) return installed;
  refuse(
      "configs/hardware.yaml: not found here, nor installed with the program "
      "(share/sheaf/configs/hardware.yaml); "
      "give it with --hardware-file");
}

}  // namespace sheaf
