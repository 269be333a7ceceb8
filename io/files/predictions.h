#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace sheaf {

/// What a run, or anybody's model, answered.
struct Predictions {
  std::string path;
  bool documents = false;  ///< attribute values by document, not answers by question
  /// Question → {"answer", "option", "yesno", "followup"}, `option` only for a choice, the last two only
  /// where QuAC's form says them; document → {attribute: value}.
  std::unordered_map<std::string, nlohmann::json> by_id;
  std::vector<std::string> ids;  ///< in file order
  /// Document → attributes whose answer could not be read; of JSON lines only.
  std::unordered_map<std::string, std::vector<std::string>> noted;
  /// Document → {attribute: number}, where the run has them; a question's confidence stands beside its
  /// answer.
  std::unordered_map<std::string, nlohmann::json> confidence, null_margins;
};

/// Reads the rows of sheaf (a run's folder, its rows-*.jsonl or .parquet), the official form {id: answer} of
/// a .json file, HotpotQA's {"answer": {id: answer}}, QuAC's lines {"qid", "best_span_str", "yesno",
/// "followup"}, or MuSiQue's {"id", "predicted_answer"}. Refuses what is none of them and an id said twice,
/// with its place.
Predictions read_predictions(const std::string& path);

/// An answer as texts: nothing in it for null, one text as a rule, several for a list; numbers
/// in their shortest form.
std::vector<std::string> answer_texts(const nlohmann::json& answer);

/// An id as text: a number as it is written.
std::string id_text(const nlohmann::json& id);

}  // namespace sheaf
