#include "io/files/job_file.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fmt/ranges.h>
#include <limits>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/text/spelling.h"
#include "core/tokenizer/chat_template.h"
#include "io/base/file_layer.h"
#include "io/base/foreign_files.h"
#include "io/base/store_uri.h"
#include "io/base/yaml_reader.h"
#include "io/files/chat_file.h"
#include "io/files/confidence_file.h"
#include "io/files/job_input.h"
#include "io/files/model_path.h"
#include "io/files/not_a_job.h"
#include "io/files/output_path.h"
#include "io/files/store_place.h"

namespace sheaf {
namespace {

constexpr Range<int64_t> kFromOne{1, std::numeric_limits<int64_t>::max()};
constexpr Range<double> kNotNegative{0, std::numeric_limits<double>::max()};

/// A file, or the name of a known template.
void read_chat(YamlMap& map, Job::ModelPart& model) {
  if (const YamlPtr given = map.node("chat"); given && given->is_text()) model.chat = given->text;
  if (model.chat_is_file()) return map.file_path("chat", model.chat);
  std::vector<std::string> chats = chat_template_names();
  chats.insert(chats.begin(), "auto");
  map.text("chat", model.chat);
  if (std::ranges::find(chats, model.chat) == chats.end())
    refuse("{}: model.chat cannot be \"{}\"{} (a template of your own is a .yaml file)", map.where("chat"),
           shorten_text(model.chat, 60), suggest_spelling(model.chat, chats));
}

void read_model(YamlMap map, Job::ModelPart& model, bool files) {
  if (const YamlPtr path = map.node("path")) model.path = model_path(*path, map.path("path"));
  map.file_path("adapter", model.adapter);
  read_choice(map, "dtype", model.dtype);
  read_choice(map, "cpu_dtype", model.cpu_dtype);
  if (only_on_gpu(model.cpu_dtype))
    refuse("{}: a CPU does not compute in {}; use f32, int16 or int8", map.where("cpu_dtype"),
           word_of(model.cpu_dtype));
  read_choice(map, "weights", model.weights);
  read_chat(map, model);
  map.require("path");
  map.finish();
  if (!files) return;
  check_exists(map, "path", model.path, download_advice(map.node("path")->text, Hosted::model));
  if (const YamlPtr adapter = map.node("adapter"))
    check_exists(map, "adapter", model.adapter, download_advice(adapter->text, Hosted::adapter));
  if (!model.chat_is_file()) return;
  check_exists(map, "chat", model.chat);
  read_chat_file(model.chat);  // so that a mistake in it is found before the model is opened
}

/// A file, or a map with it.
void read_task_examples(YamlMap& map, Job::Task::Examples& examples) {
  if (const YamlPtr given = map.node("examples"); given && given->kind == YamlNode::Kind::scalar) {
    map.file_path("examples", examples.path);
    check_exists(map, "examples", examples.path);
    return;
  }
  YamlMap own = map.map("examples");
  own.file_path("path", examples.path);
  own.integer("per_category", examples.per_category, {0, 1000});
  own.integer("seed", examples.seed);
  own.boolean("unmentioned_absent", examples.unmentioned_absent);
  if (map.has("examples")) own.require("path");
  own.finish();
  check_exists(own, "path", examples.path);
}

void read_task(YamlMap& map, Job::Task& task) {
  read_choice(map, "kind", task.kind);
  map.file_path("schema", task.schema);
  map.text("instruction", task.instruction);
  map.boolean("list_attributes", task.list_attributes);
  read_task_examples(map, task.examples);
  map.require("kind");
  map.finish();
  if (task.kind == TaskKind::extract) {
    needs(map, "schema", "task.kind extract");
    check_exists(map, "schema", task.schema);
  } else {
    only_for(map, {"schema", "list_attributes", "examples"}, "task.kind extract");
    if (task.kind == TaskKind::chat) only_for(map, {"instruction"}, "task.kind extract and ask");
  }
}

void check_method_fits(const YamlMap& map, const Job::Method& asked, TaskKind kind) {
  const Method& method = find_method(asked.name);
  if (!method.serves(kind)) {
    std::vector<std::string_view> served;
    for (const TaskKind task : method.tasks) served.push_back(word_of(task));
    refuse("{}: method.name {} works only with task.kind {}; for {} use one of {}", map.where("name"),
           map.has("name") ? asked.name : asked.name + " (the default)", fmt::join(served, " and "),
           word_of(kind), fmt::join(method_names(kind), ", "));
  }
  for (const Method& other : all_methods())
    if (&other != &method)
      for (const std::string_view key : other.settings)
        only_for(map, {key}, fmt::format("method.name {}", other.name));
  if (method.wording.skeleton) return;
  const auto only_for_skeletons = [&](const char* key, auto value, auto own) {
    const auto methods = all_methods();
    const auto skeleton =
        std::ranges::find_if(methods, [](const Method& one) { return one.wording.skeleton; });
    if (value == own)
      refuse("{}: method.{} {} works only with method.name {}, not with {}", map.where(key), key,
             word_of(own), skeleton->name, asked.name);
  };
  only_for_skeletons("values", asked.values, ValueSight::positional);
  only_for_skeletons("stacking", asked.stacking, Stacking::joint);
  only_for_skeletons("keys", asked.keys, KeyForm::marker);
  only_for_skeletons("value_end", asked.value_end, ValueEnd::line);
}

/// Refuses what needs a distribution for every value where the method decodes several as one text, or fuses
/// some.
void check_own_answers(const YamlMap& map, std::string_view key, const Job::Method& asked, TaskKind kind) {
  const auto decodes_each = [&](const Method& method) {
    const AnswerForm answers = method.wording.answers;
    return method.serves(kind) && !method.wording.fused && answers != AnswerForm::list &&
           (answers == AnswerForm::each || kind != TaskKind::extract);
  };
  const Method& method = find_method(asked.name);
  if (decodes_each(method)) return;
  std::vector<std::string_view> fit;
  for (const Method& other : all_methods())
    if (decodes_each(other)) fit.push_back(other.name);
  refuse("{}: {} does not work with method.name {}, which {}; use one of {}", map.where(key), map.path(key),
         asked.name,
         method.wording.fused ? "picks each token from several documents' probabilities"
                              : "decodes all values of a record as one text",
         fmt::join(fit, ", "));
}

/// The word null is YAML's null, unless it is in quotes.
void read_cut_values(YamlMap& map, TaskKind kind, CutValues& target) {
  read_choice(map, "cut_values", target);
  if (!map.is_null("cut_values")) return;
  if (kind != TaskKind::extract)
    refuse("{}: method.cut_values works only with task.kind extract; remove it", map.where("cut_values"));
  target = CutValues::null;
}

/// A word, or a map with the draft. Refuses it where answers are decoded together.
void read_speculate(YamlMap& map, Job::Method& method, bool files) {
  const YamlPtr given = map.node("speculate");
  if (given && given->kind == YamlNode::Kind::map) {
    YamlMap own = map.map("speculate");
    const YamlPtr draft = own.node("draft");
    own.boolean("always", method.speculate.always);
    own.require("draft");
    own.finish();
    method.speculate.draft = model_path(*draft, own.path("draft"));
    if (files)
      check_exists(own, "draft", method.speculate.draft, download_advice(draft->text, Hosted::model));
  } else {
    if (given && (!given->is_text() || given->text == "draft"))
      refuse("{}: method.speculate must be none, lookup or {{draft: MODEL}}, not {}", map.where("speculate"),
             given->describe());
    std::string word = "none";
    map.choice("speculate", word, {"none", "lookup"});
    method.speculate.lookup = word == "lookup";
  }
  if (!method.speculate.any()) return;
  if (find_method(method.name).wording.fused)
    refuse(
        "{}: method.speculate does not work with method.name {}, which picks each token from several "
        "documents' probabilities; leave it out",
        map.where("speculate"), method.name);
  if (method.values == ValueSight::positional)
    refuse(
        "{}: method.speculate does not work with method.values positional: values that see each other are "
        "decoded token by token; leave it out, or set method.values: independent",
        map.where("speculate"));
}

void read_method(YamlMap map, Job::Method& method, TaskKind kind, bool files) {
  map.choice("name", method.name, method_names());
  read_choice(map, "values", method.values);
  read_choice(map, "stacking", method.stacking);
  read_choice(map, "keys", method.keys);
  read_choice(map, "value_end", method.value_end);
  read_cut_values(map, kind, method.cut_values);
  read_choice(map, "options", method.options);
  map.integer("documents", method.documents, kFromZero);
  map.integer("prompt_tokens", method.prompt_tokens, kFromOne);
  map.integer("max_value_tokens", method.max_value_tokens, {1, 4096});
  if (const YamlPtr node = map.node("contrast"); node && node->text != "dynamic")
    map.number("contrast", method.contrast, {0, 100});
  map.number("prior_weight", method.prior_weight, {0, 100});
  read_choice(map, "aggregate", method.aggregate);
  read_choice(map, "findings", method.findings);
  map.integer("finding_tokens", method.finding_tokens, {1, 4096});
  map.number("null_bias", method.null_bias, {-100, 100});
  map.number("temperature", method.temperature, {0, 1000});
  map.integer("top_k", method.top_k, kFromZero);
  map.number("top_p", method.top_p, {0, 1});
  map.integer("seed", method.seed);
  read_speculate(map, method, files);
  map.finish();
  if (!(method.top_p > 0))
    refuse("{}: method.top_p must be above 0 and at most 1, not 0", map.where("top_p"));
  check_method_fits(map, method, kind);
  if (kind != TaskKind::extract) only_for(map, {"null_bias", "cut_values"}, "task.kind extract");
  if (method.null_bias != 0) check_own_answers(map, "null_bias", method, kind);
}

void check_local(YamlMap& map, std::string_view key) {
  if (const YamlPtr given = map.node(key); given && is_uri(given->text))
    refuse("{}: {} must be a folder of this machine, not a URI", map.where(key), map.path(key));
}

/// A folder, or a map with it.
void read_kv_store(YamlMap& map, Job::Engine& engine) {
  Job::Engine::KvStorePart& store = engine.kv_store;
  if (const YamlPtr given = map.node("kv_store"); given && given->kind == YamlNode::Kind::scalar)
    return check_local(map, "kv_store"), map.file_path("kv_store", store.path);
  YamlMap own = map.map("kv_store");
  own.file_path("path", store.path);
  own.number("gb", store.gb, {0.001, 1e6});
  own.number_or_auto("memory_gb", store.memory_gb, {1e-6, 1e6});
  own.integer("bits", store.bits, {1, 64});
  if (map.has("kv_store")) own.require("path");
  own.finish();
  if (store.bits != 8 && store.bits != 16)
    refuse("{}: engine.kv_store.bits must be 8, or 16 for keys and values as they are computed; got {}",
           own.where("bits"), store.bits);
  if (store.bits == 8 && engine.reproducible)
    refuse(
        "{}: engine.kv_store.bits: with 8 bits, answers depend on whether keys and values are read or "
        "computed; "
        "set 16, or leave out engine.reproducible",
        own.where("bits"));
  if (store.bits == 8 && engine.kv_dtype == KvPrecision::fp8)
    refuse(
        "{}: engine.kv_store.bits: with engine.kv_dtype fp8, keys and values have 8 bits already; leave it "
        "out",
        own.where("bits"));
  check_local(own, "path");
}

void read_engine(YamlMap map, Job::Engine& engine) {
  std::string device = device_text(engine.device);
  map.text("device", device);
  read_choice(map, "kernels", engine.kernels);
  map.boolean("reproducible", engine.reproducible);
  map.integer("threads", engine.threads, {0, 4096});
  map.accept_old("tokens_per_step", "rows_per_step");
  map.integer_or_auto("tokens_per_step", engine.tokens_per_step, kFromZero);
  map.number_or_auto("kv_memory_gb", engine.kv_memory_gb, {0, 1e6});
  read_choice(map, "kv_dtype", engine.kv_dtype);
  read_kv_store(map, engine);
  map.integer("prompts", engine.prompts, kFromZero);
  map.integer("window", engine.window, kFromOne);
  map.finish();
  engine.device = parse_device(device, map.where("device") + ": engine.device");
}

void read_confidence(YamlMap& map, Job& job, bool files) {
  Job::Output& output = job.output;
  map.boolean("confidence", output.confidence);
  map.file_path("calibration", output.calibration);
  if (!output.confidence) return only_for(map, {"calibration"}, "output.confidence true");
  if (job.task.kind == TaskKind::chat)
    refuse("{}: output.confidence works only with task.kind extract and ask; for chat use output.logprobs",
           map.where("confidence"));
  check_own_answers(map, "confidence", job.method, job.task.kind);
  if (!files || output.calibration.empty()) return;
  check_exists(map, "calibration", output.calibration);
  read_confidence_file(output.calibration);  // so that a mistake in it is found before the model is opened
}

void read_output(YamlMap map, Job& job, bool files) {
  Job::Output& output = job.output;
  if (const YamlPtr path = map.node("path")) {
    const OutputPath read = read_output_path(*path, job.file, std::time(nullptr));
    output.path = read.path;
    output.dated = read.dated;
  }
  map.file_path("work", output.work);
  map.file_path("reuse", output.reuse);
  read_choice(map, "format", output.format);
  map.integer("rows_per_file", output.rows_per_file, kFromOne);
  map.boolean("logprobs", output.logprobs);
  map.boolean("raw", output.raw);
  read_confidence(map, job, files);
  map.boolean("spans", output.spans);
  map.boolean("tokens", output.tokens);
  map.boolean("timing", output.timing);
  map.require("path");
  map.finish();
  if (is_uri(output.path))
    parse_store_uri(output.path, map.where("path") + ": output.path: ");
  else
    only_for(map, {"work"}, "an output.path that is a URI");
  if (job.task.kind != TaskKind::extract) only_for(map, {"spans"}, "task.kind extract");
  if (output.format != OutputFormat::openai_batch) return;
  if (job.task.kind != TaskKind::chat)
    refuse("{}: output.format openai-batch works only with task.kind chat; use jsonl or parquet",
           map.where("format"));
  only_for(map, {"logprobs", "raw", "tokens", "timing"}, "output.format jsonl and parquet");
}

void read_cost(YamlMap map, Job::Cost& cost) {
  map.number("usd_per_hour", cost.usd_per_hour, kNotNegative);
  map.integer("devices", cost.devices, kFromOne);
  map.text("hardware", cost.hardware);
  map.finish();
}

YamlPtr read_job_yaml(const std::string& path) {
  check_is_job(path);
  YamlPtr root = read_yaml(path, "a job file");
  check_is_job(path, *root);
  return root;
}

JobChange set_option(const std::string& text) {
  const std::string place = "--set " + shorten_text(text, 120);
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("{}: write it as key.path=value, for example method.documents=4", place);
  const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
  // Standard input, not a list; a glob, not an alias.
  if (value == "-" || value.starts_with('*')) return {key, option_text(place, value)};
  return {key, parse_yaml(place, value, 0)};
}

YamlPtr changed(YamlPtr root, const std::vector<JobChange>& changes) {
  if (root->kind != YamlNode::Kind::map && root->kind != YamlNode::Kind::null) return root;
  for (const auto& [key, value] : changes) {
    if (std::ranges::count(key, '.') > 8) refuse("{}: the key has too many parts", value->place.text());
    root = replace_yaml(root, key, value);
  }
  return root;
}

}  // namespace

std::vector<JobChange> set_options(const std::vector<std::string>& overrides) {
  std::vector<JobChange> changes;
  changes.reserve(overrides.size());
  for (const std::string& text : overrides) changes.push_back(set_option(text));
  return changes;
}

Job read_job(const std::string& path, const std::vector<std::string>& overrides, bool files) {
  return read_job(path, read_job_yaml(path), set_options(overrides), files);
}

Job read_job(const std::string& path, YamlPtr root, const std::vector<JobChange>& changes, bool files) {
  Job job;
  job.file = path;
  YamlMap map(changed(std::move(root), changes), "");
  YamlMap model = map.map("model"), input = map.map("input"), task = map.map("task"),
          method = map.map("method"), engine = map.map("engine"), output = map.map("output"),
          cost = map.map("cost"), estimate = map.map("estimate");
  for (std::string_view section : {"model", "input", "task", "output"}) map.require(section);
  map.finish();
  read_task(task, job.task);
  read_method(std::move(method), job.method, job.task.kind, files);
  if (!job.task.examples.path.empty())
    if (const std::string trouble = examples_trouble(job.method); !trouble.empty())
      refuse("{}: {}", task.where("examples"), trouble);
  if (const std::string trouble = list_trouble(job); !trouble.empty())
    refuse("{}: {}", task.where("list_attributes"), trouble);
  read_engine(std::move(engine), job.engine);
  read_output(std::move(output), job, files);
  check_store_apart(job);
  read_cost(std::move(cost), job.cost);
  read_estimate_section(std::move(estimate));
  read_input(std::move(input), job.input, job.task.kind, files);
  read_model(std::move(model), job.model, files);
  if (find_method(job.method.name).wording.experts) {
    if (job.input.documents.empty())
      refuse(
          "{}: method.name {} asks about several documents one by one; set input.documents to the column "
          "with their list",
          job.file, job.method.name);
    if (job.input.too_long != TooLong::refuse)
      refuse("{}: input.too_long: documents of method {} cannot be {}; leave it out", job.file,
             job.method.name, job.input.too_long == TooLong::split ? "split" : "truncated");
  }
  if (files) add_examples(job);
  return job;
}

EstimateWishes read_job_estimate(const std::string& path, const std::vector<std::string>& overrides) {
  return read_estimate_section(
      YamlMap(changed(read_job_yaml(path), set_options(overrides)), "").map("estimate"));
}

}  // namespace sheaf
