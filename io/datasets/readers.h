#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/task/record.h"
#include "io/datasets/dataset.h"

namespace sheaf {

// The formats behind open_dataset, one file each.
std::unique_ptr<DatasetReader> open_squad(const std::string& path);
std::unique_ptr<DatasetReader> open_quac(const std::string& path, int32_t turns);
std::unique_ptr<DatasetReader> open_drop(const std::string& path);
std::unique_ptr<DatasetReader> open_longhealth(const std::string& path);
std::unique_ptr<DatasetReader> open_race(const std::string& path, std::vector<std::string> files);
std::unique_ptr<DatasetReader> open_narrativeqa(const std::string& qaps, const std::string& summaries,
                                                const std::string& split);
std::unique_ptr<DatasetReader> open_extractgpt(const std::string& path);
std::unique_ptr<DatasetReader> open_hotpotqa(const std::string& path);
std::unique_ptr<DatasetReader> open_musique(const std::string& path);

/// The text of a file of RACE's; throws BadEntry.
std::string read_passage(const std::string& file);
/// Whether such a file can hold this.
bool is_race_passage(const nlohmann::ordered_json& file);
/// Every .txt file in the folder and those below it, sorted.
std::vector<std::string> text_files_below(const std::string& folder);

/// An entry of a file that was parsed whole: what becomes one row.
struct WholeEntry {
  std::string name;  ///< DatasetRow::entry
  std::string id;    ///< of the row
  const nlohmann::ordered_json* value = nullptr;
  std::string error;  ///< where not empty, there is nothing to convert
};

/// Gives the entries one by one through `convert`, which throws BadEntry.
using ConvertEntry = std::function<nlohmann::ordered_json(const WholeEntry&)>;
std::unique_ptr<DatasetReader> whole_file_reader(const std::string& path, nlohmann::ordered_json file,
                                                 std::vector<WholeEntry> entries, ConvertEntry convert);

/// Gives the lines of a file of JSON lines through `convert`, which gets the number of the row from 1 and
/// throws BadEntry. Refuses a file none of whose first lines has all of `keys`: `what` says what it is not.
using ConvertLine = std::function<nlohmann::ordered_json(const nlohmann::ordered_json&, int64_t)>;
std::unique_ptr<DatasetReader> json_lines_reader(const std::string& path, const std::string& what,
                                                 const std::vector<const char*>& keys, ConvertLine convert);

/// The paragraphs of a file in SQuAD's nesting (data → paragraphs); `what` is the dataset's name. An
/// entry's id is "title/number", "title#2/number" where an article before it has the same title.
std::vector<WholeEntry> nested_paragraphs(const nlohmann::ordered_json& file, const std::string& path,
                                          const std::string& what);

/// The texts of a list of {"text": …}.
std::vector<std::string> answer_texts(const nlohmann::ordered_json& answers);

}  // namespace sheaf
