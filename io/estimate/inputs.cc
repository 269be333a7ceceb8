#include "io/estimate/inputs.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/model/shapes.h"
#include "io/corpus/example_file.h"
#include "io/files/job_file.h"
#include "io/jobs/bench.h"
#include "io/jobs/opened_job.h"
#include "io/model/model_config.h"
#include "io/model/model_files.h"

namespace sheaf {

DescribedModel describe_for_estimate(const std::string& model) {
  const FileConfig found = read_model_config(model);
  return {found.config, found.stored_bits};
}

EstimateInputs::EstimateInputs(const EstimateAsked& asked) {
  const bool lengths = !asked.workload.empty() || asked.statistics.document > 0;
  if (!asked.job.empty())
    job_ = read_job(asked.job, asked.root ? asked.root : read_job_yaml(asked.job),
                    set_options(asked.overrides), false);
  else
    job_.method = BenchPacking().method;
  if (!asked.dtype.empty()) job_.model.dtype = read_word<Precision>(asked.dtype).value();
  if (asked.packed) job_.model.weights = WeightStorage::packed;
  packing_ = {job_.engine.window, job_.input.too_long};
  if (!asked.method.empty()) job_.method.name = asked.method;
  model_name_ = asked.model.empty() ? job_.model.path : asked.model;
  if (asked.job.empty() && (model_name_.empty() || !lengths))
    refuse(
        "estimate: give a job file, or --model (such as qwen3-8b) with --document-tokens (and --questions, "
        "--records) or with --workload");
  model_ = describe_for_estimate(model_name_);
  if (job_.model.context > 0) use_context(model_.config, job_.model.context, "model.context");
  if (!job_.task.schema.empty()) schema_ = read_schema(job_);
  turns_ = read_examples(job_, schema_, model_.config.context, notes_);
  free_spans(schema_);
  job_.task.free_spans = true;
  if (!job_.engine.kv_store.path.empty())
    notes_.push_back(fmt::format(
        "every token is counted as computed: an estimate does not look into the store of keys and values "
        "{}; tokens that are in it cost less",
        job_.engine.kv_store.path));
  if (!asked.workload.empty())
    use_workload(asked);
  else if (asked.statistics.document > 0)
    make_up(asked);
  else
    read_corpus(asked);
  sampled_.plan = [this](const EstimateCase& each, const MemoryPlan& memory, int64_t records) {
    const std::vector<ReadyRecord>& sample = worded(each.method).records;
    if (records > std::ssize(sample))
      return plan_records(repeat_records(sample, records, each.config.vocab), each, memory, packing_);
    return plan_records(std::span(sample).first(static_cast<size_t>(records)), each, memory, packing_);
  };
  sampled_.error = [this](const EstimateCase& each) {
    return sampling_error(worded(each.method).records, sampled_.whole, each, packing_,
                          sampled_.answer_tokens(each.method));
  };
}

const EstimateInputs::WordedRows& EstimateInputs::worded(const Job::Method& method) const {
  const std::lock_guard lock(wording_);
  std::unique_ptr<WordedRows>& found = worded_[{find_method(method.name).wording, method.stacking}];
  if (found) return *found;
  auto made = std::make_unique<WordedRows>();
  made->job = job_;
  made->job.method = method;
  if (examples_) add_examples(made->job);
  if (tokenizer_) made->task = make_task(*tokenizer_, chat_, made->job, schema_, &turns_);
  if (trusted_ && trust_trouble(method).empty())
    made->task = make_trusting_task(std::move(made->task), *trusted_);
  made->records = make_records_(method, made->task.get());
  if (find_method(method.name).wording.answers == AnswerForm::list)
    for (ReadyRecord& record : made->records) record.parts = ask_together(std::move(record.parts));
  found = std::move(made);
  return *found;
}

void EstimateInputs::open_tokenizer(const EstimateAsked& asked) {
  std::string reason = "a shape has no tokenizer";
  for (const std::string& place : {model_name_, job_.model.path}) {
    if (is_shape(place)) continue;
    try {
      LoadedTokenizer loaded = load_tokenizer(place);
      ChatChoice choice = choose_chat(job_.model, loaded.chat_template, *loaded.tokenizer);
      chat_ = std::move(choice.chat);
      tokenizer_ = std::move(loaded.tokenizer);
      notes_.push_back(fmt::format("tokens counted with the tokenizer of {}", place));
      if (!choice.warning.empty()) notes_.push_back(std::move(choice.warning));
      return;
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  tokenizer_ = std::make_unique<ByteTokenizer>(asked.tokens_per_byte.value_or(0.25), model_.config.vocab);
  chat_ = job_.model.chat == "auto" ? chat_template(chat_template_names().front())
                                    : choose_chat(job_.model, {}, *tokenizer_).chat;
  notes_.push_back(
      fmt::format("tokens guessed from bytes, {}, because there is no tokenizer ({}); set --tokens-per-byte "
                  "to change the guess",
                  tokenizer_->describe(), reason));
}

void EstimateInputs::assume_answers(const EstimateAsked& asked) {
  const bool given = asked.statistics.answer.has_value();
  const double usual = job_.task.kind == TaskKind::chat ? 0 : kUsualAnswer;
  const auto wanted = static_cast<int32_t>(std::lround(asked.statistics.answer.value_or(usual)));
  const int32_t answer = std::min(wanted, job_.method.max_value_tokens);
  const auto ended = std::ranges::count_if(records_, [&](const Record& record) {
    return job_.task.kind == TaskKind::chat && record.max_tokens > 0 && record.max_tokens < answer;
  });
  if (ended > 0)
    notes_.push_back(fmt::format(
        "free answers are assumed to have {} tokens; {} of the {} sampled records have a lower max_tokens",
        answer, ended, records_.size()));
  else if (only_options())
    notes_.emplace_back("all answers are options, so their lengths are known");
  else if (answer < wanted)
    notes_.push_back(fmt::format("free answers end after {} token{} (method.max_value_tokens){}", answer,
                                 answer == 1 ? "" : "s", given ? fmt::format(", not {}", wanted) : ""));
  else if (answer == 0)
    notes_.emplace_back("answers are assumed to be as long as allowed; set --answer-tokens to their length");
  else
    notes_.push_back(fmt::format("free answers are assumed to have {} token{}{}", answer,
                                 answer == 1 ? "" : "s",
                                 given ? "" : "; set --answer-tokens to their length"));
  if (job_.method.search == SpanSearch::likeliest)
    notes_.push_back(
        fmt::format("the search for the likeliest spans is not counted: up to {} more tokens for each "
                    "(method.search_tokens)",
                    job_.method.search_tokens));
  sampled_.answer_tokens = [this, answer](const Job::Method& method) {
    const AnswerForm answers = find_method(method.name).wording.answers;
    return answers == AnswerForm::each ||
                   (answers == AnswerForm::object && job_.task.kind != TaskKind::extract)
               ? answer
               : together_tokens(answer, answers);
  };
}

/// Every question of the sample is one of multiple choice.
bool EstimateInputs::only_options() const {
  return job_.task.kind == TaskKind::ask && !records_.empty() &&
         std::ranges::all_of(records_, [](const Record& record) {
           return std::ranges::none_of(record.questions,
                                       [](const Question& each) { return each.options.empty(); });
         });
}

/// Mean tokens of an answer that holds everything that is asked of a record, keys or numbers included.
int32_t EstimateInputs::together_tokens(int32_t value_tokens, AnswerForm answers) const {
  constexpr double kNumber = 3;  // tokens of "12. " and a line's end
  Job::Method method = job_.method;
  method.name = "separate";
  const std::vector<ReadyRecord>& records = worded(method).records;
  double tokens = 0, looked_at = 0;
  for (const ReadyRecord& record : std::span(records).first(std::min<size_t>(records.size(), 64))) {
    if (!record.refused.empty()) continue;
    looked_at += 1;
    for (const QuestionParts& question : record.parts.questions()) {
      tokens += answers == AnswerForm::list ? kNumber : static_cast<double>(question.tokens.size());
      if (!question.list()) {
        tokens += value_tokens;
        continue;
      }
      double options = 0;
      for (const Tokens& answer : question.list()->answers()) options += static_cast<double>(answer.size());
      tokens += options / static_cast<double>(question.list()->answers().size());
    }
  }
  return std::max(1, static_cast<int32_t>(std::lround(tokens / std::max(1.0, looked_at))));
}

void EstimateInputs::use_workload(const EstimateAsked& asked) {
  make_records_ = [workload = read_workload(asked.workload, find_method(job_.method.name).wording.skeleton)](
                      const Job::Method&, Task*) { return workload_rows(workload); };
  notes_.push_back("records of " + asked.workload);
  sampled_.sample = static_cast<int64_t>(worded(job_.method).records.size());
  sampled_.whole = asked.records.value_or(sampled_.sample);
}

}  // namespace sheaf
