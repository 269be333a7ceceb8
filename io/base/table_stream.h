#pragma once
#include <atomic>
#include <functional>

#include "io/base/scratch_file.h"
#include "io/base/table_file.h"

struct ArrowArrayStream;  // of Arrow's C stream interface

namespace sheaf {

class StreamBatches;

/// A table that comes as Arrow batches and can be read once, from its beginning.
class TableStream {
 public:
  explicit TableStream(std::unique_ptr<StreamBatches> batches);
  ~TableStream();
  TableStream(const TableStream&) = delete;
  TableStream& operator=(const TableStream&) = delete;

  const std::vector<TableFile::Column>& columns() const { return columns_; }
  /// Chooses the columns to read, by name, before the first row.
  void select(const std::vector<std::string>& names);
  /// The next row; nothing at the end. Refuses, naming the row, a stream that breaks off or is damaged.
  std::optional<TableFile::Row> next_row();

 private:
  std::unique_ptr<StreamBatches> batches_;
  std::vector<TableFile::Column> columns_;
  std::vector<nlohmann::json> cells_;  // of the batch being given out
  size_t given_ = 0;                   // rows of cells_
  int64_t row_ = 0;
};

/// Takes over a stream of Arrow's C interface; it is released with the object. `name`: what messages call it.
std::unique_ptr<TableStream> open_c_stream(ArrowArrayStream* stream, const std::string& name);
/// Reads Arrow's IPC stream format from a file or a pipe, which stays the caller's. Once `stop` is set, what
/// waits for the other end gives up.
std::unique_ptr<TableStream> open_ipc_stream(int file, const std::string& name,
                                             const std::atomic<bool>& stop);

/// Copies a stream of Arrow's C interface, which is released, to a file of Arrow's IPC format that can be
/// read again and again. Throws once `stop` is set.
void copy_c_stream(ArrowArrayStream* stream, const std::string& name, ScratchFile& to,
                   const std::atomic<bool>& stop);
/// Reads such a copy from its beginning; `file` must outlive the stream.
std::unique_ptr<TableStream> open_copy(const ScratchFile& file, const std::string& name);
/// The copy as a stream of Arrow's C interface, which keeps the file.
void export_copy(std::shared_ptr<const ScratchFile> file, ArrowArrayStream* to);

/// The records of a job that come as a stream of Arrow batches and not from a path.
class TableInput {
 public:
  using Open = std::function<std::unique_ptr<TableStream>()>;

  /// `name`: what messages and the places of records call it. `again`: `open` may be called any number of
  /// times, and gives the same rows each time.
  TableInput(std::string name, Open open, bool again = false)
      : name_(std::move(name)), open_(std::move(open)), again_(again) {}

  const std::string& name() const { return name_; }
  bool is_read_once() const { return !again_; }
  const std::vector<TableFile::Column>& columns();
  /// The stream from its beginning; only once where it cannot be read again.
  std::unique_ptr<TableStream> take();

 private:
  void open();

  std::string name_;
  Open open_;
  bool again_;
  std::unique_ptr<TableStream> stream_;
  std::vector<TableFile::Column> columns_;
  bool opened_ = false;
};

}  // namespace sheaf
