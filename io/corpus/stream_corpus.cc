#include "core/base/error.h"
#include "io/corpus/corpus_formats.h"

namespace sheaf {
namespace {

class StreamCorpus : public Corpus {
 public:
  StreamCorpus(TableInput& table, RecordMapper mapper)
      : table_(table), stream_(table.take()), mapper_(std::move(mapper)) {
    std::vector<std::string> names;
    for (const TableFile::Column& column : stream_->columns())
      if (mapper_.wants(column.name)) names.push_back(column.name);
    stream_->select(names);
  }

  std::optional<CorpusRow> next() override {
    auto row = stream_->next_row();
    if (!row) return std::nullopt;
    row_ = row->number;
    return mapper_.map({table_.name(), row_}, row->cells, row_);
  }

  int64_t position() const override { return row_; }
  void skip_to(int64_t position) override {
    while (row_ < position && next()) {
    }
  }
  int64_t count_records(int64_t most) override {
    if (is_read_once())
      refuse("{}: a stream cannot be counted before it is read; name a file as input.path", table_.name());
    const auto other = table_.take();
    other->select({});
    int64_t rows = 0;
    while (rows < most && other->next_row()) ++rows;
    return rows;
  }
  bool is_read_once() const override { return table_.is_read_once(); }

 private:
  TableInput& table_;
  std::unique_ptr<TableStream> stream_;
  RecordMapper mapper_;
  int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<Corpus> open_stream_corpus(TableInput& table, RecordMapper mapper) {
  check_columns(table.columns(), table.name(), mapper);
  return std::make_unique<StreamCorpus>(table, std::move(mapper));
}

}  // namespace sheaf
