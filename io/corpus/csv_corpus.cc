#include <algorithm>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "io/base/csv_reader.h"
#include "io/base/store_uri.h"
#include "io/corpus/corpus_formats.h"
#include "io/corpus/text_corpus.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kCheckedInStore = 100;  // headers, which take a request each

/// A cell as JSON has it. An empty one is null; a list stands in its cell as JSON.
json cell_of(std::string text, bool list) {
  if (text.empty()) return nullptr;
  if (list) {
    std::string trouble;
    json value = read_json(text, {.values = 1'000'000}, &trouble);
    if (trouble.empty() && value.is_array()) return value;
  }
  return text;
}

class CsvRecords : public RecordReader {
 public:
  /// Refuses a header without the mapped columns.
  CsvRecords(const std::string& path, const std::string& name, const RecordMapper& mapper)
      : rows_(path, name), mapper_(mapper) {
    const std::vector<std::string>& header = rows_.columns();
    if (header.empty()) return;  // an empty file has no rows
    for (const MappedColumn& wanted : mapper.columns()) {
      if (!wanted.optional) check_column(wanted, header, name);
      const auto times = std::ranges::count(header, wanted.name);
      if (times > 1)
        refuse("{}: {} has more than one column \"{}\"; rename one of them", wanted.place, name, wanted.name);
      if (times == 1)
        columns_.emplace_back(static_cast<size_t>(std::ranges::find(header, wanted.name) - header.begin()),
                              &wanted);
    }
  }

  bool next() override {
    row_ = rows_.next();
    return row_.has_value();
  }

  Row row(const std::string& file, int64_t number) const override {
    Place place{file, row_->line};
    if (!row_->error.empty()) return Reject{std::move(place), nullptr, row_->error};
    json cells = json::object();
    for (const auto& [at, column] : columns_) cells[column->name] = cell_of(rows_.field(at), column->list);
    return mapper_.map(std::move(place), cells, number);
  }

  int64_t taken() const override { return rows_.taken(); }

 private:
  CsvReader rows_;
  const RecordMapper& mapper_;
  std::vector<std::pair<size_t, const MappedColumn*>> columns_;  // where they stand
  std::optional<CsvReader::Row> row_;
};

}  // namespace

std::unique_ptr<Corpus> open_csv_corpus(std::vector<std::string> files, RecordMapper mapper,
                                        const std::string& standard_input) {
  const TextFiles text = text_files(std::move(files), standard_input);
  const bool numbered = mapper.numbers_records();
  const auto open = [text, shared = std::make_shared<const RecordMapper>(std::move(mapper))](size_t file) {
    return std::make_unique<CsvRecords>(text.paths[file], text.names[file], *shared);
  };
  for (size_t i = 0; i < text.paths.size(); ++i)  // better now than after hours of work
    if (i < kCheckedInStore || !is_uri(text.paths[i])) open(i);
  return open_text_corpus(text, open, numbered);
}

}  // namespace sheaf
