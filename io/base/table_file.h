#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sheaf {

class TableSource;

/// A Parquet or Arrow file read batch by batch; what cannot be read costs its rows, not the file. Keeps
/// Arrow's headers away from everyone else.
class TableFile {
 public:
  /// An Arrow file where the name ends in .arrow, otherwise Parquet. Refuses, naming the file, when the
  /// footer cannot be read.
  explicit TableFile(const std::string& path);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  struct Column {
    std::string name;
    std::string type;  ///< Arrow's name for it
    enum class Shape : uint8_t { scalar, list, other } shape = Shape::scalar;
  };
  const std::vector<Column>& columns() const { return columns_; }
  int64_t rows() const;
  /// The text that TableWriter kept in the file's metadata; empty: none.
  std::string about() const;

  /// Decimals become numbers, as rows have them; otherwise they are texts with all their digits.
  void read_decimals_as_numbers() { decimals_as_numbers_ = true; }
  /// Chooses the columns to read, by name, before the first batch.
  void select(const std::vector<std::string>& names);

  struct Batch {
    int64_t first_row = 0;              ///< from 1
    int64_t rows = 0;                   ///< of this batch, or the rows that `error` costs
    std::vector<nlohmann::json> cells;  ///< one object a row: column → value
    std::string error;                  ///< where not empty, the rows could not be read
  };
  /// Skips whole row groups of at most `most` rows together without reading them. Returns the number of rows
  /// skipped, which is 0 in the midst of a group.
  int64_t skip_groups(int64_t most);
  /// The next rows, or nothing at the end.
  std::optional<Batch> next();

  struct Row {
    int64_t number = 0;  ///< from 1
    int64_t rows = 1;    ///< more where `error` costs several
    nlohmann::json cells;
    std::string error;  ///< where not empty, the rows could not be read
  };
  /// The next row, in place of next().
  std::optional<Row> next_row();

 private:
  void open();
  std::optional<Batch> step();
  Batch lose_rest(const std::string& reason);
  void next_group();

  std::string path_;
  std::unique_ptr<TableSource> source_;
  std::vector<Column> columns_;
  std::vector<int64_t> group_rows_;
  size_t group_ = 0;
  int64_t done_before_ = 0;    // rows of the groups before this one
  int64_t done_in_group_ = 0;  // rows of this group given out
  Batch batch_;                // of next_row()
  size_t given_ = 0;           // rows of batch_
  bool decimals_as_numbers_ = false;
};

}  // namespace sheaf
