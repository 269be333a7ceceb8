#include "io/eval/eval_choice.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

/// Keeps the entries that are named; refuses names that there are not.
template <class Entry>
void keep_named(std::vector<Entry>& entries, std::string Entry::*name, const std::vector<std::string>& wanted,
                const char* option) {
  const std::vector<std::string> known = names_of(entries, name);
  for (const std::string& each : wanted)
    if (std::find(known.begin(), known.end(), each) == known.end())
      refuse("{} {}: the evaluation has no such name{}", option, shorten_text(each, 60),
             suggest_spelling(each, known));
  if (wanted.empty()) return;
  std::erase_if(entries, [&](const Entry& entry) {
    return std::find(wanted.begin(), wanted.end(), entry.*name) == wanted.end();
  });
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

}  // namespace

void choose(Eval& eval, const EvalChoice& choice) {
  choose_models(eval.models, choice.models);
  keep_named(eval.datasets, &Eval::Dataset::name, choice.datasets, "--dataset");
  if (choice.differences.empty())
    keep_named(eval.methods, &Eval::Method::label, choice.methods, "--method");
  else
    keep_named(eval.methods, &Eval::Method::label, choice.differences, "--differences");
}

}  // namespace sheaf
