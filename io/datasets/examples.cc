#include "io/datasets/examples.h"

#include <random>

#include "core/base/error.h"
#include "io/datasets/entry.h"
#include "io/datasets/readers.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// Empty where no question of the row has an answer.
std::string example_of(const ordered_json& row, const std::string& heading) {
  if (!has_list(row, "questions") || !row.contains("context") || !row["context"].is_string()) return {};
  for (const ordered_json& question : row["questions"]) {
    if (!has_list(question, "answers") || question["answers"].empty()) continue;
    if (!question.contains("question") || !question["question"].is_string()) continue;
    std::string text = heading + row["context"].get<std::string>() +
                       "\n\nQuestion: " + question["question"].get<std::string>() + "\n";
    if (has_list(question, "options"))
      for (size_t i = 0; i < question["options"].size(); ++i)
        text += option_letter(i) + ") " + question["options"][i].get<std::string>() + "\n";
    const auto answer = question["answers"][0].get<std::string>();
    return text + "Answer: " + (answer == "CANNOTANSWER" ? "null" : answer);  // QuAC's word for no answer
  }
  return {};
}

}  // namespace

std::string few_shot_examples(DatasetReader& dataset, int32_t count, const std::string& heading) {
  // A sample in one pass: entry n takes the place of one before it with probability count / n.
  std::vector<std::string> chosen;
  std::mt19937_64 random(1);
  uint64_t seen = 0;
  const auto wanted = static_cast<size_t>(count);
  while (const auto row = dataset.next()) {
    if (!row->error.empty()) continue;
    std::string example = example_of(row->cells, heading);
    if (example.empty()) continue;
    ++seen;
    if (chosen.size() < wanted) {
      chosen.push_back(std::move(example));
    } else if (const uint64_t place = random() % seen; place < wanted) {
      chosen[place] = std::move(example);
    }
  }
  if (chosen.size() < wanted)
    refuse(
        "input.shots: {} examples were asked for, but only {} passages of input.shots_from have a question "
        "with \"answers\"",
        count, chosen.size());
  return fmt::format("{}", fmt::join(chosen, "\n\n"));
}

}  // namespace sheaf
