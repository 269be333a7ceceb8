#include "io/corpus/dataset_corpus.h"

#include "io/corpus/corpus_formats.h"
#include "io/datasets/dataset.h"

namespace sheaf {
namespace {

class DatasetCorpus : public Corpus {
 public:
  DatasetCorpus(const Job::Input& input, RecordMapper mapper)
      : input_(input), mapper_(std::move(mapper)), reader_(open()) {}

  std::optional<Row> next() override {
    auto row = reader_->next();
    if (!row) return std::nullopt;
    ++row_;
    if (!row->error.empty())
      return Reject{std::move(row->place), nullptr,
                    row->entry.empty() ? std::move(row->error) : row->entry + ": " + row->error};
    return mapper_.map(std::move(row->place), row->cells, row_);
  }

  int64_t position() const override { return row_; }

  void skip_to(int64_t position) override {
    while (row_ < position && reader_->next()) ++row_;
  }

  std::optional<int64_t> records_expected() const override { return reader_->entries(); }

  int64_t count_records(int64_t most) override {
    if (const auto entries = reader_->entries()) return std::min(*entries, most);
    const auto other = open();
    int64_t rows = 0;
    while (rows < most && other->next()) ++rows;
    return rows;
  }

 private:
  std::unique_ptr<DatasetReader> open() const {
    return open_dataset(input_.format, input_.path, input_.dataset);
  }

  Job::Input input_;
  RecordMapper mapper_;
  std::unique_ptr<DatasetReader> reader_;
  int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<Corpus> open_dataset_corpus(const Job& job, RecordMapper mapper) {
  const DatasetFormat& format = *find_dataset_format(job.input.format);
  std::vector<std::string> columns = format.task == TaskKind::ask
                                         ? std::vector<std::string>{"id", "context", "questions"}
                                         : std::vector<std::string>{"id", "category", "document", "gold"};
  if (format.documents) columns.emplace_back("documents");
  for (const MappedColumn& column : mapper.columns()) check_column(column, columns, "the dataset");
  return std::make_unique<DatasetCorpus>(job.input, std::move(mapper));
}

}  // namespace sheaf
