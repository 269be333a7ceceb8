#include <algorithm>
#include <array>
#include <cmath>

#include "core/text/utf8.h"
#include "io/base/json_file.h"
#include "io/base/line_reader.h"
#include "io/base/table_file.h"
#include "io/passages/passage.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kLongestPassage = 10 << 20;  // bytes
// What BEIR, LOFT and Pyserini call the columns.
constexpr std::array<std::string_view, 3> kTextColumns = {"text", "passage_text", "contents"};
constexpr std::array<std::string_view, 2> kTitleColumns = {"title", "title_text"};
constexpr std::array<std::string_view, 4> kIdColumns = {"id", "_id", "pid", "docid"};

bool is_passage_column(const std::string& name) {
  return std::ranges::count(kTextColumns, name) + std::ranges::count(kTitleColumns, name) +
             std::ranges::count(kIdColumns, name) >
         0;
}

/// The first of the columns that a row has; null: none.
const json* first_column(const json& cells, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto found = cells.find(name); found != cells.end() && !found->is_null()) return &*found;
  return nullptr;
}

const std::string& passage_text(const json& value, const char* what) {
  if (!value.is_string()) reject("its {} is {}, not text", what, kind_of(value));
  const auto& text = value.get_ref<const std::string&>();
  if (const size_t good = valid_prefix(text); good < text.size())
    reject("its {} is not valid UTF-8 at byte {}", what, good + 1);
  if (text.size() > kLongestPassage)
    reject("its {} has {} bytes; at most {} are allowed", what, text.size(), kLongestPassage);
  return text;
}

Passage passage_of(const json& cells, int64_t number) {
  Passage passage;
  const json* const text = first_column(cells, kTextColumns);
  if (text == nullptr) reject("it has no \"text\"");
  passage.text = passage_text(*text, "text");
  if (passage.text.find_first_not_of(" \t\r\n\v\f") == std::string::npos) reject("its text is empty");
  if (const json* const title = first_column(cells, kTitleColumns))
    passage.title = passage_text(*title, "title");
  const json* const id = first_column(cells, kIdColumns);
  passage.id = id == nullptr ? json(number) : *id;
  if (passage.id.is_string())
    passage_text(passage.id, "id");
  else if (!passage.id.is_number() ||
           (passage.id.is_number_float() && !std::isfinite(passage.id.get<double>())))
    reject("its id is {}, not text or a number", kind_of(passage.id));
  return passage;
}

}  // namespace

class PassageReader::File {
 public:
  virtual ~File() = default;
  /// `number`: of the row, where the file has no ids.
  virtual std::optional<Row> next(int64_t number) = 0;
};

class PassageReader::Lines : public File {
 public:
  explicit Lines(const std::string& path) : path_(path), reader_(path) {}

  std::optional<Row> next(int64_t number) override {
    const auto line = reader_.next_record();
    if (!line) return std::nullopt;
    try {
      line->check();
      return Row{passage_of(parse_json_line(line->text, is_passage_column), number), {}, 1, line->number};
    } catch (const BadText& bad) {
      return Row{{}, fmt::format("{}:{}: {}", path_, line->number, bad.reason)};
    }
  }

 private:
  std::string path_;
  LineReader reader_;
};

class PassageReader::Table : public File {
 public:
  explicit Table(const std::string& path) : path_(path), table_(path) {
    std::vector<std::string> names;
    bool text = false;
    for (const TableFile::Column& column : table_.columns()) {
      if (is_passage_column(column.name)) names.push_back(column.name);
      text = text || std::ranges::count(kTextColumns, column.name) > 0;
    }
    if (!text) refuse("{}: the file has no column \"text\" with the text of each passage", path);
    table_.select(names);
  }

  std::optional<Row> next(int64_t number) override {
    const auto row = table_.next_row();
    if (!row) return std::nullopt;
    try {
      if (!row->error.empty()) reject("{}", row->error);
      return Row{passage_of(row->cells, number), {}, 1, row->number};
    } catch (const BadText& bad) {
      return Row{{}, fmt::format("{}:{}: {}", path_, row->number, bad.reason), row->rows};
    }
  }

 private:
  std::string path_;
  TableFile table_;
};

PassageReader::PassageReader(std::vector<std::string> files, CorpusFormat format)
    : files_(std::move(files)), format_(format) {}

PassageReader::~PassageReader() = default;

std::string PassageReader::place(size_t file, int64_t number) const {
  return fmt::format("{}:{}", files_[file], number);
}

std::optional<PassageReader::Row> PassageReader::next() {
  for (; at_ < files_.size(); ++at_, file_.reset()) {
    if (!file_ && format_ == CorpusFormat::table) file_ = std::make_unique<Table>(files_[at_]);
    if (!file_) file_ = std::make_unique<Lines>(files_[at_]);
    if (auto row = file_->next(rows_ + 1)) {
      rows_ += row->rows;
      row->file = at_;
      return row;
    }
  }
  return std::nullopt;
}

}  // namespace sheaf
