#include <algorithm>
#include <numeric>
#include <utility>

#include "core/task/record.h"
#include "io/base/file_layer.h"
#include "io/base/store.h"
#include "io/corpus/corpus_formats.h"

namespace sheaf {
namespace {

constexpr size_t kExpected = 3;  // small files of a store, which come one by one

using OpenReader = std::function<std::unique_ptr<RecordReader>(size_t file)>;

class TextCorpus : public Corpus {
 public:
  TextCorpus(TextFiles files, OpenReader open, bool numbered)
      : files_(std::move(files)), open_(std::move(open)), numbered_(numbered), alike_(numbered) {
    for (const std::string& path : files_.paths) {
      const auto bytes = is_uri(path) ? listed_object(path).bytes : file_size(path).value_or(0);
      sizes_.push_back(static_cast<double>(bytes));
    }
  }

  std::optional<CorpusRow> next() override {
    std::optional<CorpusRow> row = take();
    if (!row) return std::nullopt;
    const bool several = alike_.is_one_more(*row);
    alike_.add(*row);
    if (several) take_alike(std::get<Reject>(*row));
    return row;
  }

  int64_t position() const override { return row_; }

  void skip_to(int64_t position) override {
    if (position - row_ > AlikeRejects::kLookBack) {
      alike_.forget();
      pass(position - AlikeRejects::kLookBack);
    }
    while (row_ < position) {
      const std::optional<CorpusRow> row = take();
      if (!row) return;
      alike_.add(*row);
    }
    // Others that were told together with the last one belong to it.
    Reject last;
    if (alike_.in_stretch()) take_alike(last);
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
    TextCorpus other(files_, open_, numbered_);
    other.pass(most);
    return other.row_;
  }

 private:
  /// The next record, without a step on.
  const std::optional<CorpusRow>& peek() {
    if (!peeked_ && advance()) peeked_ = reader_->row(files_.names[file_], row_ + 1);
    return peeked_;
  }

  std::optional<CorpusRow> take() {
    peek();
    row_ += peeked_.has_value();
    return std::exchange(peeked_, std::nullopt);
  }

  /// Moves to record `position` without a look at the records.
  void pass(int64_t position) {
    for (; row_ < position && (peeked_ || advance()); ++row_) {
      peeked_.reset();
      if (*files_.stop) fail_for_now("interrupted while looking through the corpus");
    }
  }

  /// Adds those that follow a reject and are told together with it.
  void take_alike(Reject& reject) {
    while (row_ % AlikeRejects::kToldTogether != 0 && peek() && alike_.is_one_more(*peek())) {
      const CorpusRow row = *take();
      alike_.add(row);
      ++reject.records;
      reject.last_row = std::get<Reject>(row).place.row;
    }
  }

  /// Moves to the next record, in the next file if need be.
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
  std::optional<CorpusRow> peeked_;  // record row_ + 1, which the reader has come to
  int64_t row_ = 0;
  bool numbered_;
  AlikeRejects alike_;
};

}  // namespace

TextFiles text_files(std::vector<std::string> files, const std::string& standard_input,
                     const std::atomic<bool>& stop) {
  std::vector<std::string> paths = files;
  std::replace(paths.begin(), paths.end(), std::string("-"), standard_input);
  return {std::move(paths), std::move(files), &stop};
}

std::unique_ptr<Corpus> open_text_corpus(TextFiles files, OpenReader open, bool numbered) {
  return std::make_unique<TextCorpus>(std::move(files), std::move(open), numbered);
}

bool AlikeRejects::is_like_last(const Reject& reject, const std::string& kind) const {
  return count_ > 0 && reject.place.file == file_ && kind == kind_;
}

bool AlikeRejects::is_one_more(const CorpusRow& row) const {
  const auto* reject = std::get_if<Reject>(&row);
  return reject && count_ >= kToldEach && (numbered_ || reject->id.is_null()) &&
         is_like_last(*reject, reason_kind(reject->reason));
}

void AlikeRejects::add(const CorpusRow& row) {
  const auto* reject = std::get_if<Reject>(&row);
  if (!reject || !(numbered_ || reject->id.is_null())) return forget();
  std::string kind = reason_kind(reject->reason);
  count_ = is_like_last(*reject, kind) ? count_ + 1 : 1;
  file_ = reject->place.file;
  kind_ = std::move(kind);
}

}  // namespace sheaf
