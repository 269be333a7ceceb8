#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/base/byte_source.h"

namespace sheaf {

/// The rows of a CSV file (commas, fields in double quotes may hold line breaks), one at a time, in bounded
/// memory.
class CsvReader {
 public:
  /// Reads the header. Refuses a file that lacks one of `columns`; `what` says what it is then not.
  CsvReader(const std::string& path, const std::string& what, const std::vector<std::string>& columns);

  struct Row {
    int64_t line = 0;                 ///< where it begins, from 1
    std::vector<std::string> fields;  ///< those of `columns`, in their order
    std::string error;                ///< where not empty, the row is broken
  };
  std::optional<Row> next();

 private:
  /// Every field of the next row; false at the end. `error` says what is wrong with it.
  bool read_row(std::vector<std::string>& fields, std::string& error);
  int get();

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t at_ = 0, size_ = 0;
  int64_t line_ = 1;
  size_t width_ = 0;             // fields of the header
  std::vector<size_t> columns_;  // where the wanted ones stand
  bool lost_ = false;            // a field went on beyond all bounds: there is no telling where a row begins
};

}  // namespace sheaf
