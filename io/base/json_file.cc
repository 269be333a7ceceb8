#include "io/base/json_file.h"

#include <cmath>

#include "core/text/utf8.h"
#include "io/base/line_reader.h"
#include "io/base/mapped_file.h"

namespace sheaf {

using nlohmann::json;

template <class Json>
Json parse_record(std::string_view text, const JsonLimits& limits) {
  if (const size_t good = valid_prefix(text); good < text.size())
    reject("not valid UTF-8 at byte {}", good + 1);
  std::string trouble;
  Json record = read_json<Json>(text, limits, &trouble);
  if (!trouble.empty()) throw BadText(trouble);
  return record;
}

template json parse_record(std::string_view, const JsonLimits&);
template ordered_json parse_record(std::string_view, const JsonLimits&);

json parse_json_line(std::string_view line, std::function<bool(const std::string&)> keep) {
  json row = parse_record(line, {.values = 1'000'000, .keep = std::move(keep)});
  if (!row.is_object()) reject("not a JSON object");
  return row;
}

void each_json_line(const std::string& path, const std::function<void(const json&, const std::string&)>& use,
                    const std::function<bool(const std::string&)>& keep) {
  LineReader lines(path);
  while (const auto line = lines.next()) {
    const std::string place = fmt::format("{}:{}", path, line->number);
    try {
      line->check();
      if (!line->is_blank()) use(parse_json_line(line->text, keep), place);
    } catch (const BadText& reason) {
      refuse("{}: {}", place, reason.what());
    }
  }
}

json parse_json(std::string_view text, const std::string& source, size_t depth) {
  std::string trouble;
  json value = read_json(text, {.depth = depth, .unique_keys = true}, &trouble);
  if (!trouble.empty()) refuse("{}: {}", source, trouble);
  return value;
}

json read_json_object(const std::string& path, size_t largest) {
  const auto file = MappedFile::open(path);
  if (file->bytes().size() > largest)
    refuse("{}: the file has {} bytes; at most {} are allowed", path, file->bytes().size(), largest);
  json object = parse_json(file->text(), path);
  if (!object.is_object()) refuse("{}: this is not a JSON object", path);
  return object;
}

std::string shown_json(const json& value) {
  constexpr size_t longest = 80;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > longest) text = text.substr(0, longest) + "…";
  return text;
}

const json* JsonFields::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json& JsonFields::need(const char* key) const {
  const json* found = find(key);
  if (found == nullptr) refuse("{}: \"{}\" is missing", source_, key);
  return *found;
}

void JsonFields::wrong(const char* key, const char* wanted) const {
  refuse("{}: \"{}\" is {}, {} is needed", source_, key, shown_json(need(key)), wanted);
}

int64_t JsonFields::integer(const char* key) const {
  const json& value = need(key);
  if (!value.is_number_integer()) wrong(key, "a whole number");
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    wrong(key, "a smaller number");
  return value.get<int64_t>();
}

double JsonFields::number(const char* key) const {
  const json& value = need(key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) wrong(key, "a number");
  return value.get<double>();
}

bool JsonFields::boolean(const char* key, bool fallback) const {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) wrong(key, "true or false");
  return value->get<bool>();
}

std::string JsonFields::text(const char* key) const {
  const json& value = need(key);
  if (!value.is_string()) wrong(key, "a text");
  return value.get<std::string>();
}

}  // namespace sheaf
