#pragma once
#include "core/task/record.h"
#include "io/datasets/dataset.h"

namespace sheaf {

// The formats behind open_dataset.
OpenDataset open_squad, open_quac, open_drop, open_longhealth, open_race, open_narrativeqa, open_extractgpt,
    open_hotpotqa, open_musique, open_loft, open_longbench, open_amazon_reviews;

/// The text of a file of RACE's; throws BadText.
std::string read_passage(const std::string& file);
/// Whether such a file can hold this.
bool is_race_passage(const ordered_json& file);

/// Whether the questions of a file in SQuAD's nesting (data → paragraphs → qas) are turns of dialogs, as
/// QuAC's are; nothing where it has no question.
std::optional<bool> asks_in_dialogs(const ordered_json& file);

/// Parses untrusted JSON of any size; keys stay in file order. Throws BadText for what is not UTF-8, not
/// JSON, or nested more than 32 levels deep.
ordered_json parse_entry(std::string_view text);

/// A cell of a CSV file: null where it is empty; lists and objects stand there as JSON; anything else is
/// text.
ordered_json csv_cell(std::string text);

/// The JSON of a whole file (.gz and .zst are unpacked). Refuses what cannot be read or parsed, naming it.
ordered_json read_json_dataset(const std::string& path);

// The field of an object; each throws BadText where it is missing or of another kind.
const ordered_json& field(const ordered_json& object, const char* key);
const ordered_json& list_field(const ordered_json& object, const char* key);
std::string text_field(const ordered_json& object, const char* key);
/// Text or a number, as it stands.
ordered_json id_field(const ordered_json& object, const char* key);

/// Whether `value` is an object that has `key` as a list.
bool has_list(const ordered_json& value, const char* key);

/// Without white space at its ends.
std::string trimmed(std::string_view text);

/// An entry of a file that was parsed whole: what becomes one row.
struct WholeEntry {
  std::string name;  ///< DatasetRow::entry
  std::string id;    ///< of the row
  const ordered_json* value = nullptr;
  std::string error;      ///< where not empty, there is nothing to convert
  std::string file = {};  ///< holds this entry alone; empty: the file that was parsed has it
};

/// Gives the entries one by one through `convert`, which throws BadText.
using ConvertEntry = std::function<ordered_json(const WholeEntry&)>;
std::unique_ptr<DatasetReader> whole_file_reader(const std::string& path, ordered_json file,
                                                 std::vector<WholeEntry> entries, ConvertEntry convert);

/// Gives the lines of a file of JSON lines through `convert`, which gets the number of the row from 1 and
/// throws BadText. Refuses a file none of whose first lines has all of `keys`: `what` says what it is not.
using ConvertLine = std::function<ordered_json(const ordered_json&, int64_t)>;
std::unique_ptr<DatasetReader> json_lines_reader(const std::string& path, const std::string& what,
                                                 const std::vector<const char*>& keys, ConvertLine convert);

/// The texts of a list of {"text": …}.
std::vector<std::string> answer_texts(const ordered_json& answers);

}  // namespace sheaf
