#include "io/corpus/corpus.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include "core/text/spelling.h"
#include "io/base/sha256.h"
#include "io/corpus/corpus_formats.h"
#include "io/datasets/dataset.h"
#include "io/passages/passages.h"

namespace sheaf {
namespace {

constexpr int64_t kSoonCounted = 100'000;
constexpr int kBetweenLooks = 100;  // milliseconds
constexpr int64_t kLooked = 100;
constexpr size_t kShownNames = 3;

/// The first rows of another corpus, bad ones counted.
class FirstRows : public Corpus {
 public:
  FirstRows(std::unique_ptr<Corpus> all, int64_t most) : all_(std::move(all)), most_(most) {}
  std::optional<CorpusRow> next() override {
    if (all_->position() >= most_) return std::nullopt;
    return all_->next();
  }
  int64_t position() const override { return all_->position(); }
  void skip_to(int64_t position) override { all_->skip_to(position); }
  int64_t count_records(int64_t most) override { return all_->count_records(std::min(most, most_)); }
  bool is_read_once() const override { return all_->is_read_once(); }
  std::optional<double> share_read() const override {
    const auto all = all_->share_read();
    return all ? std::max(*all, static_cast<double>(position()) / static_cast<double>(most_)) : all;
  }
  std::optional<int64_t> records_expected() const override {
    if (const auto all = all_->records_expected()) return std::min(*all, most_);
    // So many are soon counted, and then the number is no guess.
    if (!is_read_once() && most_ <= kSoonCounted) return all_->count_records(most_);
    return std::nullopt;
  }

 private:
  std::unique_ptr<Corpus> all_;
  int64_t most_;
};

class DatasetCorpus : public Corpus {
 public:
  DatasetCorpus(const Job::Input& input, RecordMapper mapper)
      : input_(input), mapper_(std::move(mapper)), reader_(open()) {}

  std::optional<CorpusRow> next() override {
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

/// The dataset of a job whose `input.format` names one.
std::unique_ptr<Corpus> open_dataset_corpus(const Job& job, RecordMapper mapper) {
  const DatasetFormat& format = *find_dataset_format(job.input.format);
  std::vector<std::string> columns = format.task == TaskKind::ask
                                         ? std::vector<std::string>{"id", "context", "questions"}
                                         : std::vector<std::string>{"id", "category", "document", "gold"};
  if (format.documents) columns.emplace_back("documents");
  for (const MappedColumn& column : mapper.columns()) check_column(column, columns, "the dataset");
  return std::make_unique<DatasetCorpus>(job.input, std::move(mapper));
}

std::unique_ptr<Corpus> open_format(const Job& job, const CorpusFiles& corpus, RecordMapper mapper) {
  if (job.input.table) return open_stream_corpus(*job.input.table, std::move(mapper));
  if (corpus.format == CorpusFormat::dataset) return open_dataset_corpus(job, std::move(mapper));
  if (corpus.format == CorpusFormat::table) return open_parquet_corpus(corpus.files, std::move(mapper));
  const TextFiles text = text_files(corpus.files, job.input.standard_input.path, *job.stop);
  if (corpus.format == CorpusFormat::csv) return open_csv_corpus(text, std::move(mapper));
  return open_jsonl_corpus(text, std::move(mapper));
}

std::string some_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i)
    shown.push_back('"' + shorten_text(names[i], 60) + '"');
  return fmt::format(
      "{}{}", fmt::join(shown, ", "),
      names.size() > kShownNames ? fmt::format(" and {} more", names.size() - kShownNames) : "");
}

/// The job as one whose document is the category, whatever that is.
Job with_category_as_document(Job job) {
  job.input.document = {job.input.category};
  job.input.category.clear();
  job.input.id.clear();
  job.input.keep.clear();
  job.input.limit = kLooked;
  return job;
}

}  // namespace

void check_column(const MappedColumn& column, const std::vector<std::string>& columns,
                  const std::string& file) {
  if (std::ranges::any_of(columns, [&](const std::string& top) { return column.is_in(top); })) return;
  if (column.request)
    refuse(
        "{}: {} is not a batch file: its lines have no \"{}\"; task.kind chat wants a request on each line, "
        "such as {{\"custom_id\": \"1\", \"body\": {{\"messages\": [{{\"role\": \"user\", \"content\": "
        "\"Hello\"}}]}}}}; to ask about columns of a file, use task.kind ask or extract",
        column.place, file, column.name);
  refuse("{}: {} has no column \"{}\"{}", column.place, file, column.name,
         suggest_spelling(column.name, columns));
}

CorpusFiles find_corpus_files(const std::string& path, const std::string& format, const std::string& where) {
  if (find_dataset_format(format)) return {dataset_files(format, path, where), CorpusFormat::dataset};
  return find_table_files(path, format, where);
}

void list_corpus(Job::Input& input, const std::string& where) {
  if (input.table) return;
  input.listing = std::make_shared<const Job::Input::Listing>(
      input.path, input.format, find_corpus_files(input.path, input.format, where).files);
}

CorpusFiles find_corpus_files(const Job::Input& input, const std::string& where) {
  if (input.table) return {};
  const Job::Input::Listing* const kept = input.listing.get();
  if (!kept || kept->path != input.path || kept->format != input.format)
    return find_corpus_files(input.path, input.format, where);
  if (find_dataset_format(input.format)) return {kept->files, CorpusFormat::dataset};
  return {kept->files, format_of_files(kept->files, input.format, where)};
}

PassageFiles passage_files(const Job& job) {
  const auto place = job.input.places.find("input.corpus");
  return {job.input.corpus, job.input.corpus_index,
          (place == job.input.places.end() ? job.file + ": input.corpus" : place->second) + ": ", job.stop};
}

std::unique_ptr<Corpus> open_corpus(const Job& job, const Schema* schema) {
  const CorpusFiles corpus = find_corpus_files(job.input, job.file + ": input.path: ");
  std::shared_ptr<const Contexts> contexts;
  if (!job.input.context_id.empty()) {
    if (job.input.table && job.input.table->is_read_once())
      refuse("{}: input.context_id needs a corpus that can be read twice, which {} cannot; name a file",
             job.file, job.input.table->name());
    const auto rows = open_format(job, corpus, RecordMapper(job, schema));
    contexts = gather_contexts(*rows, job.output.path);
    if (contexts->empty() && rows->position() > 0)
      refuse("{}: input.context: no record has text in column \"{}\"", job.file, job.input.context);
  }
  std::shared_ptr<Passages> passages = job.input.passages;
  std::vector<std::string> notices;  // OpenedJob opens it first, and tells of it
  if (!job.input.corpus.empty() && !passages)
    passages = std::make_shared<Passages>(passage_files(job), notices);
  auto rows = open_format(job, corpus, RecordMapper(job, schema, contexts, std::move(passages)));
  if (job.input.limit > 0) return first_rows(std::move(rows), job.input.limit);
  return rows;
}

std::unique_ptr<Corpus> first_rows(std::unique_ptr<Corpus> corpus, int64_t end) {
  return std::make_unique<FirstRows>(std::move(corpus), end);
}

std::unique_ptr<ScratchFile> copy_standard_input(Job& job, const std::atomic<bool>& stop) {
  auto copy = std::make_unique<ScratchFile>(job.output.path);
  Sha256 sum;
  std::string buffer(1 << 20, '\0');
  for (;;) {
    // Reading alone would continue after a signal; waiting does not. A signal may come just before the wait,
    // which therefore ends by itself.
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, kBetweenLooks);
    if (stop) return nullptr;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EBADF)
      refuse("input.path: \"-\": standard input is closed; give the corpus there");
    if (count < 0) fail("standard input cannot be read: {}", std::strerror(errno));
    if (count == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(count));
    copy->append(bytes);
    sum.add(bytes);
  }
  job.input.standard_input = {copy->path(), copy->size(), sum.hex()};
  return copy;
}

std::string category_notice(const Job& job, const Schema& schema) {
  if (job.input.category.empty()) return {};
  std::vector<std::string> seen;
  int64_t records = 0;
  try {
    const Schema any{{{"any", {}}}};
    const auto corpus = open_corpus(with_category_as_document(job), &any);
    while (const auto row = corpus->next()) {
      const auto* record = std::get_if<Record>(&*row);
      if (record == nullptr) continue;
      if (schema.find(record->document)) return {};
      ++records;
      if (std::ranges::find(seen, record->document) == seen.end()) seen.push_back(record->document);
    }
  } catch (const Error&) {
    return {};
  }
  if (seen.empty()) return {};
  std::vector<std::string> known;
  for (const Category& category : schema.categories) known.push_back(category.name);
  return fmt::format(
      "none of the first {} records has a category of {}: column \"{}\" has {}, but the schema has {}; check "
      "input.category",
      records, job.task.schema, job.input.category, some_of(seen), some_of(known));
}

}  // namespace sheaf
