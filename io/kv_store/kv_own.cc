#include "io/kv_store/kv_own.h"

#include <algorithm>
#include <string_view>

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHexDigits = 64;  // of a key
constexpr std::string_view kKept = ".kv", kStaged = ".kv.", kStagedEnd = ".part";

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

KvOwn kind_by_name(std::string_view folder, std::string_view name) {
  if (name.size() <= kHexDigits || !name.starts_with(folder) || !is_hex(name.substr(0, kHexDigits)))
    return KvOwn::no;
  const std::string_view ending = name.substr(kHexDigits);
  if (ending == kKept) return KvOwn::kept;
  const bool staged = ending.starts_with(kStaged) && ending.ends_with(kStagedEnd) &&
                      ending.size() > kStaged.size() + kStagedEnd.size();
  return staged ? KvOwn::staged : KvOwn::no;
}

}  // namespace

bool is_own_folder_name(const std::string& name) {
  return name.size() == 2 && is_hex(name);
}

bool is_own_folder(const fs::path& path) {
  std::error_code gone;
  return is_own_folder_name(path.filename().string()) &&
         fs::symlink_status(path, gone).type() == fs::file_type::directory;
}

KvOwn own_kind(const fs::path& path) {
  const fs::path folder = path.parent_path();
  std::error_code gone;
  if (!is_own_folder(folder) || fs::symlink_status(path, gone).type() != fs::file_type::regular)
    return KvOwn::no;
  return kind_by_name(folder.filename().string(), path.filename().string());
}

}  // namespace sheaf
