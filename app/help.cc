#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>

#include "app/command_tree.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/text/wrap.h"
#include "io/files/job_keys.h"
#include "io/files/schema_keys.h"

namespace sheaf {
namespace {

constexpr size_t kTerms = 28;  // columns for the names of options

size_t help_columns() {
  return static_cast<size_t>(std::clamp(terminal_columns(Stream::out, 100), 40, 100));
}

class HelpLayout : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const auto columns = help_columns();
    const CommandFacts facts = describe_command(*app);
    const std::vector<CommandFacts> all = describe_commands(*app);
    std::string usage = name + (all.size() > 1 ? " COMMAND" : "") + " [OPTIONS]", text;
    const auto add = [&](const std::string& term, const std::string& help) {
      text += wrap_beside("  " + term, help, kTerms, columns);
    };
    for (const ArgumentFacts& each : facts.operands) usage += " " + each.usage();
    text = wrap_beside("", usage, 0, columns) + "\n" + wrap_layout(app->get_description(), columns) + "\n";
    for (const ArgumentFacts& each : facts.operands) add(each.value, each.help);
    text += facts.operands.empty() ? "Options:\n" : "\nOptions:\n";
    for (const ArgumentFacts& each : facts.options) add(each.usage(), each.help);
    if (all.size() > 1) text += "\nCommands:\n";
    for (size_t i = 1; i < all.size(); ++i) add(all[i].name, all[i].help);
    if (const std::vector<std::string> examples = examples_of(app->get_name()); !examples.empty()) {
      text += "\nExamples:\n";
      for (const std::string& line : examples) text += wrap_beside("  ", line, 2, columns);
    }
    if (!app->get_footer().empty()) text += "\n" + wrap_layout(app->get_footer(), columns);
    if (all.size() == 1) return text + "\n`sheaf --help` lists the exit codes.\n";
    text += "\nExit codes:\n";
    for (const ExitCode& exit : kExitCodes) text += fmt::format("  {:<5}{}\n", exit.code, exit.meaning);
    return text;
  }
};

/// "--threads needs a value: a whole number from 0 to 4096".
std::string needs_text(const std::string& name, const ArgumentFacts& option) {
  if (option.value.empty()) return name + " takes no value";
  return fmt::format("{} needs {}: {}", name,
                     option.least > 1 ? fmt::format("{} values", option.least) : "a value",
                     option.wanted.empty() ? option.value : option.wanted);
}

std::string unexpected_text(const CLI::App& app, const CommandFacts& command) {
  std::vector<std::string> extras = app.remaining(true), names;
  std::erase(extras, "--");
  if (extras.empty()) return "unexpected argument \"--\"";
  const auto word = std::ranges::find_if(extras, [](const auto& each) { return each.starts_with('-'); });
  if (word == extras.end())
    return fmt::format("unexpected argument \"{}\"", shorten_text(extras.front(), 60));
  for (const ArgumentFacts& each : command.options)
    names.insert(names.end(), each.names.begin(), each.names.end());
  return fmt::format("unknown option {}{}", shorten_text(*word, 60), suggest_spelling(*word, names));
}

/// Whether an option that takes one value got several.
bool is_given_twice(const CLI::App& app, const ArgumentFacts& option) {
  const auto used = app.get_subcommands();
  if (used.empty() || option.repeated || option.least > 1 || option.names.empty()) return false;
  const CLI::Option* const found = used[0]->get_option_no_throw(option.names.front());
  return found && found->count() > 1;
}

/// CLI11 throws texts in which only the names of the arguments are of use.
std::string mistake_text(const CLI::App& app, const CommandFacts& command, const CLI::ParseError& error) {
  const std::string kind = error.get_name();
  std::string said = one_line(error.what());
  const size_t blank = said.find(' '), last = said.rfind(' ');
  const std::string first_word = said.substr(0, blank), last_word = said.substr(last + 1);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) || app.get_subcommands().empty())
    return unexpected_text(app, command);
  if (kind == "ExcludesError")
    return fmt::format("{} does not work with {}; leave one of them out", first_word, last_word);
  if (kind == "RequiresError") return fmt::format("{} works only with {}; add it", first_word, last_word);
  if (kind == "ValidationError" && said.substr(blank).starts_with(" must"))
    return said.substr(0, blank - 1) + said.substr(blank);
  if (kind != "ArgumentMismatch" && kind != "ConversionError") return said;
  const std::string words = " " + said + " ";
  for (const ArgumentFacts& each : command.options)
    for (const std::string& name : each.all_names())
      if (const size_t at = words.find(" " + name);
          at != std::string::npos && words.find_first_of(": ", at + 1) == at + 1 + name.size())
        return is_given_twice(app, each) ? fmt::format("{} is given twice; give it once", name)
                                         : needs_text(name, each);
  return said;
}

/// With the name that the user gave to an option of several names.
std::string as_typed(std::string text, const CommandFacts& command,
                     const std::vector<std::string>& arguments) {
  const auto typed = [&](const std::string& name) {
    return std::ranges::any_of(
        arguments, [&](const std::string& each) { return each.substr(0, each.find('=')) == name; });
  };
  for (const ArgumentFacts& option : command.options) {
    const std::vector<std::string> names = option.all_names();
    const auto named =
        std::ranges::find_if(names, [&](const std::string& name) { return text.starts_with(name + " "); });
    const auto other = std::ranges::find_if(names, typed);
    if (named != names.end() && other != names.end() && !typed(*named))
      return *other + text.substr(named->size());
  }
  return text;
}

std::string_view change_text(Decides decides) {
  if (decides == Decides::nothing)
    return "the rows stay the same, so a run can be resumed with another value";
  if (decides == Decides::rows) return "makes another run, which can reuse the answers of this one";
  if (decides == Decides::answers) return "makes another run, which decodes every answer again";
  return "what counts is the file's contents, not its path: different contents make another run";
}

std::string default_text(const JobKey& key) {
  if (key.takes.required) return "none: the key is required";
  // Of each task, where they differ.
  std::vector<std::pair<std::string, std::vector<std::string_view>>> defaults;
  for (const TaskKind kind : {TaskKind::extract, TaskKind::ask, TaskKind::chat}) {
    Job job;
    job.task.kind = kind;
    follow_task(job);
    if (key.path == "task.kind") job.task.kind = TaskKind::none;
    const nlohmann::ordered_json value = key.value(job);
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (text.empty() || value.empty()) text = "none";
    const auto known = std::ranges::find(defaults, text, [](const auto& each) { return each.first; });
    (known == defaults.end() ? defaults.emplace_back(text, std::vector<std::string_view>()) : *known)
        .second.push_back(word_of(kind));
  }
  if (defaults.size() == 1) return defaults.front().first;
  std::string text;
  for (const auto& [value, kinds] : defaults)
    text += fmt::format("{}{} for task.kind {}", text.empty() ? "" : ", ", value, fmt::join(kinds, " and "));
  return text;
}

std::string key_text(const JobKey& key, size_t columns) {
  std::string text = wrap_beside(key.path, key.help, key.path.size() + 2, columns);
  const auto add = [&](const std::string& term, std::string_view about) {
    text += wrap_beside("  " + term, about, 14, columns);
  };
  add("takes", key.type());
  if (!std::holds_alternative<std::monostate>(key.member)) add("default", default_text(key));
  std::vector<std::string_view> scopes;
  for (const Scope& scope : key.scopes) scopes.push_back(scope.text);
  if (!scopes.empty()) add("only with", fmt::format("{}", fmt::join(scopes, ", ")));
  add("changed", change_text(key.decides));
  return text;
}

/// A key of schema files; empty: there is none of this name.
std::string schema_key_text(std::string_view name, size_t columns) {
  for (const SchemaKey& key : schema_keys()) {
    if (key.name != name) continue;
    return wrap_beside(std::string(name), key.help, name.size() + 2, columns) +
           wrap_beside("  takes", key.takes, 14, columns) +
           wrap_beside("  where", "in the schema file (task.schema), not in the job", 14, columns);
  }
  return {};
}

}  // namespace

void set_up_help(CLI::App& app) {
  app.formatter(std::make_shared<HelpLayout>());
  app.get_help_ptr()->description("Show this help");
}

std::string usage_text(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& arguments) {
  const auto used = app.get_subcommands();
  const CLI::App& command = used.empty() ? app : *used[0];
  const CommandFacts facts = describe_command(command);
  std::string text = as_typed(mistake_text(app, facts, error), facts, arguments);
  if (text.ends_with('?')) return text;
  return fmt::format("{}; see `sheaf{} --help`", text, used.empty() ? "" : " " + command.get_name());
}

std::string job_help(const std::string& path) {
  const auto columns = help_columns();
  if (const JobKey* key = find_job_key(path)) return key_text(*key, columns);
  std::string text;
  std::vector<std::string> names;
  for (const JobKey& key : job_keys()) {
    names.push_back(key.path);
    if (path.empty() || key.path.starts_with(path + "."))
      text += wrap_beside("  " + key.path, key.help, 34, columns);
  }
  // "locale" and "trust.run" are the ends of keys.
  std::vector<const JobKey*> ends;
  for (const JobKey& key : job_keys())
    if (text.empty() && key.path.ends_with("." + path)) ends.push_back(&key);
  const std::string of_schema = text.empty() ? schema_key_text(path, columns) : "";
  if (ends.empty() && !of_schema.empty()) return of_schema;
  if (ends.size() == 1) return key_text(*ends.front(), columns) + of_schema;
  for (const JobKey* key : ends) text += wrap_beside("  " + key->path, key->help, 34, columns);
  text += of_schema;
  for (const SchemaKey& key : schema_keys()) names.emplace_back(key.name);
  if (text.empty())
    refuse("unknown key \"{}\" of a job{}", shorten_text(path, 60), suggest_spelling(path, names));
  return text + "\n`sheaf help job KEY` says what a key takes. docs/job.md has examples.\n";
}

}  // namespace sheaf
