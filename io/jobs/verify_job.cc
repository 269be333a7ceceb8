#include "io/jobs/verify_job.h"

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/plan/pipeline.h"
#include "core/task/asked_value.h"
#include "core/task/record_row.h"
#include "core/task/samples.h"
#include "core/text/utf8.h"
#include "io/jobs/engines.h"

namespace sheaf {
namespace {

constexpr size_t kShown = 5;  // differences that are kept

/// An answer as it is compared and as it is shown.
struct Compared {
  std::string question;
  Tokens tokens;
  Ending ending = Ending::length;
  RowValue value;
  std::string text;
};

struct DecodedRecord {
  nlohmann::json id;
  std::vector<Compared> answers;
};

struct DecodedJob {
  std::map<std::pair<std::string, int64_t>, DecodedRecord> records;  // by file and row
  int64_t rejects = 0;
  bool kept_rounded = false;  ///< keys and values that a later run reads in 8 bits
  bool finished = false;
};

std::string value_text(const RowValue& value) {
  return value_json(value).dump();
}

/// `place`: of the answer among those of the record, to whose questions there may be several samples, and
/// which may be asked in parts.
std::string question_name(const OpenedJob& opened, const Record& record, size_t place) {
  const Job& job = opened.job();
  const size_t question = place / static_cast<size_t>(samples_of(job, record));
  if (job.task.kind == TaskKind::ask) return record.questions[question % record.questions.size()].text;
  if (job.task.kind == TaskKind::chat) return record.dialog.turns.back();
  if (find_method(job.method.name).wording.answers != AnswerForm::each) return "the whole object";
  const std::vector<AskedValue> values = asked_values(opened.schema().of(record.category).attributes);
  return values[question % values.size()].path;
}

/// Answers about the entries of a list, by their paths.
void add_inner(const OpenedJob& opened, const AskedValue& list, const std::string& path, const Answer& answer,
               std::vector<Compared>& all) {
  for (const InnerAnswer& each : answer.inner) {
    const AskedValue& field = list.fields.at(static_cast<size_t>(each.field));
    const std::string own = fmt::format("{}[{}]{}", path, each.entry, field.path.substr(list.path.size()));
    all.push_back({own,
                   each.answer.tokens,
                   each.answer.ending,
                   {},
                   valid_utf8(opened.tokenizer().decode(each.answer.tokens))});
    add_inner(opened, field, own, each.answer, all);
  }
}

std::vector<Compared> by_token(const OpenedJob& opened, const Record& record,
                               const std::vector<Answer>& answers) {
  std::vector<Compared> all;
  for (size_t i = 0; i < answers.size(); ++i)
    all.push_back({question_name(opened, record, i),
                   answers[i].tokens,
                   answers[i].ending,
                   {},
                   valid_utf8(opened.tokenizer().decode(answers[i].tokens))});
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].inner.empty()) continue;
    const std::vector<AskedValue> values = asked_values(opened.schema().of(record.category).attributes);
    const AskedValue& list = values[i % values.size()];
    add_inner(opened, list, list.path, answers[i], all);
  }
  return all;
}

std::vector<Compared> by_value(const Record& record, const Row& row) {
  std::vector<Compared> all;
  const auto add = [&](const std::string& question, const RowAnswer& answer) {
    all.push_back({question, {}, {}, answer.value, value_text(answer.value)});
  };
  if (const auto* values = std::get_if<ExtractedValues>(&row.content)) {
    for (const AttributeValue& each : values->values) add(each.name, each.answer);
  } else if (const auto* answers = std::get_if<std::vector<QuestionAnswer>>(&row.content)) {
    for (size_t i = 0; i < answers->size(); ++i) add(record.questions[i].text, (*answers)[i].answer);
  } else {
    add(record.questions.empty() ? "the answer" : record.questions[0].text, std::get<RowAnswer>(row.content));
  }
  return all;
}

DecodedJob decode(OpenedJob& opened, const Job& job, const Builder& builder, bool values,
                  std::string_view what, Engines::Use::Store store, RunListener& listener) {
  Engines made(opened, {.speculate = job.method.speculate.any(), .store = store});
  const auto task = opened.task(job);
  Planner planner(builder, opened.limits(made.pointers()));
  const auto corpus = opened.corpus();
  Pipeline pipeline(*corpus, *task, planner, made.pointers(), job.engine.window);
  listener.started(std::nullopt);
  pipeline.on_step = [&](size_t, const EngineStats& stats) {
    listener.step({pipeline.stats().decoded, pipeline.stats().rejects, stats.tokens(), 0});
  };
  DecodedJob decoded;
  decoded.finished = pipeline.run(
      [&](const Record& record, const Outcome& outcome) {
        decoded.records.emplace(
            std::pair(record.place.file, record.place.row),
            DecodedRecord{record.id, values ? by_value(record, record_row(*task, record, outcome, job.output))
                                            : by_token(opened, record, outcome.answers)});
      },
      [&](const Reject& reject) { decoded.rejects += reject.records; });
  listener.ended();
  const EngineStats stats = pipeline.engine_stats();
  if (decoded.finished)
    listener.heading(fmt::format(
        "{}: {} answers, {} tokens computed{} in {:.1f} s", what, stats.answers, stats.tokens(),
        stats.read_tokens > 0 ? fmt::format(", {} read", stats.read_tokens) : "", stats.step_seconds));
  if (made.store() && made.store()->form() == KvForm::rounded) {
    made.store()->flush();
    decoded.kept_rounded = made.store()->use().kept_tokens > 0;
  }
  return decoded;
}

void compare(const DecodedRecord& one, const DecodedRecord& other, VerifyEnd& end) {
  ++end.records;
  const size_t both = std::min(one.answers.size(), other.answers.size());
  // Lists with different anchors have different entries to ask about.
  for (size_t q = both; q < std::max(one.answers.size(), other.answers.size()); ++q) {
    ++end.answers;
    const bool more = q < one.answers.size();
    const Compared& only = (more ? one : other).answers[q];
    if (end.differences.size() < kShown)
      end.differences.push_back({one.id, only.question, more ? only.text : "", more ? "" : only.text});
  }
  for (size_t q = 0; q < both; ++q) {
    ++end.answers;
    const Compared &a = one.answers[q], &b = other.answers[q];
    if (a.tokens == b.tokens && a.ending == b.ending && a.value == b.value)
      ++end.same;
    else if (end.differences.size() < kShown)
      end.differences.push_back({one.id, a.question, a.text, b.text});
  }
}

}  // namespace

VerifyEnd verify_job(OpenedJob& opened, RunListener& listener) {
  const Job& job = opened.job();
  const Method& method = find_method(job.method.name);
  const bool values = !method.verified_as.empty();
  Job alone = job;
  // Joint documents stand in the text of the prompt, so the prompt for one question alone is worded without
  // them.
  alone.method.stacking = Stacking::isolated;
  alone.method.speculate = {};
  if (values) alone.method.name = method.verified_as;
  VerifyEnd end;
  using Use = Engines::Use;
  const auto decode_packed = [&] {
    return decode(opened, job, make_builder(job.method), values, method.name, Use::Store::used, listener);
  };
  DecodedJob packed = decode_packed();
  // The run that keeps keys and values in 8 bits uses them as it computed them. What they cost shows in the
  // next one.
  if (packed.finished && packed.kept_rounded) packed = decode_packed();
  if (!packed.finished) return end;
  const DecodedJob separate = decode(opened, alone, make_separate_builder(alone.method), values,
                                     method.baseline, Use::Store::none, listener);
  if (!separate.finished) return end;
  end.finished = true;
  for (const auto& [place, one] : packed.records)
    if (const auto other = separate.records.find(place); other != separate.records.end())
      compare(one, other->second, end);
  end.rejects = std::max(packed.rejects, separate.rejects);
  if (end.answers == 0)
    refuse("nothing to compare: no answer was decoded both ways ({} records rejected); `sheaf run` shows why",
           end.rejects);
  return end;
}

}  // namespace sheaf
