#include <algorithm>

#include "core/base/error.h"
#include "io/datasets/entry.h"
#include "io/datasets/readers.h"
#include "io/datasets/recognize.h"

// QuAC: SQuAD's nesting; a paragraph is a dialog {"id", "context", "qas": [{"id", "question", "answers":
// [{"text"}], "orig_answer": {"text"}, "yesno", "followup"}]} about a section of an article.

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kCannotAnswer = "CANNOTANSWER";

/// What the teacher of the dialog answered; the others were asked later.
const ordered_json& given_answer(const ordered_json& turn) {
  if (turn.contains("orig_answer")) return turn["orig_answer"];
  const ordered_json& answers = list_field(turn, "answers");
  if (answers.empty()) bad_entry("a turn has no answer");
  return answers[0];
}

/// The question as the turn of a dialog: prompts put "Question: " before it and the answer after it.
std::string with_earlier_turns(const ordered_json& dialog, size_t turn, int32_t turns) {
  std::string text;
  const size_t first = turn - std::min(turn, static_cast<size_t>(turns));
  for (size_t i = first; i < turn; ++i)
    text += trimmed(text_field(dialog[i], "question")) +
            "\nAnswer: " + trimmed(text_field(given_answer(dialog[i]), "text")) + "\nQuestion: ";
  return text + trimmed(text_field(dialog[turn], "question"));
}

ordered_json dialog_of(const WholeEntry& entry, int32_t turns) {
  const ordered_json& dialog = *entry.value;
  // Every text ends in this word, so that a model that marks spans can point at it. Ours writes its answers.
  std::string context = trimmed(text_field(dialog, "context"));
  if (context.ends_with(kCannotAnswer))
    context = trimmed(context.substr(0, context.size() - kCannotAnswer.size()));
  const ordered_json id = id_field(dialog, "id");
  ordered_json row{{"id", id}, {"context", context}};
  ordered_json& questions = row["questions"] = ordered_json::array();
  const ordered_json& qas = list_field(dialog, "qas");
  for (size_t i = 0; i < qas.size(); ++i) {
    ordered_json question{{"id", id_field(qas[i], "id")}, {"question", with_earlier_turns(qas, i, turns)}};
    if (qas[i].contains("answers")) question["answers"] = answer_texts(list_field(qas[i], "answers"));
    ordered_json& extra = question["extra"] = {{"dialog", id}};
    for (const char* key : {"yesno", "followup"})
      if (qas[i].contains(key)) extra[key] = text_field(qas[i], key);
    questions.push_back(std::move(question));
  }
  return row;
}

}  // namespace

std::unique_ptr<DatasetReader> open_quac(const std::string& path, int32_t turns) {
  ordered_json file = read_json_dataset(path);
  auto entries = nested_paragraphs(file, path, "QuAC");
  if (!asks_in_dialogs(file).value_or(true))
    refuse("{}: this is not a QuAC file: its questions have neither \"yesno\" nor \"followup\"", path);
  return whole_file_reader(path, std::move(file), std::move(entries),
                           [turns](const WholeEntry& entry) { return dialog_of(entry, turns); });
}

}  // namespace sheaf
