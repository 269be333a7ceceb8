#include "io/eval/eval_file.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/metrics/metric.h"
#include "core/text/spelling.h"
#include "io/base/paths.h"
#include "io/base/yaml_reader.h"

namespace sheaf {
namespace {

/// The keys of `node` that are not `own`, as keys of the job's section.
void take_section(const YamlNode& node, const std::string& section, const std::vector<std::string>& own,
                  std::vector<JobChange>& changes) {
  for (const YamlNode::Entry& entry : node.entries)
    if (std::ranges::find(own, entry.key) == own.end())
      changes.push_back({section + "." + entry.key, entry.value});
}

void take_changes(const YamlPtr& set, const std::string& path, std::vector<JobChange>& changes) {
  const YamlMap checked(set, path);  // refuses what is not a map
  for (const YamlNode::Entry& entry : set->entries) changes.push_back({entry.key, entry.value});
}

void take_set(YamlMap& map, std::vector<JobChange>& changes) {
  if (const YamlPtr set = map.node("set")) take_changes(set, map.path("set"), changes);
}

const std::vector<YamlPtr>& entries_of(YamlMap& map, const char* key) {
  const YamlPtr list = map.node(key);
  if (!list) refuse("{}: the key \"{}\" is missing; add it", map.where(), key);
  if (list->kind != YamlNode::Kind::list || list->items.empty())
    refuse("{}: {} must be a list of at least one entry, not {}", list->place.text(), key, list->describe());
  return list->items;
}

/// Names are names of folders.
void check_name(const std::string& name, const std::string& where, const std::string& what,
                const std::vector<std::string>& before) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty()) refuse("{}: the {} is missing; add it", where, what);
  if (name.starts_with('.') || name.size() > 100 || !std::ranges::all_of(name, fits))
    refuse("{}: {} \"{}\" cannot be the name of a folder: use only letters, digits, ., _ and -", where, what,
           shorten_text(name, 60));
  if (std::ranges::find(before, name) != before.end())
    refuse("{}: {} \"{}\" appears twice; rename one", where, what, name);
}

Eval::Model read_model(const YamlPtr& node, const std::vector<std::string>& before) {
  YamlMap map(node, "models");
  Eval::Model model;
  map.text("name", model.name);
  map.text("path", model.path);
  map.text_list("skip", model.skip);
  check_name(model.name, map.where("name"), "model's name", before);
  if (model.name == "all") refuse("{}: a model cannot be called \"all\"; rename it", map.where("name"));
  if (model.path.empty()) refuse("{}: the key \"path\" of the model is missing; add it", map.where());
  take_section(*node, "model", {"name", "skip", "set", "set_on", "set_with"}, model.changes);
  take_set(map, model.changes);
  for (const auto& [key, changes] : {std::pair{"set_on", &model.set_on}, {"set_with", &model.set_with}})
    if (const YamlPtr sets = map.node(key)) {
      const YamlMap checked(sets, map.path(key));
      for (const YamlNode::Entry& entry : sets->entries)
        take_changes(entry.value, map.path(fmt::format("{}.{}", key, entry.key)), (*changes)[entry.key]);
    }
  return model;
}

void check_metric(const YamlMap& map, Eval::Dataset& dataset) {
  if (dataset.metric.empty()) {
    if (!dataset.value.empty()) refuse("{}: value needs the key \"metric\"", map.where("value"));
    return;
  }
  std::vector<std::string> names, values;
  for (const Metric& metric : all_metrics())
    if (metric.name != "agreement" && metric.name != "llm-f1") names.emplace_back(metric.name);
  check_known(
      fmt::format("{}: metric cannot be \"{}\"", map.where("metric"), shorten_text(dataset.metric, 60)),
      dataset.metric, names);
  const Metric& metric = find_metric(dataset.metric);
  std::string main(metric.main < 0 ? "" : metric.values[static_cast<size_t>(metric.main)].name);
  for (const Metric::ValueName& value : metric.values) {
    if (value.is_count) continue;
    values.emplace_back(value.name);
    if (main.empty() && value.name.ends_with("f1")) main = value.name;
  }
  if (dataset.value.empty()) dataset.value = main.empty() ? values.front() : main;
  check_known(fmt::format("{}: {} has no value \"{}\"", map.where("value"), dataset.metric,
                          shorten_text(dataset.value, 60)),
              dataset.value, values);
}

Eval::Dataset read_dataset(const YamlPtr& node, const std::string& data,
                           const std::vector<std::string>& before) {
  YamlMap map(node, "datasets");
  Eval::Dataset dataset;
  dataset.place = map.where();
  std::string path, examples;
  int64_t limit = 0;
  map.text("name", dataset.name);
  map.file_path("job", dataset.job);
  map.text("metric", dataset.metric);
  map.text("value", dataset.value);
  map.text("gold", dataset.gold);
  map.text("gold_format", dataset.gold_format);
  map.text_list("no_answer", dataset.no_answer);
  map.boolean("unmentioned_absent", dataset.unmentioned_absent);
  map.integer("limit", limit, {0, std::numeric_limits<int64_t>::max()});
  map.text("path", path);
  map.text("shots_from", examples);
  YamlMap judge = map.map("judge");
  judge.file_path("model", dataset.judge);
  if (map.has("judge")) judge.require("model");
  judge.finish();
  take_set(map, dataset.changes);
  const YamlPtr lengths = map.node("lengths");
  if (!lengths) map.require("job");
  map.finish();
  if (lengths) {
    for (const char* key : {"job", "path", "shots_from", "metric", "value", "gold", "gold_format",
                            "no_answer", "unmentioned_absent", "judge", "limit"})
      if (map.has(key))
        refuse("{}: {} does not work with lengths, whose records are made up; remove one of them",
               map.where(key), key);
    dataset.lengths = read_lengths(lengths);
  }
  check_name(dataset.name, map.where("name"), "dataset's name", before);
  check_metric(map, dataset);
  const auto in_data = [&](const std::string& name, const char* key) {
    return resolve_path(name, data, fmt::format("{}: {}", map.where(key), map.path(key)));
  };
  if (!path.empty())
    dataset.changes.push_back({"input.path", option_text(map.where("path"), in_data(path, "path"))});
  if (!examples.empty())
    dataset.changes.push_back(
        {"input.shots_from", option_text(map.where("shots_from"), in_data(examples, "shots_from"))});
  if (limit > 0) dataset.changes.push_back({"input.limit", map.node("limit")});
  if (!dataset.gold.empty()) dataset.gold = in_data(dataset.gold, "gold");
  return dataset;
}

Eval::Method read_method(const YamlPtr& node, const std::vector<std::string>& before) {
  YamlMap map(node, "methods");
  Eval::Method method;
  method.place = map.where();
  std::string name;
  map.text("name", name);
  if (name.empty()) refuse("{}: the key \"name\" of the method is missing; add it", map.where());
  method.label = name;
  map.text("label", method.label);
  check_name(method.label, map.where(map.has("label") ? "label" : "name"), "method's label", before);
  map.text_list("skip", method.skip);
  map.number("accepted", method.accepted, {0, 1});
  map.boolean("attention", method.attention);
  map.boolean("share_documents", method.share_documents);
  take_section(*node, "method", {"label", "skip", "set", "accepted", "attention", "share_documents"},
               method.changes);
  take_set(map, method.changes);
  return method;
}

/// Keeps the entries that are named; refuses names that there are not.
template <class Entry>
void keep_named(std::vector<Entry>& entries, std::string Entry::*name, const std::vector<std::string>& wanted,
                const char* option) {
  const std::vector<std::string> known = names_of(entries, name);
  for (const std::string& each : wanted)
    check_known(fmt::format("{} {}: the evaluation has no such name", option, shorten_text(each, 60)), each,
                known);
  if (wanted.empty()) return;
  std::erase_if(entries,
                [&](const Entry& entry) { return std::ranges::find(wanted, entry.*name) == wanted.end(); });
}

void choose_models(std::vector<Eval::Model>& models, const std::vector<std::string>& choices) {
  std::vector<std::string> wanted;
  std::map<std::string, std::string> paths;
  for (const std::string& choice : choices) {
    const size_t equals = choice.find('=');
    const std::string name = choice.substr(0, equals);
    if (name == "all" && equals == std::string::npos) continue;
    if (equals != std::string::npos) paths[name] = choice.substr(equals + 1);
    if (equals != std::string::npos && paths[name].empty())
      refuse("--model {}: write it as NAME=PATH", shorten_text(choice, 60));
    if (name != "all") wanted.push_back(name);
  }
  keep_named(models, &Eval::Model::name, wanted, "--model");
  for (Eval::Model& model : models) {
    const auto own = paths.find(model.name), all = paths.find("all");
    if (own == paths.end() && all == paths.end()) continue;
    model.path = own != paths.end() ? own->second : all->second;
    model.replaced = true;
    model.changes.push_back({"model.path", option_text("--model " + model.name, model.path)});
  }
}

/// Leaves what the command line chooses; refuses names that the evaluation does not have.
void choose(Eval& eval, const EvalChoice& choice) {
  choose_models(eval.models, choice.models);
  keep_named(eval.datasets, &Eval::Dataset::name, choice.datasets, "--dataset");
  const bool pair = !choice.differences.empty();
  keep_named(eval.methods, &Eval::Method::label, pair ? choice.differences : choice.methods,
             pair ? "--differences" : "--method");
}

}  // namespace

void check_known(const std::string& trouble, const std::string& name, const std::vector<std::string>& known) {
  if (std::ranges::find(known, name) == known.end()) refuse("{}{}", trouble, suggest_spelling(name, known));
}

Eval read_eval(const std::string& path, const EvalChoice& choice) {
  YamlMap map(read_yaml(path, "an evaluation file"), "");
  if (map.has("task") && map.has("input"))
    refuse("{}: this is a job, not an evaluation; use `sheaf run {}`", path, path);
  Eval eval;
  eval.file = path;
  std::string data = folder_of_file(path);
  map.text("name", eval.name);
  map.text("baseline", eval.baseline);
  map.file_path("data", data);
  YamlMap output = map.map("output");
  const YamlPtr cost_node = map.node("cost"), paper = map.node("paper");
  const std::vector<YamlPtr>& models = entries_of(map, "models");
  const std::vector<YamlPtr>& datasets = entries_of(map, "datasets");
  const std::vector<YamlPtr>& methods = entries_of(map, "methods");
  for (const char* key : {"name", "output"}) map.require(key);
  map.finish();
  output.file_path("path", eval.output);
  output.require("path");
  output.finish();
  if (!choice.data.empty()) data = choice.data;
  if (!choice.output.empty()) eval.output = choice.output;

  for (const YamlPtr& node : models)
    eval.models.push_back(read_model(node, names_of(eval.models, &Eval::Model::name)));
  for (const YamlPtr& node : datasets)
    eval.datasets.push_back(read_dataset(node, data, names_of(eval.datasets, &Eval::Dataset::name)));
  for (const YamlPtr& node : methods)
    eval.methods.push_back(read_method(node, names_of(eval.methods, &Eval::Method::label)));
  if (cost_node) {
    const YamlMap checked(cost_node, "cost");  // refuses what is not a map
    take_section(*cost_node, "cost", {}, eval.cost);
  }

  const std::vector<std::string> labels = names_of(eval.methods, &Eval::Method::label),
                                 known = names_of(eval.datasets, &Eval::Dataset::name);
  if (eval.baseline.empty()) eval.baseline = labels.front();
  check_known(fmt::format("{}: baseline \"{}\" is not the label of a method", map.where("baseline"),
                          shorten_text(eval.baseline, 60)),
              eval.baseline, labels);
  const auto check_datasets = [&](const YamlMap& of, const char* key, const std::vector<std::string>& names) {
    for (const std::string& each : names)
      check_known(fmt::format("{}: {} \"{}\" is not a dataset of this file", of.where(key), key,
                              shorten_text(each, 60)),
                  each, known);
  };
  for (size_t m = 0; m < models.size(); ++m) {
    const YamlMap of(models[m], "models");
    check_datasets(of, "skip", eval.models[m].skip);
    std::vector<std::string> named;
    for (const auto& [name, changes] : eval.models[m].set_on) named.push_back(name);
    check_datasets(of, "set_on", named);
    for (const auto& [label, changes] : eval.models[m].set_with)
      check_known(fmt::format("{}: set_with \"{}\" is not the label of a method", of.where("set_with"),
                              shorten_text(label, 60)),
                  label, labels);
  }
  for (size_t m = 0; m < methods.size(); ++m)
    check_datasets(YamlMap(methods[m], "methods"), "skip", eval.methods[m].skip);
  if (paper) read_paper(YamlMap(paper, "paper"), eval);

  choose(eval, choice);
  return eval;
}

}  // namespace sheaf
