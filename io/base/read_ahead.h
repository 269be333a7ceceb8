#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace arrow::io {
class RandomAccessFile;
}

namespace sheaf {

/// A file of a store that has the next blocks on their way while the earlier ones are used, so that reading
/// does not wait for every answer of the store. Several places may be read by turns, as the columns of a
/// Parquet file are. Memory is bounded (64 MB). `size`: of the file, which must not change. A block that
/// cannot be read is asked for again (store_retry.h).
std::shared_ptr<arrow::io::RandomAccessFile> read_ahead(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                        int64_t size, std::string name);

}  // namespace sheaf
