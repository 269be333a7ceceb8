#include "io/files/batch_request.h"

#include <fmt/ranges.h>

#include "core/metrics/judge.h"
#include "io/files/predictions.h"

namespace sheaf {

using nlohmann::ordered_json;

std::string batch_request(const std::string& id, const Dialog& dialog, const ordered_json& body) {
  ordered_json messages = ordered_json::array();
  if (dialog.system) messages.push_back({{"role", "system"}, {"content", *dialog.system}});
  for (size_t i = 0; i < dialog.turns.size(); ++i)
    messages.push_back({{"role", i % 2 ? "assistant" : "user"}, {"content", dialog.turns[i]}});
  ordered_json asked = ordered_json::object();
  if (const auto model = body.find("model"); model != body.end()) asked["model"] = *model;
  asked["messages"] = std::move(messages);
  for (const auto& [key, value] : body.items()) asked[key] = value;
  const ordered_json line{
      {"custom_id", id}, {"method", "POST"}, {"url", "/v1/chat/completions"}, {"body", std::move(asked)}};
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Dialog judge_dialog(const Category& category, const std::string& document, const nlohmann::json& values) {
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<std::pair<std::string, std::optional<std::string>>> extracted;
  for (const Attribute& attribute : category.attributes) {
    attributes.emplace_back(attribute.name, attribute.description);
    std::vector<std::string> texts;
    if (const auto value = values.find(attribute.name); value != values.end()) texts = answer_texts(*value);
    std::optional<std::string> text;
    if (!texts.empty()) text = fmt::format("{}", fmt::join(texts, ", "));
    extracted.emplace_back(attribute.name, std::move(text));
  }
  return {std::nullopt, {judge_prompt(attributes, document, extracted)}};
}

}  // namespace sheaf
