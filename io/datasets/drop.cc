#include "core/text/spelling.h"
#include "io/datasets/readers.h"

// DROP: {passage id: {"passage", "qa_pairs": [{"query_id", "question", "answer": {"number", "date": {"day",
// "month", "year"}, "spans"}, "validated_answers": [as answer]}]}}.

namespace sheaf {
namespace {

/// An answer in words: its number, its spans, or its date. Empty where it has none of them.
std::string answer_text(const ordered_json& answer) {
  if (!answer.is_object()) reject("an answer is not an object");
  static const ordered_json none;
  const auto part_of = [](const ordered_json& object, const char* key) -> const ordered_json& {
    return object.is_object() && object.contains(key) ? object[key] : none;
  };
  const ordered_json& number = part_of(answer, "number");
  if (number.is_number()) return number.dump();
  if (number.is_string() && !number.get_ref<const std::string&>().empty()) return number.get<std::string>();
  std::string text;
  const auto append = [&](const ordered_json& part, const char* between) {
    if (!part.is_string()) reject("an answer contains {}, not text", part.type_name());
    if (part.get_ref<const std::string&>().empty()) return;
    if (!text.empty()) text += between;
    text += part.get<std::string>();
  };
  if (const ordered_json& spans = part_of(answer, "spans"); spans.is_array())
    for (const ordered_json& span : spans) append(span, ", ");
  if (!text.empty()) return text;
  const ordered_json& date = part_of(answer, "date");
  for (const char* key : {"day", "month", "year"})
    if (const ordered_json& part = part_of(date, key); !part.is_null()) append(part, " ");
  return text;
}

ordered_json drop_question(const ordered_json& pair) {
  ordered_json question{{"id", id_field(pair, "query_id")},
                        {"question", trimmed(text_field(pair, "question"))}};
  if (!pair.contains("answer")) return question;
  ordered_json texts = ordered_json::array(), answers = ordered_json::array();
  const auto add = [&](const ordered_json& answer) {
    const std::string text = answer_text(answer);
    if (text.empty()) return;
    texts.push_back(text);
    answers.push_back(answer);
  };
  add(pair["answer"]);
  if (pair.contains("validated_answers"))
    for (const ordered_json& answer : list_field(pair, "validated_answers")) add(answer);
  question["answers"] = std::move(texts);
  question["extra"] = {{"answers", std::move(answers)}};
  return question;
}

ordered_json passage_of(const WholeEntry& entry) {
  ordered_json row{{"id", entry.id}, {"context", text_field(*entry.value, "passage")}};
  ordered_json& questions = row["questions"] = ordered_json::array();
  for (const ordered_json& pair : list_field(*entry.value, "qa_pairs"))
    questions.push_back(drop_question(pair));
  return row;
}

}  // namespace

std::unique_ptr<DatasetReader> open_drop(const DatasetPlace& at) {
  ordered_json file = read_json_dataset(at.path);
  std::vector<WholeEntry> entries;
  bool found = false;
  if (file.is_object())
    for (const auto& [id, passage] : file.items()) {
      found = found || has_list(passage, "qa_pairs");
      entries.push_back({fmt::format("passage {}", shorten_text(id, 60)), id, &passage, {}});
    }
  if (!found) refuse("{}: this is not a DROP file: it has no passage with a \"qa_pairs\" list", at.path);
  return whole_file_reader(at.path, std::move(file), std::move(entries), passage_of);
}

}  // namespace sheaf
