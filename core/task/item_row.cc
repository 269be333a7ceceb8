#include "core/task/item_row.h"

#include <algorithm>
#include <functional>

#include "core/task/value.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<ordered_json>;
using Scores = std::vector<std::vector<double>>;

/// The part with the best answer to a question: of those that found one, or the first.
size_t best_part(const Scores& scores, size_t question, const std::function<bool(size_t part)>& found) {
  size_t best = 0;
  bool any = false;
  for (size_t part = 0; part < scores.size(); ++part) {
    if (!found(part) || (any && scores[part][question] <= scores[best][question])) continue;
    best = part;
    any = true;
  }
  return best;
}

void copy_member(const ordered_json& from, ordered_json& to, const char* object, const std::string& key) {
  if (from.contains(object) && from[object].contains(key)) to[object][key] = from[object][key];
}

ordered_json joined_lists(const Rows& rows, const std::string& name) {
  ordered_json all = ordered_json::array();
  for (const ordered_json& row : rows) {
    const ordered_json& list = row["values"][name];
    if (!list.is_array()) continue;
    for (const ordered_json& entry : list)
      if (std::find(all.begin(), all.end(), entry) == all.end()) all.push_back(entry);
  }
  return all;
}

ordered_json merge_values(const Rows& rows, const Scores& scores) {
  ordered_json merged{{"id", rows[0]["id"]}, {"category", rows[0]["category"]}};
  merged["values"] = ordered_json::object();
  // One answer holds every value, and what is said of it is said once.
  const auto once = [&](const char* key) { return rows[0].contains(key) && !rows[0][key].is_object(); };
  const bool whole = scores[0].size() == 1;
  size_t question = 0;
  for (const auto& [key, _] : rows[0]["values"].items()) {
    const std::string& name = key;
    const auto found = [&](size_t part) { return is_found(rows[part]["values"][name]); };
    const size_t part = best_part(scores, whole ? 0 : question, found);
    const ordered_json& value = rows[part]["values"][name];
    merged["values"][name] = value.is_array() ? joined_lists(rows, name) : value;
    copy_member(rows[part], merged, "notes", name);
    for (const char* about : {"logprobs", "raw"})
      if (!once(about)) copy_member(rows[part], merged, about, name);
    ++question;
  }
  for (const char* key : {"logprobs", "raw"}) {
    if (!once(key)) continue;
    merged[key] = rows[0][key];
    for (size_t part = 1; part < rows.size(); ++part) {
      if (merged[key].is_number())
        merged[key] = merged[key].get<double>() + rows[part][key].get<double>();
      else
        merged[key] = merged[key].get<std::string>() + "\n" + rows[part][key].get<std::string>();
    }
  }
  return merged;
}

}  // namespace

ordered_json merge_part_rows(const Rows& rows, const Scores& scores) {
  if (rows[0].contains("values")) return merge_values(rows, scores);
  if (!rows[0].contains("answers"))
    return rows[best_part(scores, 0, [&](size_t part) { return is_found(rows[part]["answer"]); })];
  ordered_json merged{{"id", rows[0]["id"]}, {"answers", ordered_json::array()}};
  for (size_t question = 0; question < rows[0]["answers"].size(); ++question) {
    const auto answer = [&](size_t part) -> const ordered_json& { return rows[part]["answers"][question]; };
    merged["answers"].push_back(
        answer(best_part(scores, question, [&](size_t part) { return is_found(answer(part)["answer"]); })));
  }
  return merged;
}

ordered_json item_row(const Task& task, const Item& item, const Outcome& outcome, const Job::Output& output) {
  ordered_json row;
  const auto parts = static_cast<size_t>(outcome.parts);
  if (parts == 1) {
    row = task.row(item, outcome.answers);
  } else {
    Rows rows;
    Scores scores(parts);
    const size_t questions = outcome.answers.size() / parts;
    for (size_t part = 0; part < parts; ++part) {
      const auto first = outcome.answers.begin() + static_cast<ptrdiff_t>(part * questions);
      const std::vector<Answer> answers(first, first + static_cast<ptrdiff_t>(questions));
      for (const Answer& answer : answers)
        scores[part].push_back(answer.logprob / static_cast<double>(answer.tokens.size() + 1));
      rows.push_back(task.row(item, answers));
    }
    row = merge_part_rows(rows, scores);
    row["parts"] = outcome.parts;
  }
  if (outcome.cut_tokens > 0) row["cut_tokens"] = outcome.cut_tokens;
  if (output.tokens) {
    int64_t tokens = 0;
    for (const Answer& answer : outcome.answers) tokens += static_cast<int64_t>(answer.tokens.size());
    row["document_tokens"] = outcome.document_tokens;
    row["answer_tokens"] = tokens;
  }
  if (output.timing) row["seconds"] = outcome.seconds;
  return row;
}

}  // namespace sheaf
