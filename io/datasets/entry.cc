#include "io/datasets/entry.h"

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/utf8.h"
#include "io/base/byte_source.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostValues = 100'000'000;
constexpr size_t kLargestFile = size_t{2} << 30;

std::string_view kind_of(const ordered_json& value) {
  return value.is_object()    ? "an object"
         : value.is_array()   ? "a list"
         : value.is_string()  ? "text"
         : value.is_number()  ? "a number"
         : value.is_boolean() ? "a boolean"
                              : "null";
}

bool is_json_line(std::string_view line) {
  std::string trouble;
  return read_json<ordered_json>(line, {.values = kMostValues}, &trouble).is_object() && trouble.empty();
}

}  // namespace

ordered_json parse_entry(std::string_view text) {
  if (const size_t good = valid_prefix(text); good < text.size())
    bad_entry("not valid UTF-8 at byte {}", good + 1);
  std::string trouble;
  ordered_json entry = read_json<ordered_json>(text, {.values = kMostValues}, &trouble);
  if (!trouble.empty()) bad_entry("{}", trouble);
  return entry;
}

ordered_json csv_cell(std::string text) {
  if (text.empty()) return nullptr;
  if (!text.starts_with('[') && !text.starts_with('{')) return text;
  try {
    return parse_entry(text);
  } catch (const BadEntry&) {
    return text;
  }
}

ordered_json read_json_dataset(const std::string& path) {
  const auto source = open_bytes(path);
  std::string text;
  constexpr size_t chunk = 1 << 20;
  for (size_t size = 0;;) {
    text.resize(size + chunk);
    const size_t got = source->read(text.data() + size, chunk);
    size += got;
    text.resize(size);
    if (got == 0) break;
    if (size > kLargestFile) refuse("{}: the file has more than {} GB; split it", path, kLargestFile >> 30);
  }
  if (const std::string damage = source->damage(); !damage.empty()) refuse("{}: {}", path, damage);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) refuse("{}: the file is empty", path);
  try {
    return parse_entry(text);
  } catch (const BadEntry& bad) {
    if (is_json_line(std::string_view(text).substr(0, text.find('\n'))))
      refuse("{}: this file is JSON lines, but one JSON value is needed", path);
    refuse("{}: {}", path, bad.reason);
  }
}

const ordered_json& field(const ordered_json& object, const char* key) {
  if (!object.is_object()) bad_entry("found {} instead of an object with \"{}\"", kind_of(object), key);
  const auto found = object.find(key);
  if (found == object.end()) bad_entry("no \"{}\"", key);
  return *found;
}

const ordered_json& list_field(const ordered_json& object, const char* key) {
  const ordered_json& value = field(object, key);
  if (!value.is_array()) bad_entry("\"{}\" is {}, not a list", key, kind_of(value));
  return value;
}

std::string text_field(const ordered_json& object, const char* key) {
  const ordered_json& value = field(object, key);
  if (!value.is_string()) bad_entry("\"{}\" is {}, not text", key, kind_of(value));
  return value.get<std::string>();
}

ordered_json id_field(const ordered_json& object, const char* key) {
  const ordered_json& value = field(object, key);
  if (!value.is_string() && !value.is_number_integer())
    bad_entry("\"{}\" is {}, not text or a whole number", key, kind_of(value));
  return value;
}

bool has_list(const ordered_json& value, const char* key) {
  if (!value.is_object()) return false;
  const auto found = value.find(key);
  return found != value.end() && found->is_array();
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(space) - begin + 1));
}

}  // namespace sheaf
