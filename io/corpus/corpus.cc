#include "io/corpus/corpus.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/corpus/corpus_files.h"
#include "io/corpus/corpus_formats.h"
#include "io/corpus/dataset_corpus.h"

namespace sheaf {
namespace {

constexpr int64_t kSoonCounted = 100'000;

/// The first rows of another corpus, bad ones counted.
class FirstRows : public Corpus {
 public:
  FirstRows(std::unique_ptr<Corpus> all, int64_t most) : all_(std::move(all)), most_(most) {}
  std::optional<Row> next() override {
    if (all_->position() >= most_) return std::nullopt;
    return all_->next();
  }
  int64_t position() const override { return all_->position(); }
  void skip_to(int64_t position) override { all_->skip_to(position); }
  int64_t count_records(int64_t most) override { return all_->count_records(std::min(most, most_)); }
  std::optional<double> share_read() const override {
    const auto all = all_->share_read();
    return all ? std::max(*all, static_cast<double>(position()) / static_cast<double>(most_)) : all;
  }
  std::optional<int64_t> records_expected() const override {
    if (const auto all = all_->records_expected()) return std::min(*all, most_);
    // So many are soon counted, and then the number is no guess.
    if (most_ <= kSoonCounted) return all_->count_records(most_);
    return std::nullopt;
  }

 private:
  std::unique_ptr<Corpus> all_;
  int64_t most_;
};

std::unique_ptr<Corpus> open_format(const Job& job, const CorpusFiles& corpus, RecordMapper mapper) {
  if (corpus.format == CorpusFormat::dataset) return open_dataset_corpus(job, std::move(mapper));
  if (corpus.format == CorpusFormat::table) return open_parquet_corpus(corpus.files, std::move(mapper));
  const std::string& copied = job.input.standard_input.path;
  if (corpus.format == CorpusFormat::csv) return open_csv_corpus(corpus.files, std::move(mapper), copied);
  return open_jsonl_corpus(corpus.files, std::move(mapper), copied);
}

}  // namespace

void check_column(const MappedColumn& column, const std::vector<std::string>& columns,
                  const std::string& file) {
  if (std::find(columns.begin(), columns.end(), column.name) != columns.end()) return;
  if (column.request)
    refuse(
        "{}: {} is not a batch file: its lines have no \"{}\"; task.kind chat wants a request on each line, "
        "such as {{\"custom_id\": \"1\", \"body\": {{\"messages\": [{{\"role\": \"user\", \"content\": "
        "\"Hello\"}}]}}}}; to ask about columns of a file, use task.kind ask or extract",
        column.place, file, column.name);
  refuse("{}: {} has no column \"{}\"{}", column.place, file, column.name,
         suggest_spelling(column.name, columns));
}

std::unique_ptr<Corpus> open_corpus(const Job& job, const Schema* schema) {
  const CorpusFiles corpus = find_corpus_files(job.input, job.file + ": input.path: ");
  std::shared_ptr<const Contexts> contexts;
  if (!job.input.context_id.empty()) {
    const auto rows = open_format(job, corpus, RecordMapper(job, schema));
    contexts = gather_contexts(*rows, job.output.path);
    if (contexts->empty() && rows->position() > 0)
      refuse("{}: input.context: no record has text in column \"{}\"", job.file, job.input.context);
  }
  auto rows = open_format(job, corpus, RecordMapper(job, schema, contexts));
  if (job.input.limit > 0) return first_rows(std::move(rows), job.input.limit);
  return rows;
}

std::unique_ptr<Corpus> first_rows(std::unique_ptr<Corpus> corpus, int64_t end) {
  return std::make_unique<FirstRows>(std::move(corpus), end);
}

}  // namespace sheaf
