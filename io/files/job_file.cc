#include "io/files/job_file.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <fmt/ranges.h>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/task/prompt_text.h"
#include "core/task/samples.h"
#include "core/text/spelling.h"
#include "io/base/file_layer.h"
#include "io/base/foreign_files.h"
#include "io/base/store_uri.h"
#include "io/files/confidence_file.h"
#include "io/files/job_keys.h"
#include "io/files/job_paths.h"

namespace sheaf {
namespace {

/// A file, or the name of a known template.
void read_chat(YamlMap& map, Job::ModelPart& model) {
  if (const YamlPtr given = map.node("chat"); given && given->is_text()) model.chat = given->text;
  if (model.chat_is_file()) return map.file_path("chat", model.chat);
  const std::vector<std::string> chats = find_job_key("model.chat")->words();
  map.text("chat", model.chat);
  if (std::ranges::find(chats, model.chat) == chats.end())
    refuse("{}: model.chat cannot be \"{}\"{} (a template of your own is a .yaml file)", map.where("chat"),
           shorten_text(model.chat, 60), suggest_spelling(model.chat, chats));
}

void read_model(YamlMap map, Job& job, bool files, MistakeList& found) {
  Job::ModelPart& model = job.model;
  const YamlPtr path = map.node("path");
  found.attempt([&] {
    if (path) model.path = model_path(*path, map.path("path"));
  });
  read_keys("model", map, job, found);
  const bool chat_read = found.attempt([&] { read_chat(map, model); });
  found.attempt([&] { map.finish(); });
  if (job.task.kind != TaskKind::none) check_scopes("model", map, job, found);
  found.attempt([&] {
    if (only_on_gpu(model.cpu_dtype))
      refuse("{}: a CPU does not compute in {}; use f32, int16 or int8", map.where("cpu_dtype"),
             word_of(model.cpu_dtype));
  });
  if (!files) return;
  if (path)
    found.attempt([&] { check_exists(map, "path", model.path, download_advice(path->text, Hosted::model)); });
  if (const YamlPtr adapter = map.node("adapter"))
    found.attempt([&] {
      check_exists(map, "adapter", model.adapter, download_advice(adapter->text, Hosted::adapter));
    });
  if (!chat_read || !model.chat_is_file()) return;
  found.attempt([&] {
    check_exists(map, "chat", model.chat);
    read_chat_file(model.chat);  // so that a mistake in it is found before the model is opened
  });
}

void read_examples(YamlMap& map, Job& job, MistakeList& found) {
  YamlMap examples = map.map_or("examples", "path");
  read_keys("task.examples", examples, job, found);
  if (map.has("examples")) examples.require("path");
  found.attempt([&] { examples.finish(); });
  if (map.has("examples") && job.task.kind != TaskKind::none)
    check_scopes("task.examples", examples, job, found);
  found.attempt([&] { check_exists(examples, "path", job.task.examples.path); });
}

void check_local(YamlMap& map, std::string_view key) {
  if (const YamlPtr given = map.node(key); given && is_uri(given->text))
    refuse("{}: {} must be a folder of this machine, not a URI", map.where(key), map.path(key));
}

void read_trust(YamlMap& map, Job& job, MistakeList& found) {
  YamlMap own = map.map_or("trust", "run");
  read_keys("task.trust", own, job, found);
  if (map.has("trust")) own.require("run");
  found.attempt([&] { own.finish(); });
  if (!map.has("trust")) return;
  if (job.task.kind != TaskKind::none) check_scopes("task.trust", own, job, found);
  const Job::Task::Trust& trust = job.task.trust;
  found.attempt([&] {
    check_local(own, "run");
    check_exists(own, "run", trust.run);
    for (const auto& [key, value] : {std::pair("at_least", trust.at_least), {"precision", trust.precision}})
      if (own.has(key) && value == 0)
        refuse(
            "{}: task.trust.{} is 0, with which every value would be taken; give a number above 0, such as "
            "0.9",
            own.where(key), key);
    if ((trust.at_least > 0) == (trust.precision > 0))
      refuse(
          "{}: task.trust needs either at_least, the least confidence of a value that is taken (`sheaf "
          "calibrate "
          "--precision` chooses it), or precision",
          map.where("trust"));
    if (trust.precision > 0 && trust.nulls_at_least > 0)
      refuse("{}: task.trust.nulls_at_least works only with at_least; remove one of the two",
             own.where("nulls_at_least"));
  });
}

void read_task(YamlMap& map, Job& job, MistakeList& found) {
  const size_t before = found.size();
  read_keys("task", map, job, found);
  found.attempt([&] { read_examples(map, job, found); });
  found.attempt([&] { read_trust(map, job, found); });
  read_prompt(map, job, found);
  found.attempt([&] { map.finish(); });
  if (found.size() == before) {
    check_scopes("task", map, job, found);
    found.attempt([&] {
      if (job.task.kind == TaskKind::extract && job.task.needs_schema)
        needs(map, "schema", "task.kind extract");
    });
  }
  if (job.task.needs_schema && (job.task.kind == TaskKind::extract || job.task.kind == TaskKind::none))
    found.attempt([&] { check_exists(map, "schema", job.task.schema); });
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

void check_search(const YamlMap& map, const Job::Method& method) {
  if (method.search != SpanSearch::likeliest) return;
  if (method.temperature > 0)
    refuse("{}: method.search likeliest works only with method.temperature 0; leave one of the two out",
           map.where("search"));
  if (method.values == ValueSight::positional)
    refuse(
        "{}: method.search likeliest does not work with method.values positional: values that see each other "
        "are decoded token by token; set method.values: independent",
        map.where("search"));
}

/// Returns whether the method is known and fits the task, so that other sections can be compared with it.
bool read_method(YamlMap map, Job& job, bool files, MistakeList& found) {
  Job::Method& method = job.method;
  const TaskKind kind = job.task.kind;
  const size_t before = found.size();
  read_keys("method", map, job, found);
  found.attempt([&] { read_speculate(map, method, files); });
  found.attempt([&] { map.finish(); });
  found.attempt([&] {
    if (!(method.top_p > 0))
      refuse("{}: method.top_p must be above 0 and at most 1, not 0", map.where("top_p"));
  });
  if (found.size() != before || kind == TaskKind::none) return false;
  found.attempt([&] { read_cut_values(map, kind, method.cut_values); });
  if (!found.attempt([&] { check_method_fits(map, method, kind); })) return false;
  check_scopes("method", map, job, found);
  found.attempt([&] { check_search(map, method); });
  found.attempt([&] {
    if (method.null_bias != 0) check_own_answers(map, "null_bias", method, kind);
  });
  found.attempt([&] {
    if (const std::string trouble = questions_trouble(method, kind); !trouble.empty())
      refuse("{}: {}", map.where("questions"), trouble);
  });
  found.attempt([&] {
    if (const std::string trouble = samples_trouble(job); !trouble.empty())
      refuse("{}: {}", map.where("samples"), trouble);
  });
  return found.size() == before;
}

/// A folder, or a map with it.
void read_kv_store(YamlMap& map, Job& job) {
  const Job::Engine::KvStorePart& store = job.engine.kv_store;
  YamlMap own = map.map_or("kv_store", "path");
  MistakeList found;
  read_keys("engine.kv_store", own, job, found);
  if (map.has("kv_store")) own.require("path");
  found.attempt([&] { own.finish(); });
  found.finish();
  if (store.bits != 8 && store.bits != 16)
    refuse("{}: engine.kv_store.bits must be 8, or 16 for keys and values as they are computed; got {}",
           own.where("bits"), store.bits);
  if (store.bits == 8 && job.engine.reproducible)
    refuse(
        "{}: engine.kv_store.bits: with 8 bits, answers depend on whether keys and values are read or "
        "computed; set 16, or leave out engine.reproducible",
        own.where("bits"));
  if (store.bits == 8 && job.engine.kv_dtype == KvPrecision::fp8)
    refuse(
        "{}: engine.kv_store.bits: with engine.kv_dtype fp8, keys and values have 8 bits already; leave it "
        "out",
        own.where("bits"));
  check_local(own, "path");
}

void read_engine(YamlMap map, Job& job, MistakeList& found) {
  found.attempt([&] {
    std::string device = device_text(job.engine.device);
    map.text("device", device);
    job.engine.device = parse_device(device, map.where("device") + ": engine.device");
  });
  read_keys("engine", map, job, found);
  found.attempt([&] { read_kv_store(map, job); });
  found.attempt([&] { map.finish(); });
}

void check_confidence(YamlMap& map, Job& job, bool files) {
  Job::Output& output = job.output;
  if (!output.confidence) return;
  if (job.task.kind == TaskKind::chat)
    refuse("{}: output.confidence works only with task.kind extract and ask; for chat use output.logprobs",
           map.where("confidence"));
  if (!votes(job)) check_own_answers(map, "confidence", job.method, job.task.kind);
  if (!files || output.calibration.empty()) return;
  check_exists(map, "calibration", output.calibration);
  read_confidence_file(output.calibration);  // so that a mistake in it is found before the model is opened
}

/// `method_fits`: the task and the method are known.
void read_output(YamlMap map, Job& job, bool files, bool method_fits, MistakeList& found) {
  Job::Output& output = job.output;
  const size_t before = found.size();
  found.attempt([&] {
    if (const YamlPtr path = map.node("path")) read_output_path(*path, job.file, std::time(nullptr), output);
  });
  read_keys("output", map, job, found);
  found.attempt([&] { map.finish(); });
  if (const YamlPtr reuse = map.node("reuse"); reuse && reuse->text.starts_with("latest:")) {
    YamlNode place = *reuse;
    place.text.erase(0, std::string_view("latest:").size());
    output.reuse = "latest:" + yaml_path(place, "output.reuse");
  }
  found.attempt([&] {
    if (is_uri(output.path)) parse_store_uri(output.path, map.where("path") + ": output.path: ");
  });
  found.attempt([&] { check_store_apart(job); });
  if (found.size() != before || job.task.kind == TaskKind::none) return;
  found.attempt([&] {
    if (output.format == OutputFormat::openai_batch && job.task.kind != TaskKind::chat)
      refuse("{}: output.format openai-batch works only with task.kind chat; use jsonl, parquet or arrow",
             map.where("format"));
  });
  if (votes(job)) output.confidence = true;  // the share of the votes
  check_scopes("output", map, job, found);
  if (method_fits) found.attempt([&] { check_confidence(map, job, files); });
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

/// What the task section and the method, both known, mean together.
void check_task_fits(const YamlMap& task, const Job& job, MistakeList& found) {
  if (!job.task.examples.path.empty())
    if (const std::string trouble = examples_trouble(job.method); !trouble.empty())
      found.add(fmt::format("{}: {}", task.where("examples"), trouble));
  if (!job.task.trust.run.empty())
    if (const std::string trouble = trust_trouble(job.method); !trouble.empty())
      found.add(fmt::format("{}: {}", task.where("trust"), trouble));
  if (job.task.answers == AnswerKind::span)
    if (const std::string trouble = span_trouble(find_method(job.method.name).wording, job.method.name);
        !trouble.empty())
      found.add(fmt::format("{}: task.answers: {}", task.where("answers"), trouble));
  if (const std::string trouble = list_trouble(job); !trouble.empty())
    found.add(fmt::format("{}: {}", task.where("list_attributes"), trouble));
  if (task.has("prompt"))
    if (const std::string trouble = prompt_trouble(job); !trouble.empty())
      found.add(fmt::format("{}: {}", task.where("prompt"), trouble));
}

/// Documents of methods that ask about them one by one.
void check_one_by_one(const Job& job) {
  if (job.input.scored_by_question() && !find_method(job.method.name).wording.fused)
    refuse(
        "{}: input.scores question works only with method.name pced; name a column with scores, or leave it "
        "out",
        job.file);
  if (!find_method(job.method.name).wording.one_by_one) return;
  if (!job.input.has_documents())
    refuse(
        "{}: method.name {} asks about several documents one by one; set input.documents to the column "
        "with their list",
        job.file, job.method.name);
  if (job.input.too_long != TooLong::refuse)
    refuse("{}: input.too_long: documents of method {} cannot be {}; leave it out", job.file, job.method.name,
           job.input.too_long == TooLong::split ? "split" : "truncated");
}

/// Where an answer stands can be said of one text that the corpus holds.
void check_places(const Job& job) {
  if (!job.output.spans || job.task.kind != TaskKind::ask) return;
  if (job.input.has_documents())
    refuse("{}: output.spans does not work with input.{}, several texts for a question; leave it out",
           job.file, job.input.documents.empty() ? "corpus" : "documents");
  if (!job.input.context_id.empty() && job.input.html == Html::text)
    refuse(
        "{}: output.spans does not work with input.context_id and input.html text together; leave one of the "
        "three out",
        job.file);
}

/// The column of several answers has no place for them.
void check_thoughts(const Job& job) {
  if (job.output.reasoning && job.output.format != OutputFormat::jsonl && job.task.kind == TaskKind::ask &&
      !asks_one_question(job))
    refuse("{}: output.reasoning of several answers works only with output.format jsonl", job.file);
}

/// Examples have one context each.
void check_example_contexts(const Job& job) {
  if (job.task.kind == TaskKind::ask && !job.task.examples.path.empty() && job.input.has_documents())
    refuse(
        "{}: task.examples does not work with input.documents, only with input.context; leave one of the two "
        "out",
        job.file);
}

/// Samples of a document that is asked part by part are not told apart.
void check_samples(const Job& job) {
  if (job.method.samples > 1 && job.input.too_long == TooLong::split)
    refuse("{}: method.samples does not work with input.too_long split; use truncate or refuse",
           job.input.places.at("input.too_long"));
}

/// Reads a job file into a job of defaults.
Job read_into(Job job, const std::string& path, YamlPtr root, const std::vector<JobChange>& changes,
              bool files) {
  job.file = path;
  MistakeList found;
  YamlMap map(changed(std::move(root), changes), "");
  std::map<std::string_view, YamlMap> sections;
  for (const std::string_view name :
       {"model", "input", "task", "method", "engine", "output", "cost", "estimate"})
    found.attempt([&] { sections.emplace(name, map.map(name)); });
  for (const std::string_view name : {"model", "input", "task", "output"}) {
    if (name == "output" && !job.output.needs_path) continue;
    map.require(name);
    if (!map.has(name)) sections.erase(name);  // it is missing, and its keys are not so too
  }
  found.attempt([&] { map.finish(); });
  const auto read = [&](std::string_view name, const auto& use) {
    if (const auto section = sections.find(name); section != sections.end()) use(section->second);
  };
  bool method_fits = false;
  read("task", [&](YamlMap& task) { read_task(task, job, found); });
  follow_task(job);
  read("method", [&](YamlMap& method) { method_fits = read_method(method, job, files, found); });
  if (method_fits) read("task", [&](YamlMap& task) { check_task_fits(task, job, found); });
  read("engine", [&](YamlMap& engine) { read_engine(engine, job, found); });
  read("model", [&](YamlMap& model) { read_model(model, job, files, found); });
  read("output", [&](YamlMap& output) { read_output(output, job, files, method_fits, found); });
  read("cost", [&](YamlMap& cost) {
    read_keys("cost", cost, job, found);
    found.attempt([&] { cost.finish(); });
  });
  read("estimate", [&](YamlMap& estimate) { found.attempt([&] { read_estimate_section(estimate); }); });
  read("input", [&](YamlMap& input) { read_input(input, job, files, found); });
  if (found.empty()) found.attempt([&] { check_one_by_one(job); });
  if (found.empty()) found.attempt([&] { check_places(job); });
  if (found.empty()) found.attempt([&] { check_thoughts(job); });
  if (found.empty()) found.attempt([&] { check_example_contexts(job); });
  if (found.empty()) found.attempt([&] { check_prompt(job); });
  if (found.empty()) found.attempt([&] { check_samples(job); });
  found.sort_by_line(path);
  found.finish();
  if (files) add_examples(job);
  return job;
}

}  // namespace

YamlPtr read_job_yaml(const std::string& path) {
  check_is_job(path);
  YamlPtr root = read_yaml(path, "a job file");
  check_is_job(path, *root);
  return root;
}

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
  return read_into(Job(), path, std::move(root), changes, files);
}

Job read_job_as(const std::string& path, const JobReading& reading) {
  Job job;
  job.task.needs_schema = reading.needs_schema;
  job.input.table = reading.table;
  job.output.needs_path = !reading.streams_rows;
  return read_into(std::move(job), path, reading.root ? reading.root : read_job_yaml(path), reading.changes,
                   true);
}

Job read_model_sections(const std::string& path, const YamlPtr& root) {
  Job job;
  job.file = path;
  MistakeList found;
  YamlMap map(root, "");
  found.attempt([&] { read_model(map.map("model"), job, true, found); });
  found.attempt([&] { read_engine(map.map("engine"), job, found); });
  found.attempt([&] { map.finish(); });
  found.finish();
  return job;
}

EstimateWishes read_job_estimate(const YamlPtr& root, const std::vector<std::string>& overrides) {
  return read_estimate_section(YamlMap(changed(root, set_options(overrides)), "").map("estimate"));
}

}  // namespace sheaf
