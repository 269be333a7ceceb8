#include <algorithm>
#include <set>

#include "io/datasets/readers.h"

// SQuAD 1.1 and 2.0: {"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers":
// [{"text"}], "is_impossible"}]}]}]}.
// QuAC: SQuAD's nesting; a paragraph is a dialog {"id", "context", "qas": [{"id", "question", "answers":
// [{"text"}], "orig_answer": {"text"}, "yesno", "followup"}]} about a section of an article.

namespace sheaf {
namespace {

constexpr std::string_view kCannotAnswer = "CANNOTANSWER";

/// The paragraphs of a file in SQuAD's nesting (data → paragraphs); `what` is the dataset's name. An
/// entry's id is "title/number", "title#2/number" where an article before it has the same title.
std::vector<WholeEntry> nested_paragraphs(const ordered_json& file, const std::string& path,
                                          const std::string& what) {
  if (!has_list(file, "data")) refuse("{}: this is not a {} file: it has no \"data\" list", path, what);
  std::vector<WholeEntry> entries;
  std::set<std::string> names;
  size_t number = 0;
  for (const ordered_json& article : file["data"]) {
    const std::string place = fmt::format("article {}", ++number);
    if (!has_list(article, "paragraphs")) {
      entries.push_back({place, {}, nullptr, "no \"paragraphs\" list"});
      continue;
    }
    const std::string title = article.contains("title") && article["title"].is_string()
                                  ? article["title"].get<std::string>()
                                  : std::to_string(number - 1);
    std::string name = title;
    for (int twin = 2; !names.insert(name).second; ++twin) name = fmt::format("{}#{}", title, twin);
    size_t part = 0;
    for (const ordered_json& paragraph : article["paragraphs"]) {
      const std::string id = fmt::format("{}/{}", name, part++);
      entries.push_back({fmt::format("{}, paragraph {}", place, part), id, &paragraph, {}});
    }
  }
  return entries;
}

ordered_json squad_question(const ordered_json& qa) {
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
  for (const ordered_json& qa : list_field(*entry.value, "qas")) questions.push_back(squad_question(qa));
  return row;
}

/// What the teacher of the dialog answered; the others were asked later.
const ordered_json& given_answer(const ordered_json& turn) {
  if (turn.contains("orig_answer")) return turn["orig_answer"];
  const ordered_json& answers = list_field(turn, "answers");
  if (answers.empty()) reject("a turn has no answer");
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

std::optional<bool> asks_in_dialogs(const ordered_json& file) {
  for (const WholeEntry& paragraph : nested_paragraphs(file, {}, {})) {
    if (!paragraph.value || !has_list(*paragraph.value, "qas")) continue;
    for (const ordered_json& qa : (*paragraph.value)["qas"])
      if (qa.is_object())
        return qa.contains("orig_answer") || qa.contains("followup") || qa.contains("yesno");
  }
  return std::nullopt;
}

std::unique_ptr<DatasetReader> open_squad(const DatasetPlace& at) {
  ordered_json file = read_json_dataset(at.path);
  auto entries = nested_paragraphs(file, at.path, "SQuAD");
  if (asks_in_dialogs(file).value_or(false))
    refuse("{}: this is not a SQuAD file: its questions are turns of dialogs", at.path);
  return whole_file_reader(at.path, std::move(file), std::move(entries), paragraph_of);
}

std::unique_ptr<DatasetReader> open_quac(const DatasetPlace& at) {
  ordered_json file = read_json_dataset(at.path);
  auto entries = nested_paragraphs(file, at.path, "QuAC");
  if (!asks_in_dialogs(file).value_or(true))
    refuse("{}: this is not a QuAC file: its questions have neither \"yesno\" nor \"followup\"", at.path);
  return whole_file_reader(
      at.path, std::move(file), std::move(entries),
      [turns = at.options.turns](const WholeEntry& entry) { return dialog_of(entry, turns); });
}

}  // namespace sheaf
