#include "core/task/record_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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
size_t best_part(const std::vector<const RowAnswer*>& parts, const Scores& scores, size_t question) {
  size_t best = 0;
  bool any = false;
  for (size_t part = 0; part < parts.size(); ++part) {
    if (!is_found(parts[part]->value)) continue;
    if (any && score_of(scores[part], question) <= score_of(scores[best], question)) continue;
    best = part;
    any = true;
  }
  return best;
}

/// Null is what all parts say, so it is as sure as the least sure of them. A bias acts on each part by
/// itself, so there is none from which on the whole is null.
void join_confidence(const std::vector<const RowAnswer*>& parts, RowAnswer& best) {
  best.null_margin.reset();
  if (is_found(best.value)) return;
  for (const RowAnswer* part : parts) best.confidence = std::min(best.confidence, part->confidence);
}

/// Whether two entries may be one: what both have is the same, and there is something that both have.
bool is_same_entry(const RowObject& one, const RowObject& other) {
  bool shared = false;
  for (size_t i = 0; i < one.values.size() && i < other.values.size(); ++i) {
    const RowValue &a = one.values[i].answer.value, &b = other.values[i].answer.value;
    if (!is_found(a) || !is_found(b)) continue;
    if (is_nested(a) || is_nested(b)) continue;
    if (a != b) return false;
    shared = true;
  }
  return shared;
}

void join_nested(const RowAnswer& from, RowAnswer& to);

/// Fills in what one object has and the other does not.
void join_objects(const RowObject& from, RowObject& to) {
  for (size_t i = 0; i < to.values.size() && i < from.values.size(); ++i) {
    RowAnswer& own = to.values[i].answer;
    const RowAnswer& other = from.values[i].answer;
    if (!is_found(own.value) && is_found(other.value))
      own = other;
    else
      join_nested(other, own);
  }
}

/// The entries of another part that are not there yet, and what it knows of the others.
void join_nested(const RowAnswer& from, RowAnswer& to) {
  if (const auto* object = std::get_if<RowObject>(&from.value))
    if (auto* own = std::get_if<RowObject>(&to.value)) join_objects(*object, *own);
  const auto* list = std::get_if<std::vector<RowObject>>(&from.value);
  auto* own = std::get_if<std::vector<RowObject>>(&to.value);
  if (!list || !own) return;
  for (const RowObject& entry : *list) {
    const auto same =
        std::ranges::find_if(*own, [&](const auto& each) { return is_same_entry(entry, each); });
    same == own->end() ? own->push_back(entry) : join_objects(entry, *same);
  }
}

/// The texts of all parts, each once.
void join_lists(const std::vector<const RowAnswer*>& parts, Texts& joined) {
  joined.clear();
  for (const RowAnswer* part : parts)
    if (const auto* list = std::get_if<Texts>(&part->value))
      for (const std::string& text : *list)
        if (std::ranges::find(joined, text) == joined.end()) joined.push_back(text);
}

/// One answer from those of the parts, not counting parts without one. `question`: the first that it is
/// about; becomes the one behind it.
RowAnswer merge_parts(const std::vector<const RowAnswer*>& parts, const Scores& scores, size_t& question) {
  const auto object = std::ranges::find_if(
      parts, [](const RowAnswer* part) { return std::holds_alternative<RowObject>(part->value); });
  if (object != parts.end()) {  // whose fields have questions of their own
    RowAnswer merged = **object;
    auto& values = std::get<RowObject>(merged.value).values;
    for (size_t i = 0; i < values.size(); ++i) {
      const RowAnswer none;
      std::vector<const RowAnswer*> fields;
      for (const RowAnswer* part : parts) {
        const auto* own = std::get_if<RowObject>(&part->value);
        fields.push_back(own ? &own->values[i].answer : &none);
      }
      values[i].answer = merge_parts(fields, scores, question);
    }
    return merged;
  }
  const size_t chosen = best_part(parts, scores, question++);
  RowAnswer best = *parts[chosen];
  join_confidence(parts, best);
  if (auto* list = std::get_if<Texts>(&best.value)) join_lists(parts, *list);
  for (const RowAnswer* part : parts)
    if (part != parts[chosen]) join_nested(*part, best);
  return best;
}

}  // namespace

std::vector<RowAnswer*> answers_of(RowContent& content) {
  std::vector<RowAnswer*> all;
  if (auto* extracted = std::get_if<ExtractedValues>(&content))
    for (AttributeValue& value : extracted->values) all.push_back(&value.answer);
  else if (auto* answers = std::get_if<std::vector<QuestionAnswer>>(&content))
    for (QuestionAnswer& each : *answers) all.push_back(&each.answer);
  else
    all.push_back(&std::get<RowAnswer>(content));
  return all;
}

Row merge_part_rows(std::vector<Row> rows, const Scores& scores) {
  Row merged = rows[0];
  const std::vector<RowAnswer*> answers = answers_of(merged.content);
  std::vector<std::vector<RowAnswer*>> all;
  for (Row& row : rows) all.push_back(answers_of(row.content));
  size_t question = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    std::vector<const RowAnswer*> parts;
    for (const std::vector<RowAnswer*>& part : all) parts.push_back(part[i]);
    *answers[i] = merge_parts(parts, scores, question);
  }
  if (auto* whole = std::get_if<ExtractedValues>(&merged.content))
    for (size_t part = 1; part < rows.size(); ++part) {
      const auto& other = std::get<ExtractedValues>(rows[part].content);
      if (whole->logprob) *whole->logprob += other.logprob.value_or(0);
      if (whole->raw) *whole->raw += "\n" + other.raw.value_or("");
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
    row = merge_part_rows(std::move(rows), scores);
    row.parts = outcome.parts;
  }
  row.cut_tokens = outcome.cut_tokens;
  const bool batch = output.format == OutputFormat::openai_batch;
  if (output.tokens || batch) {
    int64_t tokens = 0;
    for (const Answer& answer : outcome.answers) {
      tokens += std::ssize(answer.tokens);
      visit_inner(answer, [&](const Answer& inner) { tokens += std::ssize(inner.tokens); });
    }
    if (output.tokens) row.document_tokens = outcome.document_tokens;
    if (batch) row.prompt_tokens = outcome.prompt_tokens;
    row.answer_tokens = tokens;
  }
  if (output.timing) row.seconds = outcome.seconds;
  if (output.spans) add_spans(record, task.attributes(record), row);
  row.kept = record.kept;
  return row;
}

std::shared_ptr<const Watch> make_watch(const Job& job, const Tokens& null) {
  if (!job.output.confidence && job.method.null_bias == 0) return nullptr;
  return std::make_shared<Watch>(Watch{null, job.method.null_bias});
}

std::shared_ptr<const AnswerSearch> make_search(const Job& job) {
  if (job.method.search == SpanSearch::greedy) return nullptr;
  return std::make_shared<AnswerSearch>(AnswerSearch{job.method.length_norm, job.method.search_tokens});
}

void note_search(const Answer& answer, RowAnswer& read) {
  if (answer.ending == Ending::searched && read.note.empty())
    read.note = "the search ended at method.search_tokens; another text may be likelier";
}

double confidence_of(const RowAnswer& read, const Answer& answer, const Tokens& null) {
  const double top = std::max({answer.logprob, answer.null_logprob, answer.alternative});
  if (!std::isfinite(top)) return 0;
  const double decoded = std::exp(answer.logprob - top), of_null = std::exp(answer.null_logprob - top),
               other = std::exp(answer.alternative - top);
  // An answer that begins as null is a part of null's probability.
  const bool in_null = !null.empty() && answer.tokens.size() >= null.size() &&
                       std::equal(null.begin(), null.end(), answer.tokens.begin());
  const double all = (in_null ? 0 : decoded) + of_null + other;
  if (is_found(read.value)) return decoded / all;
  // Other words for null speak for it; an answer that could not be read does not.
  const bool also_null = !in_null && read.note.empty();
  return ((also_null ? decoded : 0) + of_null) / all;
}

bool is_row_key(std::string_view name) {
  static constexpr std::array<std::string_view, 26> kKeys = {
      "samples",    "citations",       "trace",         "sources",     "id",         "category",     "values",
      "notes",      "logprobs",        "raw",           "spans",       "confidence", "null_margins", "answer",
      "answers",    "option",          "note",          "null_margin", "finish",     "logprob",      "parts",
      "cut_tokens", "document_tokens", "answer_tokens", "seconds",     "reasoning"};
  return std::ranges::find(kKeys, name) != kKeys.end();
}

const char* finish_name(Finish finish) {
  return finish == Finish::length ? "length" : finish == Finish::error ? "error" : "stop";
}

bool RowObject::operator==(const RowObject& other) const {
  return values == other.values;
}

bool is_found(const RowValue& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return !list->empty();
  if (const auto* list = std::get_if<std::vector<RowObject>>(&value)) return !list->empty();
  if (const auto* object = std::get_if<RowObject>(&value))
    return std::ranges::any_of(object->values, [](const auto& each) { return is_found(each.answer.value); });
  return !std::holds_alternative<std::nullptr_t>(value);
}

bool is_nested(const RowValue& value) {
  return std::holds_alternative<RowObject>(value) || std::holds_alternative<std::vector<RowObject>>(value);
}

nlohmann::ordered_json value_json(const RowValue& value) {
  const auto of_object = [](const RowObject& object) {
    auto out = nlohmann::ordered_json::object();
    for (const AttributeValue& each : object.values) out[each.name] = value_json(each.answer.value);
    return out;
  };
  if (const auto* object = std::get_if<RowObject>(&value)) return of_object(*object);
  if (const auto* list = std::get_if<std::vector<RowObject>>(&value)) {
    auto out = nlohmann::ordered_json::array();
    for (const RowObject& entry : *list) out.push_back(of_object(entry));
    return out;
  }
  const auto plain = [](const auto& held) -> nlohmann::ordered_json {
    if constexpr (std::is_constructible_v<nlohmann::ordered_json, decltype(held)>)
      return nlohmann::ordered_json(held);
    else
      return nullptr;
  };
  return std::visit(plain, value);
}

RowValue row_number(const nlohmann::json& number) {
  if (number.is_number_float()) return number.get<double>();
  constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (number.is_number_unsigned() && number.get<uint64_t>() > most) return number.get<uint64_t>();
  return number.get<int64_t>();
}

}  // namespace sheaf
