#include "core/task/record_row.h"

#include <algorithm>
#include <functional>

#include "core/task/find_text.h"

namespace sheaf {
namespace {

using Texts = std::vector<std::string>;
using Scores = std::vector<std::vector<double>>;

/// One answer may hold those to several questions; then its score is theirs.
double score_of(const std::vector<double>& scores, size_t question) {
  return scores.empty() ? 0 : scores[std::min(question, scores.size() - 1)];
}

/// The part with the best answer to a question: of those that found one, or the first.
size_t best_part(const Scores& scores, size_t question,
                 const std::function<const RowAnswer&(size_t part)>& answer) {
  size_t best = 0;
  bool any = false;
  for (size_t part = 0; part < scores.size(); ++part) {
    if (!is_found(answer(part).value)) continue;
    if (any && score_of(scores[part], question) <= score_of(scores[best], question)) continue;
    best = part;
    any = true;
  }
  return best;
}

/// Null is what all parts say, so it is as sure as the least sure of them. A bias acts on each part by
/// itself, so there is none from which on the whole is null.
void join_confidence(RowAnswer& best, size_t parts,
                     const std::function<const RowAnswer&(size_t part)>& answer) {
  best.null_margin.reset();
  if (is_found(best.value)) return;
  for (size_t part = 0; part < parts; ++part)
    best.confidence = std::min(best.confidence, answer(part).confidence);
}

ExtractedValues merge_values(const std::vector<const ExtractedValues*>& parts, const Scores& scores) {
  ExtractedValues merged = *parts[0];
  for (size_t i = 0; i < merged.values.size(); ++i) {
    const auto answer = [&](size_t part) -> const RowAnswer& { return parts[part]->values[i].answer; };
    RowAnswer& best = merged.values[i].answer = answer(best_part(scores, i, answer));
    join_confidence(best, parts.size(), answer);
    auto* joined = std::get_if<Texts>(&best.value);
    if (!joined) continue;
    joined->clear();
    for (size_t part = 0; part < parts.size(); ++part)
      if (const auto* list = std::get_if<Texts>(&answer(part).value))
        for (const std::string& text : *list)
          if (std::find(joined->begin(), joined->end(), text) == joined->end()) joined->push_back(text);
  }
  for (size_t part = 1; part < parts.size(); ++part) {
    if (merged.logprob) *merged.logprob += parts[part]->logprob.value_or(0);
    if (merged.raw) *merged.raw += "\n" + parts[part]->raw.value_or("");
  }
  return merged;
}

/// What each row holds, which is of one kind in all of them.
template <class Content>
std::vector<const Content*> contents(const std::vector<Row>& rows) {
  std::vector<const Content*> all;
  all.reserve(rows.size());
  for (const Row& row : rows) all.push_back(&std::get<Content>(row.content));
  return all;
}

}  // namespace

Row merge_part_rows(const std::vector<Row>& rows, const Scores& scores) {
  Row merged = rows[0];
  if (std::holds_alternative<ExtractedValues>(merged.content)) {
    merged.content = merge_values(contents<ExtractedValues>(rows), scores);
  } else if (auto* answers = std::get_if<std::vector<QuestionAnswer>>(&merged.content)) {
    const auto parts = contents<std::vector<QuestionAnswer>>(rows);
    for (size_t i = 0; i < answers->size(); ++i) {
      const auto answer = [&](size_t part) -> const RowAnswer& { return (*parts[part])[i].answer; };
      (*answers)[i].answer = answer(best_part(scores, i, answer));
      join_confidence((*answers)[i].answer, parts.size(), answer);
    }
  } else {
    const auto parts = contents<RowAnswer>(rows);
    const auto answer = [&](size_t part) -> const RowAnswer& { return *parts[part]; };
    RowAnswer best = answer(best_part(scores, 0, answer));
    join_confidence(best, parts.size(), answer);
    merged.content = std::move(best);
  }
  return merged;
}

Row record_row(const Task& task, const Record& record, const Outcome& outcome, const Job::Output& output) {
  Row row;
  const auto parts = static_cast<size_t>(outcome.parts);
  if (parts == 1) {
    row = task.row(record, outcome.answers);
  } else {
    std::vector<Row> rows;
    Scores scores(parts);
    const size_t questions = outcome.answers.size() / parts;
    for (size_t part = 0; part < parts; ++part) {
      const auto first = outcome.answers.begin() + static_cast<ptrdiff_t>(part * questions);
      const std::vector<Answer> answers(first, first + static_cast<ptrdiff_t>(questions));
      for (const Answer& answer : answers)
        scores[part].push_back(answer.logprob / static_cast<double>(answer.tokens.size() + 1));
      rows.push_back(task.row(record, answers));
    }
    row = merge_part_rows(rows, scores);
    row.parts = outcome.parts;
  }
  row.cut_tokens = outcome.cut_tokens;
  const bool batch = output.format == OutputFormat::openai_batch;
  if (output.tokens || batch) {
    int64_t tokens = 0;
    for (const Answer& answer : outcome.answers) tokens += static_cast<int64_t>(answer.tokens.size());
    if (output.tokens) row.document_tokens = outcome.document_tokens;
    if (batch) row.prompt_tokens = outcome.prompt_tokens;
    row.answer_tokens = tokens;
  }
  if (output.timing) row.seconds = outcome.seconds;
  if (output.spans) add_spans(record, row);
  row.kept = record.kept;
  return row;
}

}  // namespace sheaf
