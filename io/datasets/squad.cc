#include "core/base/error.h"
#include "io/datasets/entry.h"
#include "io/datasets/readers.h"
#include "io/datasets/recognize.h"

// SQuAD 1.1 and 2.0: {"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers":
// [{"text"}], "is_impossible"}]}]}]}.

namespace sheaf {
namespace {

using nlohmann::ordered_json;

ordered_json question_of(const ordered_json& qa) {
  ordered_json question{{"id", id_field(qa, "id")}, {"question", trimmed(text_field(qa, "question"))}};
  // Unanswerable ones may name answers that only look plausible.
  const auto impossible = qa.find("is_impossible");
  if (impossible != qa.end() && impossible->is_boolean() && impossible->get<bool>())
    question["answers"] = ordered_json::array();
  else if (qa.contains("answers"))
    question["answers"] = answer_texts(list_field(qa, "answers"));
  return question;
}

ordered_json paragraph_of(const WholeEntry& entry) {
  ordered_json row{{"id", entry.id}, {"context", text_field(*entry.value, "context")}};
  ordered_json& questions = row["questions"] = ordered_json::array();
  for (const ordered_json& qa : list_field(*entry.value, "qas")) questions.push_back(question_of(qa));
  return row;
}

}  // namespace

std::unique_ptr<DatasetReader> open_squad(const std::string& path) {
  ordered_json file = read_json_dataset(path);
  auto entries = nested_paragraphs(file, path, "SQuAD");
  if (asks_in_dialogs(file).value_or(false))
    refuse("{}: this is not a SQuAD file: its questions are turns of dialogs", path);
  return whole_file_reader(path, std::move(file), std::move(entries), paragraph_of);
}

}  // namespace sheaf
