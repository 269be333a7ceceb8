#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sheaf {

/// A Parquet file read batch by batch; what cannot be read costs its rows, not the file. Keeps Arrow's
/// headers away from everyone else.
class ParquetFile {
 public:
  /// Refuses, naming the file, when the footer cannot be read.
  explicit ParquetFile(const std::string& path);
  ~ParquetFile();
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;

  struct Column {
    std::string name;
    std::string type;  ///< Arrow's name for it
    enum class Shape : uint8_t { scalar, list, other } shape = Shape::scalar;
  };
  const std::vector<Column>& columns() const;
  int64_t rows() const;
  /// The text that ParquetTable kept in the file's metadata; empty: none.
  std::string about() const;

  /// Chooses the columns to read, by name, before the first batch.
  void select(const std::vector<std::string>& names);

  struct Batch {
    int64_t first_row = 0;              ///< from 1
    int64_t rows = 0;                   ///< of this batch, or the rows that `error` costs
    std::vector<nlohmann::json> cells;  ///< one object a row: column → value
    std::string error;                  ///< where not empty, the rows could not be read
  };
  /// Passes over whole row groups that have at most `most` rows together, unread, and says how many rows
  /// those are: 0 in the midst of a group.
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
  struct Reader;
  std::unique_ptr<Reader> reader_;
  Batch batch_;       // of next_row()
  size_t given_ = 0;  // rows of batch_
};

}  // namespace sheaf
