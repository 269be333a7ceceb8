#pragma once
#include "io/datasets/dataset.h"

namespace sheaf {

/// What a dataset says is right: for one question, or (extract) for one document.
struct GoldAnswer {
  nlohmann::json id;  ///< of the question as sheaf's rows name it; of the row for extract: its number, from 1
  /// Every accepted answer as it is written, equal ones kept. Multiple choice: the letter of the right
  /// option. Empty: the text holds no answer (SQuAD 2.0), or extract. QuAC keeps its "CANNOTANSWER" entries.
  std::vector<std::string> references;
  bool answerable = true;
  /// What a metric needs beyond the texts, else null.
  /// drop: {"answers": [{number, date, spans}, …]}, the answer first, then the validated ones.
  /// quac: {"dialog", "yesno", "followup"}. race: {"level": "middle" or "high"}.
  /// extract: {"category", "gold": {attribute: [values] or a text}}; a value "n/a" says that the text does
  /// not hold it.
  ///   "wrong", {attribute: [values]}: values known to be wrong where the right one is not known.
  /// questions of which only wrong answers are known: {"wrong": [answers]}.
  nlohmann::json extra;
  std::string option = {};  ///< multiple choice: the text of the right option, where the dataset has it
  std::string place = {};   ///< where it stands, for messages
};

struct GoldOptions {
  /// The column that names a row of extract in a corpus of one's own; empty: "id" or "sku".
  std::string id = {};
  bool may_be_empty = false;  ///< a file without answers is not refused
  std::string hint = {};      ///< what else the user can do where a row has no gold
};

/// The rows of a file or folder that has gold answers, found and refused as read_gold() has it. `forms`: what
/// a refusal tells the user to name instead.
std::unique_ptr<DatasetReader> open_gold(const std::string& format, const std::string& path,
                                         std::string_view forms);

/// What the row of an extract corpus says is right, {attribute: [values]}, each a text, a number, a boolean
/// or null. A text that did not stand in a list stays alone: it may hold the parts of a list. Objects and
/// lists of objects stay what they are, with such values in them. Throws BadText.
nlohmann::json gold_values(const ordered_json& row);

/// What a person marked wrong in it without saying what is right, {attribute: [values]}; throws BadText.
nlohmann::json wrong_values(const ordered_json& row);

/// The gold answers of a dataset file or folder in file order. `format` is the name of a dataset (squad,
/// race, …; see io/datasets/dataset.h), `sheaf` for a corpus that `sheaf convert` wrote (JSONL or Parquet) or
/// JSON lines {"id", "answers": [...]}, or `auto`: found out by looking. Refuses a file of another kind and a
/// broken entry, with its place.
std::vector<GoldAnswer> read_gold(const std::string& format, const std::string& path,
                                  const GoldOptions& options = {});

}  // namespace sheaf
