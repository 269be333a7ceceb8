#pragma once
#include <functional>

#include "core/task/record.h"
#include "io/base/table_stream.h"
#include "io/corpus/record_mapper.h"

namespace sheaf {

/// The files of a text corpus: where they are read, and how messages and places call them.
struct TextFiles {
  std::vector<std::string> paths, names;
  const std::atomic<bool>* stop;  ///< set once a look through them is to end
};
/// `standard_input`: the file to read where `files` says "-".
TextFiles text_files(std::vector<std::string> files, const std::string& standard_input,
                     const std::atomic<bool>& stop);

// The formats behind open_corpus.

std::unique_ptr<Corpus> open_jsonl_corpus(const TextFiles& text, RecordMapper mapper);
std::unique_ptr<Corpus> open_csv_corpus(const TextFiles& text, RecordMapper mapper);
std::unique_ptr<Corpus> open_parquet_corpus(std::vector<std::string> files, RecordMapper mapper);
/// Records that are read once: they can be neither counted nor gone back to.
std::unique_ptr<Corpus> open_stream_corpus(TableInput& table, RecordMapper mapper);

/// Refuses a file without JSON lines whose beginning says what it is instead; messages call it `name`.
void refuse_foreign(const std::string& path, const std::string& name);

/// Refuses a mapped column that is not among `columns`, with the nearest.
void check_column(const MappedColumn& column, const std::vector<std::string>& columns,
                  const std::string& file);

/// Refuses a table without the mapped columns, and columns of types that they cannot have.
void check_columns(const std::vector<TableFile::Column>& columns, const std::string& file,
                   const RecordMapper& mapper);

/// The records of one text file.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// Moves to the next record; false at the end.
  virtual bool next() = 0;
  /// The current record, the `number`th of the corpus. `file`: how its place calls the file.
  virtual CorpusRow row(const std::string& file, int64_t number) const = 0;
  /// About how many bytes of the file the records so far take.
  virtual int64_t taken() const = 0;
};

/// One file after the other, by readers that `open` gives; it gets the number of the file. A stretch of
/// records that are broken in the same way is told in short (AlikeRejects). `numbered`: ids are the numbers
/// of records.
std::unique_ptr<Corpus> open_text_corpus(TextFiles files,
                                         std::function<std::unique_ptr<RecordReader>(size_t file)> open,
                                         bool numbered);

/// Says of which rejects only the number is told, so that a damaged stretch of a file does not fill the disk
/// with one line per record: those behind a hundred of the same kind, in one file and without a record
/// between. They have no id by which anybody could look for them. This depends on the hundred records before
/// it only, so reading may begin anywhere.
class AlikeRejects {
 public:
  static constexpr int64_t kToldEach = 100;  ///< records
  /// Records at numbers between two multiples of this are told together, at most.
  static constexpr int64_t kToldTogether = 1000;
  /// How many records before a place decide what is told there.
  static constexpr int64_t kLookBack = kToldEach + 1;

  /// `numbered`: the ids are numbers of records, which nobody looks for.
  explicit AlikeRejects(bool numbered) : numbered_(numbered) {}

  /// Whether the row is of the kind of those before it, which are enough to tell no more than its number.
  bool is_one_more(const std::variant<Record, Reject>& row) const;
  /// Whether the last one was such a row.
  bool in_stretch() const { return count_ > kToldEach; }
  void add(const std::variant<Record, Reject>& row);
  /// What comes next is not known to follow what came before.
  void forget() { count_ = 0; }

 private:
  bool is_like_last(const Reject& reject, const std::string& kind) const;

  bool numbered_;
  std::string file_, kind_;
  int64_t count_ = 0;  ///< of the same kind, up to the last row
};

}  // namespace sheaf
