#include <array>

#include "io/datasets/readers.h"

// LOFT's questions for retrieval-augmented generation: lines {"qid", "query_text", "answers": [texts]}; what
// they are about is the dataset's own collection, corpus.jsonl, which the job names as input.corpus.
// LongBench: lines {"_id", "input", "context", "answers": [texts], "dataset", "language", "all_classes"}.

namespace sheaf {
namespace {

/// What the sets without a question of their own ask for.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kTasks = {
    {{"gov_report", "Write a one-page summary of the report."},
     {"multi_news", "Write a one-page summary of all the news."},
     {"passage_count",
      "How many different paragraphs are there, after removing duplicates? Answer with the number only."},
     {"lcc", "Next line of code:"},
     {"repobench-p", "Next line of code:"}}};

std::vector<std::string> texts_of(const ordered_json& list, const char* what) {
  std::vector<std::string> texts;
  for (const ordered_json& text : list) {
    if (!text.is_string()) reject("an entry of \"{}\" is {}, not text", what, kind_of(text));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

ordered_json loft_row(const ordered_json& source, int64_t) {
  const ordered_json id = id_field(source, "qid");
  if (source.contains("query_text") && source["query_text"].is_array())
    reject("the question has several turns, which are not read; name a set with one turn");
  ordered_json question{{"id", id}, {"question", trimmed(text_field(source, "query_text"))}};
  if (source.contains("answers")) question["answers"] = texts_of(list_field(source, "answers"), "answers");
  return {{"id", id}, {"context", ""}, {"questions", ordered_json::array({question})}};
}

ordered_json longbench_row(const ordered_json& source, int64_t) {
  const ordered_json id = id_field(source, "_id");
  const std::string set = text_field(source, "dataset");
  if (source.contains("language") && source["language"] == "zh")
    reject("the set {} is Chinese; only LongBench's English sets and its code are read", set);
  std::string text = trimmed(text_field(source, "input"));
  for (const auto& [name, task] : kTasks)
    if (name == set) text += (text.empty() ? "" : "\n") + std::string(task);
  if (text.empty()) reject("the entry of the set {} has no question", set);
  ordered_json extra{{"level", set}};
  if (has_list(source, "all_classes")) extra["classes"] = texts_of(source["all_classes"], "all_classes");
  ordered_json question{{"id", id}, {"question", text}};
  if (source.contains("answers")) question["answers"] = texts_of(list_field(source, "answers"), "answers");
  question["extra"] = extra;
  return {
      {"id", id}, {"context", text_field(source, "context")}, {"questions", ordered_json::array({question})}};
}

}  // namespace

std::unique_ptr<DatasetReader> open_loft(const DatasetPlace& at) {
  return json_lines_reader(at.path, "LOFT", {"qid", "query_text"}, loft_row);
}

std::unique_ptr<DatasetReader> open_longbench(const DatasetPlace& at) {
  return json_lines_reader(at.path, "LongBench", {"_id", "input", "context", "dataset"}, longbench_row);
}

}  // namespace sheaf
