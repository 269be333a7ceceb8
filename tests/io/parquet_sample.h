#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// A column of a sample table: `values` is a JSON list with one entry a row.
struct SampleColumn {
  std::string name;
  std::string type;  ///< string, large_string, dictionary, binary, int64, double, bool, date, strings,
                     ///< doubles, questions, documents, item
  nlohmann::json values;
};

/// Writes a Parquet file, compressed with zstd where `compress`, with dictionary pages where `dictionary`.
struct SampleLayout {
  int64_t rows_per_group = 1000;
  bool compress = false;
  bool dictionary = false;
  bool checksums = false;
};
void write_parquet(const std::string& path, const std::vector<SampleColumn>& columns,
                   const SampleLayout& layout = {});
/// Writes an Arrow IPC file in batches of `rows_per_batch`.
void write_arrow(const std::string& path, const std::vector<SampleColumn>& columns,
                 int64_t rows_per_batch = 1000);
/// Writes a stream of Arrow's IPC format in batches of `rows_per_batch`.
void write_arrow_stream(const std::string& path, const std::vector<SampleColumn>& columns,
                        int64_t rows_per_batch = 1000);

}  // namespace sheaf
