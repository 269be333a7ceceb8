#include "app/estimate_inputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/bench_stacks.h"
#include "app/job_file.h"
#include "core/error.h"
#include "core/estimate/byte_tokenizer.h"
#include "core/model/shapes.h"
#include "core/plan/planner.h"
#include "core/tokenizer/chat_template.h"
#include "io/corpus.h"
#include "io/hf_config.h"
#include "io/model_files.h"
#include "io/yaml_reader.h"

namespace sheaf {
namespace {

constexpr int64_t kRuns = 16;  // of rows in a sample

namespace fs = std::filesystem;

constexpr int32_t kUsualAnswer = 8;

bool is_shape(const std::string& name) {
  const std::vector<std::string> names = shape_names();
  return std::ranges::find(names, name) != names.end();
}

/// The text at model.path of a job file, whether or not there is such a file.
std::string written_model(const std::string& job) {
  const YamlPtr root = read_yaml(job);
  if (root->kind != YamlNode::Kind::map) return {};
  for (const YamlNode::Entry& part : root->entries)
    if (part.key == "model" && part.value->kind == YamlNode::Kind::map)
      for (const YamlNode::Entry& entry : part.value->entries)
        if (entry.key == "path" && entry.value->kind == YamlNode::Kind::scalar) return entry.value->text;
  return {};
}

}  // namespace

ModelConfig read_model_config(const std::string& path) {
  if (is_shape(path)) return shape_by_name(path);
  if (path.ends_with(".json") && fs::is_regular_file(path)) return read_hf_config(path).config;
  if (fs::is_regular_file(fs::path(path) / "config.json"))
    return read_hf_config((fs::path(path) / "config.json").string()).config;
  if (fs::exists(path)) return load_model(path).config;
  shape_by_name(path);  // refuses, and lists the names
  return {};
}

EstimateInputs::EstimateInputs(const EstimateAsked& asked) {
  if (!asked.job.empty()) {
    open_job(asked);
  } else {
    const BenchPacking usual;
    job_.method.name = usual.method;
    job_.method.documents = usual.documents;
    job_.method.prompt_tokens = usual.prompt_tokens;
  }
  if (!asked.method.empty()) job_.method.name = asked.method;
  if (model_name_.empty()) model_name_ = asked.model;
  if (model_name_.empty()) refuse("estimate: name a job, or a model with --model");
  config_ = read_model_config(model_name_);
  if (!asked.workload.empty() || asked.statistics.document > 0)
    use_workload(asked);
  else if (!asked.job.empty())
    read_corpus(asked);
  else
    refuse("estimate: name a job, a --workload, or the rows' lengths (--document-tokens and others)");
}

void EstimateInputs::open_job(const EstimateAsked& asked) {
  const std::string written = written_model(asked.job);
  model_name_ = asked.model.empty() ? written : asked.model;
  std::vector<std::string> overrides = asked.overrides;
  // What is not read need not be there; the job file itself stands in for it.
  const std::string there = "=\"" + asked.job + "\"";
  if (!fs::exists(written) && (is_shape(model_name_) || !asked.model.empty()))
    overrides.push_back("model.path" + there);
  if (!asked.workload.empty() || asked.statistics.document > 0) {
    overrides.push_back("input.path" + there);
    overrides.emplace_back("input.format=jsonl");
  }
  job_ = read_job(asked.job, overrides);
  if (!job_.model.path.empty() && asked.model.empty() && !is_shape(written)) model_name_ = job_.model.path;
}

void EstimateInputs::open_tokenizer(const std::string& path, double tokens_per_byte) {
  std::string reason = "a shape has none";
  for (const std::string& place : {model_name_, path}) {
    if (is_shape(place) || place == job_.file) continue;
    try {
      LoadedTokenizer loaded = load_tokenizer(place);
      chat_name_ = job_.model.chat == "auto" ? detect_chat_template(loaded.chat_template, *loaded.tokenizer)
                                             : job_.model.chat;
      tokenizer_ = std::move(loaded.tokenizer);
      notes_.push_back(fmt::format("tokens by the tokenizer of {}", place));
      return;
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  tokenizer_ = std::make_unique<ByteTokenizer>(tokens_per_byte, config_.vocab);
  chat_name_ = job_.model.chat == "auto" ? chat_template_names().front() : job_.model.chat;
  notes_.push_back(fmt::format("tokens guessed from bytes, {}: no tokenizer ({}); --tokens-per-byte sets it",
                               tokenizer_->describe(), reason));
}

void EstimateInputs::read_corpus(const EstimateAsked& asked) {
  if (job_.input.path == "-") refuse("estimate: standard input cannot be sampled; name a file");
  if (!job_.task.schema.empty()) schema_ = read_schema(job_.task.schema);
  open_tokenizer(job_.model.path, asked.tokens_per_byte);
  const Schema* schema = job_.task.kind == "extract" ? &schema_ : nullptr;
  const auto corpus = open_corpus(job_, schema);
  int64_t whole = asked.rows;
  if (whole == 0) {
    const auto known = corpus->rows_expected();
    whole = known ? *known : open_corpus(job_, schema)->count_rows();
  }
  // Runs of rows from all over the corpus, as far as its length is known, put in an order in which any first
  // half is as long as the second: what the second costs more is what the rest of the corpus is taken to
  // cost.
  const bool spread = asked.rows == 0 && whole > asked.sample;
  const int64_t runs = spread ? kRuns : 1, length = std::max<int64_t>(1, asked.sample / runs);
  std::vector<std::vector<Item>> found(static_cast<size_t>(runs));
  int64_t rejects = 0, read = 0;
  for (int64_t i = 0; i < runs; ++i) {
    corpus->skip_to(spread ? i * whole / runs : 0);
    const int64_t begin = corpus->position();
    while (corpus->position() < begin + length) {
      auto row = corpus->next();
      if (!row) break;
      if (auto* item = std::get_if<Item>(&*row))
        found[static_cast<size_t>(i)].push_back(std::move(*item));
      else
        ++rejects;
    }
    read += corpus->position() - begin;
  }
  for (const size_t i : {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15})
    if (i < found.size())
      items_.insert(items_.end(), std::make_move_iterator(found[i].begin()),
                    std::make_move_iterator(found[i].end()));
  if (items_.empty()) refuse("{}: no row that can be used among the {} looked at", job_.input.path, read);
  rows_.sample = static_cast<int64_t>(items_.size());
  rows_.whole = std::max<int64_t>(1, whole * rows_.sample / std::max<int64_t>(1, read));
  const int32_t answer = asked.answer_tokens > 0
                             ? std::max(1, static_cast<int32_t>(std::lround(asked.answer_tokens)))
                             : kUsualAnswer;
  const int32_t object = schema ? object_tokens(answer) : answer;
  rows_.answer_tokens = [=](const Job::Method& method) {
    return method.name == "standard" || method.name == "prefix" ? object : answer;
  };
  if (asked.rows > 0 && asked.rows > read)
    notes_.push_back(
        "with --rows the sample is the first rows of the corpus; leave it out for rows from all over it");
  notes_.push_back(fmt::format("a sample of {} rows{}, answers of {} tokens{}", rows_.sample,
                               rejects > 0 ? fmt::format(" ({} rejects among them left out)", rejects) : "",
                               answer, schema ? fmt::format(", whole objects of {}", object) : ""));
  rows_.stacks = [this](const EstimateCase& each, const MemoryPlan& memory, int64_t rows) {
    return plan_corpus(each, memory, rows);
  };
}

/// Mean tokens of an answer that holds all of a row's keys and values.
int32_t EstimateInputs::object_tokens(int32_t value_tokens) const {
  Job job = job_;
  job.method.name = "hpd";
  const auto task = make_task({*tokenizer_, chat_template(chat_name_), job}, schema_);
  const size_t looked_at = std::min<size_t>(items_.size(), 64);
  double tokens = 0;
  for (size_t i = 0; i < looked_at; ++i) {
    const ItemParts parts = task->parts(items_[i]);
    for (const QuestionParts& question : parts.questions())
      tokens += static_cast<double>(question.tokens.size()) + value_tokens;
  }
  return std::max(1, static_cast<int32_t>(std::lround(tokens / static_cast<double>(looked_at))));
}

std::vector<Stack> EstimateInputs::plan_corpus(const EstimateCase& asked, const MemoryPlan& memory,
                                               int64_t rows) const {
  Job job = job_;
  job.method = asked.method;
  const auto task = make_task({*tokenizer_, chat_template(chat_name_), job}, schema_);
  PlanLimits limits;
  limits.context = asked.config.context;
  limits.prompt_tokens = job.method.prompt_tokens;
  limits.fits = [&](const Stack& stack) {
    int64_t pages = 0;
    for (const int32_t keys : stack.most_keys()) pages += (keys + kEstimatePageSize - 1) / kEstimatePageSize;
    return pages <= memory.pages;
  };
  Planner planner(*task, make_builder(job.method), limits);
  std::vector<Stack> stacks;
  std::span<const Item> rest(items_.data(), static_cast<size_t>(rows));
  while (!rest.empty()) {
    const auto window = rest.first(std::min(rest.size(), static_cast<size_t>(job.engine.window)));
    Plan plan = planner.plan(window);
    std::ranges::move(plan.stacks, std::back_inserter(stacks));
    rest = rest.subspan(window.size());
  }
  return stacks;
}

void EstimateInputs::use_workload(const EstimateAsked& asked) {
  if (asked.workload.empty()) {
    RowStatistics statistics = asked.statistics;
    if (asked.answer_tokens > 0) statistics.answer = asked.answer_tokens;
    rows_.whole = asked.rows > 0 ? asked.rows : 1000;
    workload_ = make_up_workload(statistics, std::min(asked.sample, rows_.whole));
    notes_.push_back(fmt::format(
        "rows made up: {:g} tokens of instruction, {:g} of document, {:g} questions of {:g} tokens, "
        "answers of {:g}",
        statistics.instruction, statistics.document, statistics.questions, statistics.question,
        statistics.answer));
    if (asked.rows == 0) notes_.emplace_back("for 1,000 rows; --rows says how many there are");
  } else {
    workload_ = read_workload(asked.workload, job_.method.name == "hpd");
    notes_.push_back("rows of " + asked.workload);
  }
  rows_.sample = 0;
  for (const auto& bin : workload_.bins) rows_.sample += static_cast<int64_t>(bin.size());
  if (!asked.workload.empty()) rows_.whole = asked.rows > 0 ? asked.rows : rows_.sample;
  rows_.stacks = [this](const EstimateCase& each, const MemoryPlan& memory, int64_t rows) {
    return pack_workload(each, memory, rows);
  };
}

std::vector<Stack> EstimateInputs::pack_workload(const EstimateCase& asked, const MemoryPlan& memory,
                                                 int64_t rows) const {
  // A prompt must fit the memory, as the planner sees to; half of it leaves room for the next.
  const int64_t held = int64_t{memory.pages} * kEstimatePageSize / 2;
  const auto most = static_cast<int32_t>(std::min<int64_t>(asked.method.prompt_tokens, held));
  const BenchPacking packing{asked.method.name, asked.method.documents, most};
  if (rows >= rows_.sample) return pack(workload_, packing, asked.config.context);
  Workload part = workload_;
  int64_t left = rows;
  for (auto& bin : part.bins) {
    bin.resize(static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(bin.size()))));
    left -= static_cast<int64_t>(bin.size());
  }
  std::erase_if(part.bins, [](const auto& bin) { return bin.empty(); });
  return pack(part, packing, asked.config.context);
}

}  // namespace sheaf
