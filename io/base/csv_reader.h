#pragma once
#include <vector>

#include "io/base/line_reader.h"

namespace sheaf {

/// The rows of a CSV file with a header, one at a time, in bounded memory and linear time. Fields in double
/// quotes may hold separators, doubled quotes and line breaks. A row that breaks these rules costs its first
/// line only: reading continues at the next. A row that keeps to them and is too long costs itself only.
class CsvReader : BufferedReader {
 public:
  static constexpr size_t kLongestRow = 16 << 20;

  /// Reads the header. The separator is what a first line "sep=;" names, or a tab where the name ends in
  /// .tsv; else it is the one of comma, semicolon, tab and bar that the header has most. Refuses a file whose
  /// header cannot be read; `name` says what messages call it, if not by its path. `longest_row`: bytes of
  /// the longest row that is not broken.
  explicit CsvReader(const std::string& path, const std::string& name = {}, size_t longest_row = kLongestRow);

  /// Of the header; none where the file is empty or damaged before its end.
  const std::vector<std::string>& columns() const { return columns_; }

  struct Row {
    int64_t line = 0;      ///< where it begins, from 1
    std::string error;     ///< where not empty, the row is broken
    bool damaged = false;  ///< the file cannot be read from here on: the last row
  };
  /// The next row that is not blank.
  std::optional<Row> next();
  /// A field of the last row, which was not broken.
  std::string field(size_t column) const;
  /// About how many bytes of the file the rows so far take.
  int64_t taken() const { return BufferedReader::taken(end_ - begin_ - length_); }

 private:
  struct Field {
    size_t begin = 0, end = 0;  ///< in the row, without its quotes
    bool quoted = false;        ///< quotes in it are doubled
  };

  /// Whether the row has a byte at `at`, which is read if need be.
  bool has(size_t at);
  bool take_separator_line();
  void choose_separator(const std::string& path);
  void read_header(const std::string& name);
  /// Finds the fields of the row at `begin_` and goes to its end, or to where something is wrong with it, and
  /// says what; empty: nothing, but the row may be too long, and is then not held.
  std::string scan_row(size_t& at);
  std::string scan_quoted(size_t& at);
  std::string scan_plain(size_t& at);
  std::string let_go(size_t& at);
  std::string too_long_text() const;
  /// What is wrong with the row that was found.
  std::string check_row() const;
  std::string_view row() const { return {buffer_.data() + begin_, length_}; }
  void pass_row();
  void pass_line();
  void pass_broken(size_t at, Row& broken);
  /// In the file, of a byte of the row.
  int64_t offset_of(size_t at) const { return filled_ - static_cast<int64_t>(end_ - begin_ - at); }
  bool go_back(int64_t offset, int64_t line);

  std::string path_;
  size_t longest_row_;
  size_t length_ = 0;  // of the row at begin_, with its line end
  std::vector<Field> fields_;
  std::vector<std::string> columns_;
  char separator_ = ',';
  int64_t line_ = 1;          // of begin_
  bool too_long_ = false;     // the row that is looked at
  int64_t second_line_ = -1;  // offset in the file where the row's second line begins; -1: not let go yet
  size_t fields_let_go_ = 0;  // of the row that is looked at
  int64_t broken_until_ = 0;  // offset in the file of the furthest place where a row was found to be broken
  int unpacked_again_ = 0;    // times that a packed file was read from its beginning
};

}  // namespace sheaf
