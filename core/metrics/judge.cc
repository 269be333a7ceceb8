#include "core/metrics/judge.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/metrics/metrics.h"
#include "core/text/json_reader.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr std::array<std::string_view, 5> words = {"correct", "correct null", "incorrect", "missing",
                                                   "hallucination"};
enum Term { correct, correct_null, incorrect, missing, hallucination };

void measure_judged(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  if (!item.prediction || item.prediction->empty()) return;
  const auto* word = std::ranges::find(words, item.prediction->front());
  if (word == words.end()) return;
  const auto term = static_cast<size_t>(word - words.begin());
  terms[term] = 1;
  scores[0] = term <= correct_null ? 1 : 0;
}

void evaluate_judged(std::span<const double> sums, std::span<double> values) {
  const double right = sums[correct] + sums[correct_null];
  const double precision = right / (right + sums[hallucination] + sums[incorrect]);
  const double recall = right / (right + sums[missing] + sums[incorrect]);
  values[0] = right > 0 ? 2 * precision * recall / (precision + recall) : 0;
  values[1] = precision;
  values[2] = recall;
  std::copy_n(sums.begin(), words.size(), values.begin() + 3);
}

constexpr Metric::ValueName scores[] = {{"right"}};
constexpr Metric::ValueName values[] = {{"llm_f1"},        {"llm_precision"},      {"llm_recall"},
                                        {"correct", true}, {"correct_null", true}, {"incorrect", true},
                                        {"missing", true}, {"hallucination", true}};

}  // namespace

Metric judged_metric() {
  return {.name = "llm-f1",
          .about = "LLM-F1 of the HPD paper: attribute values as a judge model classed them (--judgements)",
          .values = values,
          .scores = scores,
          .right = 0,
          .terms = 5,
          .measure = measure_judged,
          .evaluate = evaluate_judged};
}

std::string judge_prompt(const std::vector<std::pair<std::string, std::string>>& attributes,
                         std::string_view product,
                         const std::vector<std::pair<std::string, std::optional<std::string>>>& extracted) {
  std::string prompt =
      "You are an expert at evaluating product details.\n\nConsider the following product attributes:\n\n";
  for (const auto& [name, description] : attributes)
    prompt += description.empty() ? name + "\n" : fmt::format("{}: {}\n", name, description);
  prompt +=
      "\nAn existing system has attempted to extract the value of each attribute from the product "
      "information below. Analyze the input context and extracted values to determine if the extracted "
      "values are correct.\n\n"
      "Classify each attribute into 1 of 5 types:\n\n"
      "- \"correct\": The input text contains sufficient information to extract the attribute value "
      "beyond reasonable doubt. The attribute value extracted is correct and complete. Words that convey "
      "the same meaning are allowed.\n"
      "- \"incorrect\": The input text contains sufficient information to extract the attribute value "
      "beyond reasonable doubt. The attribute value extracted is incorrect or incomplete. Do not include "
      "\"null\" values in this category.\n"
      "- \"missing\": The input text contains sufficient information to extract the attribute value "
      "beyond reasonable doubt. The attribute value extracted is \"null\" or missing.\n"
      "- \"correct null\": The value cannot be directly inferred from the input context. The attribute "
      "value extracted is \"null\" or similar. Values indicating the absence of an attribute (\"no\", "
      "\"none\") should be \"correct null\".\n"
      "- \"hallucination\": The value cannot be directly inferred from the input context. An attribute "
      "value was extracted which is not indicating the absence of a value.\n\n"
      "Use the following explanation structure for each attribute:\n"
      "<attribute_name>: The value \"<value>\" is <classification> because <brief explanation>.\n\n"
      "After the explanation, output a JSON dict with a key for each attribute (use the attribute name) "
      "and one of the evaluation results as value (correct, incorrect, missing, correct null, "
      "hallucination). Wrap the JSON around <result></result> tags. Do not provide explanations.\n\n"
      "Input product:\n\n";
  prompt.append(product).append("\n\nExtracted Values:\n\n");
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : extracted)
    object[name] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  return prompt + object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::map<std::string, std::string> read_judgements(std::string_view reply) {
  constexpr std::string_view open = "<result>", close = "</result>";
  const size_t begin = reply.rfind(open);
  if (begin == std::string_view::npos) throw BadText("the reply has no <result>");
  std::string_view text = reply.substr(begin + open.size());
  text = text.substr(0, text.find(close));
  const auto object = read_json(text);
  if (!object.is_object()) throw BadText("the text in <result> is not a JSON object");
  std::map<std::string, std::string> judgements;
  for (const auto& [name, word] : object.items()) {
    const std::string lower = small_letters(word.is_string() ? word.get<std::string>() : "");
    if (std::ranges::find(words, lower) == words.end())
      throw BadText(
          fmt::format("\"{}\" is judged {}, which is not one of the five words", name, word.dump()));
    judgements[name] = lower;
  }
  return judgements;
}

}  // namespace sheaf
