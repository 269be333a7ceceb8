#include "core/text/spelling.h"
#include "io/datasets/readers.h"

// OA-Mine and AE-110k as ExtractGPT publishes them: lines {"input": title, "category", "target_scores":
// {attribute: {value: 1}}}; the value "n/a" says that the title does not hold the attribute.

namespace sheaf {
namespace {

ordered_json product_of(const ordered_json& line, int64_t number) {
  ordered_json row{
      {"id", number}, {"category", text_field(line, "category")}, {"document", text_field(line, "input")}};
  ordered_json& gold = row["gold"] = ordered_json::object();
  const ordered_json& targets = field(line, "target_scores");
  if (!targets.is_object()) reject("\"target_scores\" is not an object");
  for (const auto& [attribute, values] : targets.items()) {
    if (!values.is_object() || values.empty())
      reject("\"{}\" of \"target_scores\" is not {{value: 1}}", shorten_text(attribute, 60));
    // The order counts: ExtractGPT takes an attribute for absent where "n/a" stands first.
    ordered_json& list = gold[attribute] = ordered_json::array();
    for (const auto& [value, score] : values.items()) list.push_back(value);
  }
  return row;
}

}  // namespace

std::unique_ptr<DatasetReader> open_extractgpt(const DatasetPlace& at) {
  return json_lines_reader(at.path, "ExtractGPT", {"input", "category", "target_scores"}, product_of);
}

}  // namespace sheaf
