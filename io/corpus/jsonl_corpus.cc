#include <algorithm>
#include <filesystem>
#include <numeric>
#include <unordered_set>

#include "core/base/error.h"
#include "io/base/foreign_files.h"
#include "io/base/json_line.h"
#include "io/base/line_reader.h"
#include "io/corpus/corpus_formats.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int kProbedLines = 100;
constexpr size_t kProbedColumns = 1000;

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

class JsonlCorpus : public Corpus {
 public:
  /// Reads `paths` and calls them `files`.
  JsonlCorpus(std::vector<std::string> files, std::vector<std::string> paths, RecordMapper mapper)
      : files_(std::move(files)), paths_(std::move(paths)), mapper_(std::move(mapper)) {
    for (const std::string& path : paths_) {
      std::error_code ignored;
      const auto bytes = std::filesystem::file_size(path, ignored);
      sizes_.push_back(ignored ? 0 : static_cast<double>(bytes));
    }
  }

  std::optional<Row> next() override {
    const auto line = next_line();
    if (!line) return std::nullopt;
    return row(*line);
  }

  int64_t position() const override { return row_; }

  void skip_to(int64_t position) override {
    while (row_ < position && next_line()) ++row_;
  }

  std::optional<double> share_read() const override {
    const double all = std::accumulate(sizes_.begin(), sizes_.end(), 0.0);
    if (all <= 0) return std::nullopt;
    const auto here = sizes_.begin() + static_cast<ptrdiff_t>(file_);
    return (std::accumulate(sizes_.begin(), here, 0.0) +
            (reader_ ? static_cast<double>(reader_->taken()) : 0)) /
           all;
  }

  int64_t count_records(int64_t most) override {
    JsonlCorpus other(files_, paths_, mapper_);
    while (other.row_ < most && other.next_line()) ++other.row_;
    return other.row_;
  }

 private:
  /// The next line that is a row.
  std::optional<LineReader::Line> next_line() {
    for (;;) {
      if (!reader_) {
        if (file_ == files_.size()) return std::nullopt;
        reader_ = std::make_unique<LineReader>(paths_[file_]);
      }
      auto line = reader_->next();
      if (!line) {
        reader_.reset();
        ++file_;
      } else if (line->too_long || !line->damage.empty() || !blank(line->text)) {
        return line;
      }
    }
  }

  Row row(const LineReader::Line& line) {
    Place place{files_[file_], line.number};
    ++row_;
    if (!line.damage.empty())
      return Reject{std::move(place), nullptr, "the rest of the file cannot be read: " + line.damage};
    if (line.too_long)
      return Reject{std::move(place), nullptr,
                    fmt::format("the line has more than {} MB", LineReader::kLongestLine >> 20)};
    try {
      const json cells =
          parse_json_line(line.text, [&](const std::string& key) { return mapper_.wants(key); });
      return mapper_.map(std::move(place), cells, row_, line.text);
    } catch (const BadText& reason) {
      return Reject{std::move(place), nullptr, reason.what()};
    }
  }

  std::vector<std::string> files_, paths_;
  std::vector<double> sizes_;  // in bytes, of the paths
  RecordMapper mapper_;
  size_t file_ = 0;
  std::unique_ptr<LineReader> reader_;
  int64_t row_ = 0;
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
  std::vector<std::string> paths = files;
  std::replace(paths.begin(), paths.end(), std::string("-"), standard_input);
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::vector<std::string> columns = probe_columns(paths[i]);
    if (columns.empty()) {
      refuse_foreign(paths[i], files[i]);
      continue;
    }
    for (const MappedColumn& column : mapper.columns())
      if (!column.optional) check_column(column, columns, files[i]);
    break;
  }
  for (const std::string& path : paths) open_bytes(path);  // better now than after hours of work
  return std::make_unique<JsonlCorpus>(std::move(files), std::move(paths), std::move(mapper));
}

}  // namespace sheaf
