#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sheaf {

/// Rows of a matrix that do not lie in a file as the matrix's type has them, but are put together whenever
/// they are read.
class StoredRows {
 public:
  StoredRows() = default;
  StoredRows(const StoredRows&) = delete;
  StoredRows& operator=(const StoredRows&) = delete;
  virtual ~StoredRows() = default;

  /// Rows [first, first + count), one after the other.
  virtual void read(int64_t first, int64_t count, std::byte* out) const = 0;
  /// Brings what they are made of into memory: see Matrix::page_in().
  virtual void page_in(int64_t first, int64_t count) const = 0;
};

/// The rows from `first` on.
std::shared_ptr<const StoredRows> rows_from(std::shared_ptr<const StoredRows> all, int64_t first);

/// Brings bytes of a mapped file into memory. Where they cannot be read it fails with the name of the file
/// and of the `tensor`.
void page_in_bytes(const std::byte* begin, int64_t bytes, const std::string& tensor);

}  // namespace sheaf
