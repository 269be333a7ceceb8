#include "io/corpus/text_corpus.h"

#include <algorithm>
#include <numeric>

#include "io/base/file_layer.h"
#include "io/base/store.h"

namespace sheaf {
namespace {

constexpr size_t kExpected = 3;  // small files of a store, which come one by one

using OpenReader = std::function<std::unique_ptr<RecordReader>(size_t file)>;

class TextCorpus : public Corpus {
 public:
  TextCorpus(TextFiles files, OpenReader open) : files_(std::move(files)), open_(std::move(open)) {
    for (const std::string& path : files_.paths) {
      const auto bytes = is_uri(path) ? listed_object(path).bytes : file_size(path).value_or(0);
      sizes_.push_back(static_cast<double>(bytes));
    }
  }

  std::optional<Row> next() override {
    if (!advance()) return std::nullopt;
    ++row_;
    return reader_->row(files_.names[file_], row_);
  }

  int64_t position() const override { return row_; }

  void skip_to(int64_t position) override {
    while (row_ < position && advance()) ++row_;
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
    TextCorpus other(files_, open_);
    other.skip_to(most);
    return other.row_;
  }

 private:
  /// Goes on to the next record, in the next file if need be.
  bool advance() {
    for (; file_ < files_.paths.size(); ++file_, reader_.reset()) {
      if (!reader_) open_file();
      if (reader_->next()) return true;
    }
    return false;
  }

  void open_file() {
    reader_ = open_(file_);
    for (size_t next = file_ + 1; next < std::min(file_ + 1 + kExpected, files_.paths.size()); ++next)
      if (is_uri(files_.paths[next])) expect_store_file(files_.paths[next]);
  }

  TextFiles files_;
  OpenReader open_;
  std::vector<double> sizes_;  // in bytes, of the paths
  size_t file_ = 0;
  std::unique_ptr<RecordReader> reader_;
  int64_t row_ = 0;
};

}  // namespace

TextFiles text_files(std::vector<std::string> files, const std::string& standard_input) {
  std::vector<std::string> paths = files;
  std::replace(paths.begin(), paths.end(), std::string("-"), standard_input);
  return {std::move(paths), std::move(files)};
}

std::unique_ptr<Corpus> open_text_corpus(TextFiles files, OpenReader open) {
  return std::make_unique<TextCorpus>(std::move(files), std::move(open));
}

}  // namespace sheaf
