#include "io/datasets/readers.h"

#include <algorithm>

#include "io/base/line_reader.h"

namespace sheaf {
namespace {

constexpr int64_t kMostValues = 100'000'000;
constexpr size_t kLargestFile = size_t{2} << 30;

bool is_json_line(std::string_view line) {
  return read_json<ordered_json>(line, {.values = kMostValues}).is_object();
}

constexpr int kProbedLines = 100;

class WholeFileReader : public DatasetReader {
 public:
  WholeFileReader(std::string path, ordered_json file, std::vector<WholeEntry> entries, ConvertEntry convert)
      : path_(std::move(path)),
        file_(std::move(file)),
        entries_(std::move(entries)),
        convert_(std::move(convert)) {}

  std::optional<DatasetRow> next() override {
    if (at_ == entries_.size()) return std::nullopt;
    const WholeEntry& entry = entries_[at_++];
    DatasetRow row{{path_, static_cast<int64_t>(at_)}, {}, entry.error, entry.name};
    if (!entry.file.empty()) row.place = {entry.file, 1};
    if (!row.error.empty()) return row;
    try {
      row.cells = convert_(entry);
    } catch (const BadText& bad) {
      row.error = bad.reason;
    }
    return row;
  }

  std::optional<int64_t> entries() const override { return static_cast<int64_t>(entries_.size()); }

 private:
  std::string path_;
  ordered_json file_;  // moving it left the values that `entries_` points to where they were
  std::vector<WholeEntry> entries_;
  ConvertEntry convert_;
  size_t at_ = 0;
};

class JsonLinesReader : public DatasetReader {
 public:
  JsonLinesReader(const std::string& path, ConvertLine convert)
      : path_(path), lines_(path), convert_(std::move(convert)) {}

  std::optional<DatasetRow> next() override {
    const auto line = lines_.next_record();
    if (!line) return std::nullopt;
    DatasetRow row{{path_, line->number}, {}, {}};
    ++row_;
    try {
      line->check();
      row.cells = convert_(parse_entry(line->text), row_);
    } catch (const BadText& bad) {
      row.error = bad.reason;
    }
    return row;
  }

 private:
  std::string path_;
  LineReader lines_;
  ConvertLine convert_;
  int64_t row_ = 0;
};

bool has_keys(const ordered_json& value, const std::vector<const char*>& keys) {
  return value.is_object() &&
         std::all_of(keys.begin(), keys.end(), [&](const char* key) { return value.contains(key); });
}

}  // namespace

ordered_json parse_entry(std::string_view text) {
  return parse_record<ordered_json>(text, {.values = kMostValues});
}

ordered_json csv_cell(std::string text) {
  if (text.empty()) return nullptr;
  if (!text.starts_with('[') && !text.starts_with('{')) return text;
  ordered_json value = read_json<ordered_json>(text, {.values = kMostValues});
  if (value.is_discarded()) return text;
  return value;
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
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) refuse("{}: the file is empty", path);
  try {
    return parse_entry(text);
  } catch (const BadText& bad) {
    if (is_json_line(std::string_view(text).substr(0, text.find('\n'))))
      refuse("{}: this file is JSON lines, but one JSON value is needed", path);
    refuse("{}: {}", path, bad.reason);
  }
}

const ordered_json& field(const ordered_json& object, const char* key) {
  if (!object.is_object()) reject("found {} instead of an object with \"{}\"", kind_of(object), key);
  const auto found = object.find(key);
  if (found == object.end()) reject("no \"{}\"", key);
  return *found;
}

const ordered_json& list_field(const ordered_json& object, const char* key) {
  const ordered_json& value = field(object, key);
  if (!value.is_array()) reject("\"{}\" is {}, not a list", key, kind_of(value));
  return value;
}

std::string text_field(const ordered_json& object, const char* key) {
  const ordered_json& value = field(object, key);
  if (!value.is_string()) reject("\"{}\" is {}, not text", key, kind_of(value));
  return value.get<std::string>();
}

ordered_json id_field(const ordered_json& object, const char* key) {
  const ordered_json& value = field(object, key);
  if (!value.is_string() && !value.is_number_integer())
    reject("\"{}\" is {}, not text or a whole number", key, kind_of(value));
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

std::unique_ptr<DatasetReader> whole_file_reader(const std::string& path, ordered_json file,
                                                 std::vector<WholeEntry> entries, ConvertEntry convert) {
  return std::make_unique<WholeFileReader>(path, std::move(file), std::move(entries), std::move(convert));
}

std::unique_ptr<DatasetReader> json_lines_reader(const std::string& path, const std::string& what,
                                                 const std::vector<const char*>& keys, ConvertLine convert) {
  LineReader lines(path);
  bool any = false, found = keys.empty();
  for (int i = 0; i < kProbedLines && !found; ++i) {
    const auto line = lines.next();
    if (!line) break;
    if (line->too_long || line->is_blank()) continue;
    any = true;
    found = has_keys(read_json<ordered_json>(line->text), keys);
  }
  if (any && !found)
    refuse("{}: this is not a {} file: it has no line with \"{}\"", path, what, fmt::join(keys, "\", \""));
  return std::make_unique<JsonLinesReader>(path, std::move(convert));
}

std::vector<std::string> answer_texts(const ordered_json& answers) {
  std::vector<std::string> texts;
  for (const ordered_json& answer : answers) texts.push_back(text_field(answer, "text"));
  return texts;
}

}  // namespace sheaf
