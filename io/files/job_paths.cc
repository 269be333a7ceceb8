#include "io/files/job_paths.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/model/shapes.h"
#include "core/text/spelling.h"
#include "io/base/file_layer.h"
#include "io/base/foreign_files.h"
#include "io/base/store_uri.h"

namespace sheaf {
namespace {

std::string local_time(std::time_t now, const char* format) {
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

}  // namespace

std::string model_path(const YamlNode& node, std::string_view name) {
  std::string path = yaml_path(node, name);
  std::error_code ignored;
  return is_shape(node.text) && !std::filesystem::exists(path, ignored) ? node.text : path;
}

void read_output_path(const YamlNode& node, const std::string& job_file, std::time_t now,
                      Job::Output& output) {
  YamlNode filled = node;
  const std::vector<std::string> names = {"{date}", "{time}", "{job}"};
  for (size_t at = 0; (at = filled.text.find('{', at)) != std::string::npos;) {
    const size_t end = filled.text.find('}', at);
    if (end == std::string::npos) break;
    const std::string name = filled.text.substr(at, end + 1 - at);
    std::string value;
    if (at > 0 && filled.text[at - 1] == '$')
      value = name;  // ${HOME}, which is replaced as in other paths
    else if (name == "{job}")
      value = std::filesystem::path(job_file).stem().string();
    else if (name == "{date}" || name == "{time}")
      value = local_time(now, name == "{date}" ? "%Y-%m-%d" : "%H-%M-%S");
    else
      refuse("{}: output.path: unknown placeholder {}{}", node.place.text(), shorten_text(name, 60),
             suggest_spelling(name, names));
    output.dated = output.dated || (value != name && name != "{job}");
    filled.text.replace(at, name.size(), value);
    at += value.size();
  }
  output.path = yaml_path(filled, "output.path");
}

void check_exists(const YamlMap& map, std::string_view key, const std::string& path,
                  const std::string& advice) {
  if (path.empty()) return;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    refuse("{}: {}: {}{}{}", map.where(key), map.path(key), describe_missing(path),
           advice.empty() ? "" : "; ", advice);
}

void check_store_apart(const Job& job) {
  const std::string &store = job.engine.kv_store.path, &out = job.output.path;
  if (store.empty() || out.empty() || is_uri(out)) return;
  const auto is_inside = [](const std::string& path, const std::string& folder) {
    return (path + "/").starts_with(folder + (folder.ends_with('/') ? "" : "/"));
  };
  const std::string real_store = real_path(store), real_out = real_path(out);
  // A restart builds beside the folder, and keeps the old run there.
  for (const char* ending : {"", ".restart", ".previous", ".replaced"})
    if (is_inside(real_store, real_out + ending))
      refuse("{}: engine.kv_store {} is inside output.path {}{}; choose a folder outside of it", job.file,
             store, out, ending);
  if (is_inside(real_out, real_store))
    refuse("{}: output.path {} is inside engine.kv_store {}; choose a folder outside of it", job.file, out,
           store);
}

}  // namespace sheaf
