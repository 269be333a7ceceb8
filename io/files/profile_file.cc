#include "io/files/profile_file.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <iterator>

#include "core/base/error.h"
#include "core/model/shapes.h"
#include "io/base/json_file.h"
#include "io/files/hardware_file.h"

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

}  // namespace sheaf
