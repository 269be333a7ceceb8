#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/task/item.h"

namespace sheaf {

/// Writes the outcome of a job: rows.jsonl and rejects.jsonl in a folder. Until finish() they carry the
/// ending .part, so that a file under its own name is always a whole one.
class RowWriter {
 public:
  /// Makes the folder. Refuses one that holds finished rows, unless `replace`; those stay until finish().
  explicit RowWriter(const std::string& folder, bool replace = false);

  /// Text that is not UTF-8 is written with replacement characters.
  void row(const nlohmann::ordered_json& row);
  void row(const nlohmann::json& row);
  void reject(const Reject& reject);

  /// Hands everything written so far to the system; also done every few hundred rows.
  void flush();
  /// Makes both files durable and gives them their names.
  void finish();

  int64_t rows() const { return rows_.lines; }
  int64_t rejects() const { return rejects_.lines; }
  const std::string& folder() const { return folder_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Output {
    std::string path;
    std::unique_ptr<std::FILE, Close> file;
    int64_t lines = 0;
    std::string part() const { return path + ".part"; }
    void open();
    void write(std::string line);
    void flush();
    void finish();
  };

  std::string folder_;
  Output rows_;
  Output rejects_;
};

}  // namespace sheaf
