#include "io/files/confidence_file.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/task/value_path.h"
#include "io/base/json_file.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kConfidenceFormat = "sheaf confidence 1";
constexpr const char* kWriteAgain = "write the file again with `sheaf calibrate`";
constexpr size_t kLargestConfidenceFile = 64 << 10;
constexpr double kLeastTemperature = 0.01, kMostTemperature = 100, kMostOffset = 1000;

ordered_json part_json(const ConfidenceScales::Part& part) {
  return {{"temperature", part.scale.temperature},
          {"offset", part.scale.offset},
          {"items", part.items},
          {"right", part.right}};
}

void only_keys(const json& object, std::initializer_list<const char*> known, const std::string& source) {
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end())
      refuse("{}: unknown key \"{}\"; {}", source, key, kWriteAgain);
}

ConfidenceScales::Part read_part(const json& root, const char* key, const std::string& path) {
  const auto object = root.find(key);
  if (object == root.end() || !object->is_object())
    refuse("{}: \"{}\" must be an object with a temperature and an offset; {}", path, key, kWriteAgain);
  const std::string source = path + ": " + key;
  only_keys(*object, {"temperature", "offset", "items", "right"}, source);
  const JsonFields fields(*object, source);
  ConfidenceScales::Part part{{fields.number("temperature"), fields.number("offset")},
                              fields.integer("items"),
                              fields.integer("right")};
  const double temperature = part.scale.temperature;
  if (!(temperature >= kLeastTemperature && temperature <= kMostTemperature))
    refuse("{}: \"temperature\" must be from {} to {}, not {}", source, kLeastTemperature, kMostTemperature,
           temperature);
  if (!(std::abs(part.scale.offset) <= kMostOffset))
    refuse("{}: \"offset\" must be from -{} to {}, not {}", source, kMostOffset, kMostOffset,
           part.scale.offset);
  if (part.items < 0 || part.right < 0 || part.right > part.items)
    refuse("{}: {} of {} items cannot be right", source, part.right, part.items);
  return part;
}

void scale_answer(const ConfidenceScales& scales, RowAnswer& answer) {
  if (!answer.confidence) return;
  const ConfidenceScales::Part& part = is_found(answer.value) ? scales.values : scales.nulls;
  answer.confidence = part.scale.apply(*answer.confidence);
}

}  // namespace

std::string confidence_file_text(const ConfidenceScales& scales) {
  const ordered_json json{{"format", kConfidenceFormat},
                          {"metric", scales.metric},
                          {"values", part_json(scales.values)},
                          {"nulls", part_json(scales.nulls)}};
  return json.dump(2) + "\n";
}

ConfidenceScales read_confidence_file(const std::string& path) {
  json root;
  try {
    root = read_json_object(path, kLargestConfidenceFile);
    if (!root.contains("format")) refuse("{}: \"format\" is missing", path);
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    refuse("{}; output.calibration must name a file that `sheaf calibrate` wrote", error.what());
  }
  const JsonFields fields(root, path);
  if (const std::string format = fields.text("format"); format != kConfidenceFormat)
    refuse("{}: the format is \"{}\", not \"{}\"; {}", path, format, kConfidenceFormat, kWriteAgain);
  only_keys(root, {"format", "metric", "values", "nulls"}, path);
  return {read_part(root, "values", path), read_part(root, "nulls", path), fields.text("metric")};
}

void scale_confidence(const ConfidenceScales& scales, Row& row) {
  if (auto* extracted = std::get_if<ExtractedValues>(&row.content)) {
    visit_values(extracted->values,
                 [&](const std::string&, RowAnswer& answer) { scale_answer(scales, answer); });
  } else if (auto* answers = std::get_if<std::vector<QuestionAnswer>>(&row.content)) {
    for (QuestionAnswer& question : *answers) scale_answer(scales, question.answer);
  } else {
    scale_answer(scales, std::get<RowAnswer>(row.content));
  }
}

}  // namespace sheaf
