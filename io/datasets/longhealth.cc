#include "core/text/spelling.h"
#include "io/datasets/readers.h"

// LongHealth: {patient id: {"texts": {"text_0": …}, "questions": [{"question", "answer_a" … "answer_e",
// "correct": the text of the right answer}]}}.

namespace sheaf {
namespace {

constexpr std::string_view kBetween = "\n\n--------------\n\n";  // the benchmark's own prompt has it

std::string joined_texts(const ordered_json& texts) {
  if (!texts.is_object()) reject("\"texts\" is not an object");
  std::string joined;
  for (const auto& [name, text] : texts.items()) {
    if (!text.is_string()) reject("\"{}\" is not text", shorten_text(name, 60));
    if (!joined.empty()) joined += kBetween;
    joined += text.get_ref<const std::string&>();
  }
  return joined;
}

ordered_json question_of(const ordered_json& source, const std::string& id) {
  ordered_json question{{"id", id}, {"question", trimmed(text_field(source, "question"))}};
  const std::string correct = trimmed(text_field(source, "correct"));
  ordered_json& options = question["options"] = ordered_json::array();
  std::string letter;
  for (const char* key : {"answer_a", "answer_b", "answer_c", "answer_d", "answer_e"}) {
    const std::string option = trimmed(text_field(source, key));
    if (letter.empty() && option == correct) letter = option_letter(options.size());
    options.push_back(option);
  }
  if (letter.empty()) reject("question {}: \"correct\" is not one of the options", id);
  question["answers"] = {letter};
  return question;
}

ordered_json patient_of(const WholeEntry& entry) {
  ordered_json row{{"id", entry.id}, {"context", joined_texts(field(*entry.value, "texts"))}};
  ordered_json& questions = row["questions"] = ordered_json::array();
  for (const ordered_json& source : list_field(*entry.value, "questions"))
    questions.push_back(question_of(source, fmt::format("{}/{}", entry.id, questions.size())));
  return row;
}

}  // namespace

std::unique_ptr<DatasetReader> open_longhealth(const DatasetPlace& at) {
  ordered_json file = read_json_dataset(at.path);
  std::vector<WholeEntry> entries;
  bool found = false;
  if (file.is_object())
    for (const auto& [id, patient] : file.items()) {
      if (!patient.is_object()) continue;  // the file's canary string
      found = found || (patient.contains("texts") && has_list(patient, "questions"));
      entries.push_back({fmt::format("patient {}", shorten_text(id, 60)), id, &patient, {}});
    }
  if (!found)
    refuse("{}: this is not a LongHealth file: it has no patient with \"texts\" and \"questions\"", at.path);
  return whole_file_reader(at.path, std::move(file), std::move(entries), patient_of);
}

}  // namespace sheaf
