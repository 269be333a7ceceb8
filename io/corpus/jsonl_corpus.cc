#include <unordered_set>

#include "core/base/error.h"
#include "io/base/foreign_files.h"
#include "io/base/json_line.h"
#include "io/base/line_reader.h"
#include "io/base/store_uri.h"
#include "io/corpus/corpus_formats.h"
#include "io/corpus/text_corpus.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int kProbedLines = 100;
constexpr size_t kProbedColumns = 1000;

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

class JsonlReader : public RecordReader {
 public:
  JsonlReader(const std::string& path, const RecordMapper& mapper) : lines_(path), mapper_(mapper) {}

  bool next() override {
    do line_ = lines_.next();
    while (line_ && !line_->too_long && line_->damage.empty() && blank(line_->text));
    return line_.has_value();
  }

  Row row(const std::string& file, int64_t number) const override {
    Place place{file, line_->number};
    if (!line_->damage.empty())
      return Reject{std::move(place), nullptr, "the rest of the file cannot be read: " + line_->damage};
    if (line_->too_long)
      return Reject{std::move(place), nullptr,
                    fmt::format("the line has more than {} MB", LineReader::kLongestLine >> 20)};
    try {
      const json cells =
          parse_json_line(line_->text, [&](const std::string& key) { return mapper_.wants(key); });
      return mapper_.map(std::move(place), cells, number, line_->text);
    } catch (const BadText& reason) {
      return Reject{std::move(place), nullptr, reason.what()};
    }
  }

  int64_t taken() const override { return lines_.taken(); }

 private:
  LineReader lines_;
  const RecordMapper& mapper_;
  std::optional<LineReader::Line> line_;
};

/// The keys of the first rows of a file, in the order of their first appearance.
std::vector<std::string> probe_columns(const std::string& file) {
  std::vector<std::string> columns;
  std::unordered_set<std::string> seen;
  LineReader reader(file);
  for (int i = 0; i < kProbedLines; ++i) {
    const auto line = reader.next();
    if (!line) break;
    std::vector<std::string> keys;
    try {
      parse_json_line(line->text, [&](const std::string& key) {
        if (keys.size() < kProbedColumns) keys.push_back(key);
        return false;
      });
    } catch (const BadText&) {
      continue;  // it will be a reject of its own
    }
    for (std::string& key : keys)
      if (columns.size() < kProbedColumns && seen.insert(key).second) columns.push_back(std::move(key));
  }
  return columns;
}

}  // namespace

void refuse_foreign(const std::string& path, const std::string& name) {
  std::string first(1 << 12, '\0');
  first.resize(open_bytes(path)->read(first.data(), first.size()));
  if (const std::string found = describe_foreign(name, first); !found.empty()) refuse("{}: {}", name, found);
}

std::unique_ptr<Corpus> open_jsonl_corpus(std::vector<std::string> files, RecordMapper mapper,
                                          const std::string& standard_input) {
  TextFiles text = text_files(std::move(files), standard_input);
  for (size_t i = 0; i < text.paths.size(); ++i) {
    const std::vector<std::string> columns = probe_columns(text.paths[i]);
    if (columns.empty()) {
      refuse_foreign(text.paths[i], text.names[i]);
      continue;
    }
    for (const MappedColumn& column : mapper.columns())
      if (!column.optional) check_column(column, columns, text.names[i]);
    break;
  }
  for (const std::string& path : text.paths)
    if (!is_uri(path)) open_bytes(path);  // better now than after hours of work
  const bool numbered = mapper.numbers_records();
  return open_text_corpus(
      text,
      [paths = text.paths, shared = std::make_shared<const RecordMapper>(std::move(mapper))](size_t file) {
        return std::make_unique<JsonlReader>(paths[file], *shared);
      },
      numbered);
}

}  // namespace sheaf
