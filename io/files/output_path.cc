#include "io/files/output_path.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

std::string local_time(std::time_t now, const char* format) {
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

}  // namespace

OutputPath read_output_path(const YamlNode& node, const std::string& job_file, std::time_t now) {
  YamlNode filled = node;
  OutputPath output;
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
      refuse("{}: output.path: {} stands for nothing{}", node.place.text(), shorten_text(name, 60),
             suggest_spelling(name, names));
    output.dated = output.dated || (value != name && name != "{job}");
    filled.text.replace(at, name.size(), value);
    at += value.size();
  }
  output.path = yaml_path(filled, "output.path");
  return output;
}

}  // namespace sheaf
