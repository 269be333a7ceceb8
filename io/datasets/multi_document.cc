#include "io/base/line_reader.h"
#include "io/datasets/readers.h"

// Questions about several documents, some of which help and most of which do not.
// HotpotQA: a list, or lines, of {"_id", "question", "answer", "context": [[title, [sentences]]]}.
// MuSiQue: lines {"id", "question", "answer", "answer_aliases", "answerable", "paragraphs": [{"title",
// "paragraph_text"}]}.

namespace sheaf {
namespace {

/// A row with one question; the context is the documents with a blank line between them.
ordered_json row_of(const ordered_json& id, std::vector<std::string> documents, const ordered_json& source) {
  ordered_json row{{"id", id}, {"context", fmt::format("{}", fmt::join(documents, "\n\n"))}};
  row["documents"] = std::move(documents);
  row["questions"] = {{{"id", id}, {"question", trimmed(text_field(source, "question"))}}};
  return row;
}

ordered_json hotpot_row(const ordered_json& source, int64_t) {
  std::vector<std::string> documents;
  for (const ordered_json& document : list_field(source, "context")) {
    if (!document.is_array() || document.size() != 2 || !document[0].is_string() || !document[1].is_array())
      reject("document {} is not [title, [sentences]]", documents.size() + 1);
    std::string text = document[0].get<std::string>() + "\n";
    for (const ordered_json& sentence : document[1]) {
      if (!sentence.is_string()) reject("document {} has a sentence that is not text", documents.size() + 1);
      text += sentence.get_ref<const std::string&>();
    }
    documents.push_back(trimmed(text));
  }
  ordered_json row = row_of(id_field(source, "_id"), std::move(documents), source);
  if (source.contains("answer")) row["questions"][0]["answers"] = {text_field(source, "answer")};
  return row;
}

ordered_json musique_row(const ordered_json& source, int64_t) {
  std::vector<std::string> documents;
  for (const ordered_json& paragraph : list_field(source, "paragraphs"))
    documents.push_back(
        trimmed(text_field(paragraph, "title") + "\n" + text_field(paragraph, "paragraph_text")));
  ordered_json row = row_of(id_field(source, "id"), std::move(documents), source);
  if (!source.contains("answer")) return row;
  ordered_json& answers = row["questions"][0]["answers"] = ordered_json::array();
  const auto answerable = source.find("answerable");
  if (answerable != source.end() && answerable->is_boolean() && !answerable->get<bool>()) return row;
  answers.push_back(text_field(source, "answer"));
  if (source.contains("answer_aliases"))
    for (const ordered_json& alias : list_field(source, "answer_aliases")) {
      if (!alias.is_string()) reject("an entry of \"answer_aliases\" is not text");
      answers.push_back(alias);
    }
  return row;
}

bool is_list(const std::string& path) {
  LineReader lines(path);
  while (const auto line = lines.next()) {
    const size_t first = line->text.find_first_not_of(" \t\r");
    if (line->too_long || first != std::string_view::npos) return line->too_long || line->text[first] == '[';
  }
  return false;
}

}  // namespace

std::unique_ptr<DatasetReader> open_hotpotqa(const DatasetPlace& at) {
  if (!is_list(at.path))
    return json_lines_reader(at.path, "HotpotQA", {"_id", "question", "context"}, hotpot_row);
  ordered_json file = read_json_dataset(at.path);
  std::vector<WholeEntry> entries;
  bool found = false;
  if (file.is_array())
    for (const ordered_json& entry : file) {
      found = found || has_list(entry, "context");
      entries.push_back({fmt::format("entry {}", entries.size() + 1), {}, &entry, {}});
    }
  if (!found) refuse("{}: this is not a HotpotQA file: it has no entry with a \"context\" list", at.path);
  return whole_file_reader(at.path, std::move(file), std::move(entries),
                           [](const WholeEntry& entry) { return hotpot_row(*entry.value, 0); });
}

std::unique_ptr<DatasetReader> open_musique(const DatasetPlace& at) {
  return json_lines_reader(at.path, "MuSiQue", {"id", "question", "paragraphs"}, musique_row);
}

}  // namespace sheaf
