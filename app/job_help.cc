#include "app/job_help.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/text/wrap.h"
#include "io/files/job_keys.h"

namespace sheaf {
namespace {

std::string_view change_text(Decides decides) {
  switch (decides) {
    case Decides::nothing:
      return "the rows stay the same, so a run can be resumed with another value";
    case Decides::rows:
      return "makes another run, which can reuse the answers of this one";
    case Decides::answers:
      return "makes another run, which decodes every answer again";
    case Decides::file:
      break;
  }
  return "the contents of the file count, wherever it lies: other contents make another run";
}

std::string default_text(const JobKey& key) {
  if (key.takes.required) return "none: the key is required";
  const nlohmann::ordered_json value = key.value(Job());
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.empty() || value.empty() ? "none" : text;
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

}  // namespace

std::string job_help(const std::string& path) {
  const auto columns = static_cast<size_t>(std::clamp(terminal_columns(Stream::out, 100), 40, 100));
  if (const JobKey* key = find_job_key(path)) return key_text(*key, columns);
  std::string text;
  std::vector<std::string> names;
  for (const JobKey& key : job_keys()) {
    names.push_back(key.path);
    if (path.empty() || key.path.starts_with(path + "."))
      text += wrap_beside("  " + key.path, key.help, 34, columns);
  }
  if (text.empty())
    refuse("unknown key \"{}\" of a job{}", shorten_text(path, 60), suggest_spelling(path, names));
  return text + "\n`sheaf help job KEY` says what a key takes. docs/job.md has examples.\n";
}

}  // namespace sheaf
