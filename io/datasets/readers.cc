#include "io/datasets/readers.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "io/base/line_reader.h"
#include "io/datasets/entry.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int kProbedLines = 100;

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

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
    if (!row.error.empty()) return row;
    try {
      row.cells = convert_(entry);
    } catch (const BadEntry& bad) {
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
    auto line = lines_.next();
    while (line && !line->too_long && line->damage.empty() && blank(line->text)) line = lines_.next();
    if (!line) return std::nullopt;
    DatasetRow row{{path_, line->number}, {}, {}};
    ++row_;
    try {
      if (!line->damage.empty()) bad_entry("the rest of the file cannot be read: {}", line->damage);
      if (line->too_long) bad_entry("the line has more than {} MB", LineReader::kLongestLine >> 20);
      row.cells = convert_(parse_entry(line->text), row_);
    } catch (const BadEntry& bad) {
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
    if (line->too_long || blank(line->text)) continue;
    any = true;
    try {
      found = has_keys(parse_entry(line->text), keys);
    } catch (const BadEntry&) {
      // it will be a broken entry of its own
    }
  }
  if (any && !found)
    refuse("{}: this is not a {} file: it has no line with \"{}\"", path, what, fmt::join(keys, "\", \""));
  return std::make_unique<JsonLinesReader>(path, std::move(convert));
}

std::vector<WholeEntry> nested_paragraphs(const ordered_json& file, const std::string& path,
                                          const std::string& what) {
  if (!has_list(file, "data")) refuse("{}: this is not a {} file: it has no \"data\" list", path, what);
  std::vector<WholeEntry> entries;
  std::set<std::string> names;
  size_t number = 0;
  for (const ordered_json& article : file["data"]) {
    const std::string place = fmt::format("article {}", ++number);
    if (!has_list(article, "paragraphs")) {
      entries.push_back({place, {}, nullptr, "no \"paragraphs\" list"});
      continue;
    }
    const std::string title = article.contains("title") && article["title"].is_string()
                                  ? article["title"].get<std::string>()
                                  : std::to_string(number - 1);
    std::string name = title;
    for (int twin = 2; !names.insert(name).second; ++twin) name = fmt::format("{}#{}", title, twin);
    size_t part = 0;
    for (const ordered_json& paragraph : article["paragraphs"]) {
      const std::string id = fmt::format("{}/{}", name, part++);
      entries.push_back({fmt::format("{}, paragraph {}", place, part), id, &paragraph, {}});
    }
  }
  return entries;
}

std::vector<std::string> answer_texts(const ordered_json& answers) {
  std::vector<std::string> texts;
  for (const ordered_json& answer : answers) texts.push_back(text_field(answer, "text"));
  return texts;
}

}  // namespace sheaf
