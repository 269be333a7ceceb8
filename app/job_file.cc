#include "app/job_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/tokenizer/chat_template.h"
#include "io/datasets/dataset.h"
#include "io/datasets/examples.h"
#include "io/globs.h"
#include "io/spelling.h"
#include "io/yaml_reader.h"

namespace sheaf {
namespace {

constexpr const char* kBatchFormat = "openai-batch";
constexpr Range<int64_t> kFromZero{0, std::numeric_limits<int64_t>::max()};
constexpr Range<int64_t> kFromOne{1, std::numeric_limits<int64_t>::max()};
constexpr Range<double> kNotNegative{0, std::numeric_limits<double>::max()};

const std::vector<std::string> kKinds = {"extract", "ask", "chat"};
const std::vector<std::string> kExtractMethods = {"hpd", "standard", "separate", "prefix"};
const std::vector<std::string> kAskMethods = {"ippd", "parallel-prompting", "standard", "separate", "prefix"};
const std::vector<std::string> kChatMethods = {"ippd", "standard", "separate", "prefix"};

void check_exists(const YamlMap& map, std::string_view key, const std::string& path) {
  if (path.empty()) return;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    refuse("{}: {}: no such file or folder: {}", map.where(key), map.path(key), path);
}

/// A key that was given and means nothing in this job is a mistake, not a detail to pass over.
void only_for(const YamlMap& map, std::initializer_list<std::string_view> keys, std::string_view what) {
  for (std::string_view key : keys)
    if (map.has(key)) refuse("{}: {} is only for {}; remove it", map.where(key), map.path(key), what);
}

void needs(const YamlMap& map, std::string_view key, std::string_view what) {
  if (!map.has(key)) refuse("{}: {} needs the key \"{}\"", map.where(key), what, map.path(key));
}

void read_model(YamlMap map, Job::ModelPart& model) {
  std::vector<std::string> chats = chat_template_names();
  chats.insert(chats.begin(), "auto");
  map.text("path", model.path);
  map.text("adapter", model.adapter);
  map.choice("dtype", model.dtype, {"auto", "f32"});
  map.choice("chat", model.chat, chats);
  map.require("path");
  map.finish();
  check_exists(map, "path", model.path);
  check_exists(map, "adapter", model.adapter);
}

std::vector<std::string> corpus_format_names() {
  std::vector<std::string> names = {"auto", "jsonl", "parquet", kBatchFormat};
  for (const DatasetFormat& format : dataset_formats()) names.push_back(format.name);
  return names;
}

/// The keys of a dataset that is read as it is downloaded, whose columns are known.
void read_dataset(YamlMap& map, Job::Input& input, const std::string& kind) {
  Job::Input::Dataset& dataset = input.dataset;
  map.choice("split", dataset.split, {"train", "valid", "test"});
  map.integer("turns", dataset.turns, {0, 100});
  map.integer("shots", dataset.shots, {0, 100});
  map.text("shots_from", dataset.shots_from);
  const DatasetFormat* format = find_dataset_format(input.format);
  if (!format) return only_for(map, {"split", "turns", "shots", "shots_from"}, "datasets (input.format)");
  if (format->task != kind)
    refuse("{}: input.format {} is only for task.kind {}", map.where("format"), format->name, format->task);
  if (format->name != "narrativeqa") only_for(map, {"split"}, "input.format narrativeqa");
  if (format->name != "quac") only_for(map, {"turns"}, "input.format quac");
  if (kind == "extract") {
    only_for(map, {"shots", "shots_from"}, "task.kind ask");
    if (input.category.empty()) input.category = "category";
    if (input.document.empty()) input.document = {"document"};
  } else {
    if (input.id.empty()) input.id = "id";
    if (input.context.empty()) input.context = "context";
    if (input.questions.empty() && input.question.empty()) input.questions = "questions";
  }
  if (dataset.shots > 0 && dataset.shots_from.empty() && format->name != "narrativeqa")
    refuse("{}: input.shots needs input.shots_from, the file to take examples from (not the one to answer)",
           map.where("shots"));
  check_exists(map, "shots_from", dataset.shots_from);
}

/// Ends the instruction with examples, as they would stand in the prompt.
void add_examples(Job& job) {
  const Job::Input::Dataset& dataset = job.input.dataset;
  if (dataset.shots == 0) return;
  if (job.task.instruction.empty())
    refuse("{}: input.shots needs task.instruction, the text that the examples follow", job.file);
  DatasetOptions options = dataset;
  options.split = "train";
  const std::string path = dataset.shots_from.empty() ? job.input.path : dataset.shots_from;
  const auto reader = open_dataset(job.input.format, path, options);
  const bool plain = job.method.name == "parallel-prompting";
  job.task.instruction +=
      "\n\n" + few_shot_examples(*reader, dataset.shots, plain ? "Document: " : "Passage:\n");
}

/// Requests name everything by themselves.
void check_batch(const YamlMap& map, Job::Input& input) {
  only_for(
      map,
      {"id", "category", "document", "context", "context_id", "questions", "question", "options", "too_long"},
      "task.kind extract and ask");
  if (input.format != kBatchFormat)
    refuse("{}: task.kind chat reads requests; write input.format: {}", map.where("format"), kBatchFormat);
  input.id = "custom_id";
}

void read_input(YamlMap map, Job::Input& input, const std::string& kind) {
  map.text("path", input.path);
  map.choice("format", input.format, corpus_format_names());
  map.integer("limit", input.limit, kFromZero);
  map.choice("too_long", input.too_long, {"refuse", "truncate", "split"});
  map.text("id", input.id);
  map.text("category", input.category);
  map.text_list("document", input.document);
  map.text("context", input.context);
  map.text("context_id", input.context_id);
  map.text("questions", input.questions);
  map.text("question", input.question);
  map.text("options", input.options);
  read_dataset(map, input, kind);
  map.require("path");
  map.finish();
  for (const char* key :
       {"id", "category", "document", "context", "context_id", "questions", "question", "options"})
    input.places[map.path(key)] = map.where(key);
  if (kind != "chat" && input.format == kBatchFormat)
    refuse("{}: input.format {} is only for task.kind chat", map.where("format"), kBatchFormat);
  if (kind == "chat") {
    check_batch(map, input);
  } else if (kind == "extract") {
    if (input.document.empty()) needs(map, "document", "task.kind extract");
    only_for(map, {"context", "context_id", "questions", "question", "options"}, "task.kind ask");
  } else {
    if (input.context.empty()) needs(map, "context", "task.kind ask");
    only_for(map, {"category", "document"}, "task.kind extract");
    if (map.has("questions") && map.has("question"))
      refuse("{}: input.questions and input.question are both given; keep one", map.where("question"));
    if (!map.has("question")) {
      only_for(map, {"options"}, "input.question");
      if (input.questions.empty()) needs(map, "questions", "task.kind ask");
    }
  }
  find_corpus_files(input.path, input.format, map.where("path") + ": input.path: ");
}

void read_task(YamlMap& map, Job::Task& task) {
  map.choice("kind", task.kind, kKinds);
  map.text("schema", task.schema);
  map.text("instruction", task.instruction);
  map.require("kind");
  map.finish();
  if (task.kind == "extract") {
    needs(map, "schema", "task.kind extract");
    check_exists(map, "schema", task.schema);
  } else {
    only_for(map, {"schema"}, "task.kind extract");
    if (task.kind == "chat") only_for(map, {"instruction"}, "task.kind extract and ask");
  }
}

void check_method_fits(const YamlMap& map, const Job::Method& method, const std::string& kind) {
  const std::vector<std::string>& fitting = kind == "extract" ? kExtractMethods
                                            : kind == "ask"   ? kAskMethods
                                                              : kChatMethods;
  if (std::find(fitting.begin(), fitting.end(), method.name) == fitting.end()) {
    const std::string_view other = method.name == "hpd" ? "extract" : "ask";
    refuse("{}: method.name {} is only for task.kind {}; for {} choose one of {}", map.where("name"),
           map.has("name") ? method.name : method.name + " (the default)", other, kind,
           fmt::join(fitting, ", "));
  }
  if (method.name == "hpd") return;
  if (method.values == "positional")
    refuse("{}: method.values positional is only for method.name hpd, not {}", map.where("values"),
           method.name);
  if (method.stacking == "joint")
    refuse("{}: method.stacking joint is only for method.name hpd, not {}", map.where("stacking"),
           method.name);
}

void read_method(YamlMap map, Job::Method& method, const std::string& kind) {
  map.choice("name", method.name, {"standard", "separate", "prefix", "ippd", "parallel-prompting", "hpd"});
  map.choice("values", method.values, {"independent", "positional"});
  map.choice("stacking", method.stacking, {"isolated", "joint"});
  map.integer("documents", method.documents, kFromZero);
  map.integer("prompt_tokens", method.prompt_tokens, kFromOne);
  map.integer("max_value_tokens", method.max_value_tokens, {1, 4096});
  map.number("temperature", method.temperature, {0, 1000});
  map.integer("top_k", method.top_k, kFromZero);
  map.number("top_p", method.top_p, {0, 1});
  map.integer("seed", method.seed);
  map.finish();
  if (!(method.top_p > 0))
    refuse("{}: method.top_p must be above 0 and at most 1, not 0", map.where("top_p"));
  check_method_fits(map, method, kind);
}

bool is_device(const std::string& device) {
  if (device == "auto" || device == "cpu" || device == "cuda") return true;
  constexpr std::string_view prefix = "cuda:";
  if (!device.starts_with(prefix)) return false;
  const char* end = device.data() + device.size();
  uint16_t number = 0;
  const auto [rest, error] = std::from_chars(device.data() + prefix.size(), end, number);
  return error == std::errc() && rest == end;
}

void read_engine(YamlMap map, Job::Engine& engine) {
  map.text("device", engine.device);
  map.choice("kernels", engine.kernels, {"auto", "reference"});
  map.boolean("reproducible", engine.reproducible);
  map.integer("threads", engine.threads, {0, 4096});
  map.integer_or_auto("rows_per_step", engine.rows_per_step, kFromZero);
  map.number_or_auto("kv_memory_gb", engine.kv_memory_gb, {0, 1e6});
  map.integer("window", engine.window, kFromOne);
  map.finish();
  if (!is_device(engine.device))
    refuse("{}: engine.device cannot be \"{}\"; choose auto, cpu, cuda or cuda:N", map.where("device"),
           shorten_text(engine.device, 60));
}

void read_output(YamlMap map, Job::Output& output) {
  map.text("path", output.path);
  map.choice("format", output.format, {"jsonl", "parquet"});
  map.integer("rows_per_file", output.rows_per_file, kFromOne);
  map.boolean("logprobs", output.logprobs);
  map.boolean("raw", output.raw);
  map.boolean("tokens", output.tokens);
  map.boolean("timing", output.timing);
  map.require("path");
  map.finish();
}

void read_cost(YamlMap map, Job::Cost& cost) {
  map.number("usd_per_hour", cost.usd_per_hour, kNotNegative);
  map.integer("devices", cost.devices, kFromOne);
  map.finish();
}

YamlPtr apply_override(const YamlPtr& root, const std::string& override_text) {
  const std::string source = "--set " + shorten_text(override_text, 120);
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("{}: write it as key.path=value, for example method.documents=4", source);
  const YamlPtr value = parse_yaml(source, override_text.substr(equals + 1), 0);
  if (std::count(override_text.begin(), override_text.begin() + static_cast<ptrdiff_t>(equals), '.') > 8)
    refuse("{}: the key has too many parts", source);
  return replace_yaml(root, std::string_view(override_text).substr(0, equals), value);
}

}  // namespace

Job read_job(const std::string& path, const std::vector<std::string>& overrides) {
  YamlPtr root = read_yaml(path);
  if (root->kind == YamlNode::Kind::map || root->kind == YamlNode::Kind::null)
    for (const std::string& text : overrides) root = apply_override(root, text);
  Job job;
  job.file = path;
  YamlMap map(root, "");
  YamlMap model = map.map("model"), input = map.map("input"), task = map.map("task"),
          method = map.map("method"), engine = map.map("engine"), output = map.map("output"),
          cost = map.map("cost");
  for (std::string_view section : {"model", "input", "task", "output"}) map.require(section);
  map.finish();
  read_task(task, job.task);
  read_method(std::move(method), job.method, job.task.kind);
  read_engine(std::move(engine), job.engine);
  read_output(std::move(output), job.output);
  read_cost(std::move(cost), job.cost);
  read_input(std::move(input), job.input, job.task.kind);
  read_model(std::move(model), job.model);
  add_examples(job);
  return job;
}

}  // namespace sheaf
