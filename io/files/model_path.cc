#include "io/files/model_path.h"

#include <filesystem>

#include "core/model/shapes.h"

namespace sheaf {

std::string model_path(const YamlNode& node, std::string_view name) {
  std::string path = yaml_path(node, name);
  std::error_code ignored;
  return is_shape(node.text) && !std::filesystem::exists(path, ignored) ? node.text : path;
}

}  // namespace sheaf
