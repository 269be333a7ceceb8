#pragma once
#include <nlohmann/json.hpp>
#include <set>
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
  std::vector<std::string> ids;  ///< in file order, each once
  /// Id → how many rows have it, where several do: corpora may repeat ids. The maps by id have the second
  /// one under row_key(id, 1), and so on.
  std::unordered_map<std::string, int64_t> repeated;
  std::unordered_map<std::string, std::string> categories;  ///< document → its row's category
  std::set<std::string> attributes;  ///< that rows have; of a table, its columns, empty ones too
  /// Document → attributes whose answer could not be read; of JSON lines only.
  std::unordered_map<std::string, std::vector<std::string>> noted;
  /// Document → {attribute: number}, where the run has them; a question's confidence stands beside its
  /// answer.
  std::unordered_map<std::string, nlohmann::json> confidence, null_margins;
};

/// Reads the rows of sheaf (a run's folder, its rows-*.jsonl or .parquet), the official form {id: answer} of
/// a .json file, HotpotQA's {"answer": {id: answer}}, QuAC's lines {"qid", "best_span_str", "yesno",
/// "followup"}, or MuSiQue's {"id", "predicted_answer"}. Refuses what is none of them, with its place.
Predictions read_predictions(const std::string& path);

/// The key of the row that is `number`th to have an id, from 0.
std::string row_key(const std::string& id, int64_t number);

/// How many rows have the id.
int64_t rows_of(const Predictions& predictions, const std::string& id);

/// An answer as texts: nothing in it for null, one text as a rule, several for a list; numbers
/// in their shortest form.
std::vector<std::string> answer_texts(const nlohmann::json& answer);

/// An id as text: a number as it is written.
std::string id_text(const nlohmann::json& id);

}  // namespace sheaf
