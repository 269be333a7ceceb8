#include "io/base/table_stream.h"

#include <algorithm>
#include <arrow/buffer.h>
#include <arrow/c/bridge.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <unistd.h>

#include "core/base/error.h"
#include "io/base/table_batch.h"
#include "io/base/table_source.h"

namespace sheaf {

/// The batches of a stream, cut small.
class StreamBatches {
 public:
  virtual ~StreamBatches() = default;
  virtual arrow::RecordBatchReader& reader() = 0;
  /// What is to be thrown in place of Arrow's error; nothing: that it breaks off.
  virtual void check_end() const {}

  std::string name;          ///< for messages
  std::vector<int> columns;  ///< to read
  std::shared_ptr<arrow::RecordBatch> whole;
  int64_t at = 0;  ///< row of `whole`

  /// Null at the end.
  std::shared_ptr<arrow::RecordBatch> next() {
    while (!whole || at == whole->num_rows()) {
      whole.reset();
      check_source(reader().ReadNext(&whole));
      if (!whole) return nullptr;
      whole = check_source(whole->SelectColumns(columns));
      // Offsets of another process, or of another library, would be read beyond their buffers.
      check_source(whole->ValidateFull());
      at = 0;
    }
    const auto batch = whole->Slice(at, kBatchRows);
    at += batch->num_rows();
    return batch;
  }
};

namespace {

constexpr int kBetweenLooks = 100;  // milliseconds
constexpr int64_t kFirstPiece = 1 << 20;
constexpr int64_t kMostMemory = 2LL << 30;
constexpr size_t kHeadBytes = 6;

/// A pipe whose other end may be slow, or gone.
class PipeInput : public arrow::io::InputStream {
 public:
  PipeInput(int file, const std::atomic<bool>& stop, arrow::MemoryPool* pool)
      : file_(file), stop_(stop), pool_(pool) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return read_; }

  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    int64_t done = 0;
    while (done < size) {
      // Reading alone would continue after a signal; waiting does not.
      pollfd input{file_, POLLIN, 0};
      const int ready = ::poll(&input, 1, kBetweenLooks);
      if (stop_) return arrow::Status::Cancelled("interrupted");
      if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
      const ssize_t count = ::read(file_, static_cast<char*>(out) + done, static_cast<size_t>(size - done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return arrow::Status::IOError(std::strerror(errno));
      if (count == 0) break;
      if (head_.size() < kHeadBytes)
        head_.append(static_cast<const char*>(out) + done,
                     std::min(static_cast<size_t>(count), kHeadBytes - head_.size()));
      done += count;
    }
    read_ += done;
    return done;
  }

  /// What a message claims to hold takes memory only as it comes.
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(std::min(size, kFirstPiece), pool_));
    int64_t done = 0;
    for (;;) {
      const int64_t wanted = buffer->size() - done;
      ARROW_ASSIGN_OR_RAISE(const int64_t count, Read(wanted, buffer->mutable_data() + done));
      done += count;
      if (count < wanted || done == size) break;
      ARROW_RETURN_NOT_OK(buffer->Resize(std::min(size, done * 4)));
    }
    ARROW_RETURN_NOT_OK(buffer->Resize(done));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

  const std::string& head() const { return head_; }  ///< the first bytes of all
  bool stopped() const { return stop_; }

 private:
  int file_;
  const std::atomic<bool>& stop_;
  arrow::MemoryPool* pool_;
  int64_t read_ = 0;
  std::string head_;
  bool closed_ = false;
};

class IpcBatches : public StreamBatches {
 public:
  IpcBatches(int file, const std::string& called, const std::atomic<bool>& stop)
      : pool_(arrow::default_memory_pool(), kMostMemory),
        input_(std::make_shared<PipeInput>(file, stop, &pool_)) {
    name = called;
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.memory_pool = &pool_;
    options.use_threads = false;
    auto opened = arrow::ipc::RecordBatchStreamReader::Open(input_, options);
    if (opened.ok()) {
      reader_ = std::move(opened).ValueUnsafe();
      return;
    }
    check_end();
    refuse("{}: this is not a stream of Arrow's IPC format: {}", name, what_instead(opened.status()));
  }

  arrow::RecordBatchReader& reader() override { return *reader_; }
  void check_end() const override {
    if (input_->stopped()) fail_for_now("interrupted while reading {}", name);
  }

 private:
  std::string what_instead(const arrow::Status& status) const {
    const std::string& head = input_->head();
    if (head.empty()) return "it is empty; pipe a stream into it";
    if (head == "ARROW1")
      return "it is an Arrow file; write a stream instead (in pyarrow: ipc.new_stream), or name the file as "
             "input.path";
    if (head.starts_with("PAR1")) return "it is Parquet; name the file as input.path";
    if (head.starts_with("{"))
      return "it looks like JSON lines; leave out --format arrow, or set input.path to the file";
    return fit_to_print(status.message());
  }

  arrow::CappedMemoryPool pool_;
  std::shared_ptr<PipeInput> input_;
  std::shared_ptr<arrow::RecordBatchReader> reader_;
};

std::shared_ptr<arrow::RecordBatchReader> import_stream(ArrowArrayStream* stream, const std::string& name) {
  auto imported = arrow::ImportRecordBatchReader(stream);
  if (!imported.ok() && imported.status().message().find("non-struct") != std::string::npos)
    refuse("{}: it is a single column; give a table, such as series.to_frame()", name);
  if (!imported.ok())
    refuse("{}: the table cannot be read: {}", name, fit_to_print(imported.status().message()));
  return std::move(imported).ValueUnsafe();
}

class CBatches : public StreamBatches {
 public:
  CBatches(ArrowArrayStream* stream, const std::string& called) : reader_(import_stream(stream, called)) {
    name = called;
  }
  arrow::RecordBatchReader& reader() override { return *reader_; }

 private:
  std::shared_ptr<arrow::RecordBatchReader> reader_;
};

/// A copy that is read from its beginning, beside others who read it.
class CopyInput : public arrow::io::InputStream {
 public:
  explicit CopyInput(const ScratchFile& file) : file_(file) {}

  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }
  arrow::Result<int64_t> Tell() const override { return at_; }
  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    const int64_t count = std::min(size, file_.size() - at_);
    if (file_.read(at_, count, static_cast<char*>(out)) < count)
      return arrow::Status::IOError("a temporary file cannot be read");
    at_ += count;
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateBuffer(std::min(size, file_.size() - at_)));
    ARROW_RETURN_NOT_OK(Read(buffer->size(), buffer->mutable_data()));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  const ScratchFile& file_;
  int64_t at_ = 0;
};

std::shared_ptr<arrow::RecordBatchReader> read_copy(const ScratchFile& file) {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  return check_source(arrow::ipc::RecordBatchStreamReader::Open(std::make_shared<CopyInput>(file), options));
}

class CopiedBatches : public StreamBatches {
 public:
  CopiedBatches(const ScratchFile& file, const std::string& called) : reader_(read_copy(file)) {
    name = called;
  }
  arrow::RecordBatchReader& reader() override { return *reader_; }

 private:
  std::shared_ptr<arrow::RecordBatchReader> reader_;
};

/// Keeps the file for as long as somebody reads it.
class KeptCopy : public arrow::RecordBatchReader {
 public:
  explicit KeptCopy(std::shared_ptr<const ScratchFile> file)
      : file_(std::move(file)), reader_(read_copy(*file_)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    return reader_->ReadNext(batch);
  }

 private:
  std::shared_ptr<const ScratchFile> file_;
  std::shared_ptr<arrow::RecordBatchReader> reader_;
};

/// Arrow's way to a scratch file.
class CopyOutput : public arrow::io::OutputStream {
 public:
  explicit CopyOutput(ScratchFile& file) : file_(file) {}
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }
  arrow::Result<int64_t> Tell() const override { return file_.size(); }
  arrow::Status Write(const void* data, int64_t size) override {
    try {  // an exception must not pass through Arrow
      file_.append({static_cast<const char*>(data), static_cast<size_t>(size)});
      return arrow::Status::OK();
    } catch (const std::exception& error) {
      thrown_ = std::current_exception();
      return arrow::Status::IOError(error.what());
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  ScratchFile& file_;
  std::exception_ptr thrown_;
};

}  // namespace

TableStream::TableStream(std::unique_ptr<StreamBatches> batches)
    : batches_(std::move(batches)), columns_(describe_columns(*batches_->reader().schema())) {
  for (size_t i = 0; i < columns_.size(); ++i) batches_->columns.push_back(static_cast<int>(i));
}

TableStream::~TableStream() = default;

void TableStream::select(const std::vector<std::string>& names) {
  batches_->columns.clear();
  for (size_t i = 0; i < columns_.size(); ++i)
    if (std::ranges::find(names, columns_[i].name) != names.end())
      batches_->columns.push_back(static_cast<int>(i));
}

std::optional<TableFile::Row> TableStream::next_row() {
  while (given_ == cells_.size()) {
    cells_.clear();
    given_ = 0;
    try {
      const auto batch = batches_->next();
      if (!batch) return std::nullopt;
      cells_ = read_cells(*batch, batch->num_rows());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      batches_->check_end();
      refuse("{}: the stream breaks off or is damaged after row {}: {}", batches_->name, row_,
             fit_to_print(error.what()));
    }
  }
  return TableFile::Row{++row_, 1, std::move(cells_[given_++]), {}};
}

std::unique_ptr<TableStream> open_c_stream(ArrowArrayStream* stream, const std::string& name) {
  return std::make_unique<TableStream>(std::make_unique<CBatches>(stream, name));
}

std::unique_ptr<TableStream> open_ipc_stream(int file, const std::string& name,
                                             const std::atomic<bool>& stop) {
  return std::make_unique<TableStream>(std::make_unique<IpcBatches>(file, name, stop));
}

void copy_c_stream(ArrowArrayStream* stream, const std::string& name, ScratchFile& to,
                   const std::atomic<bool>& stop) {
  const auto reader = import_stream(stream, name);
  const auto copied = [&](const arrow::Status& status) {
    if (!status.ok()) refuse("{}: the table cannot be read: {}", name, fit_to_print(status.message()));
  };
  const auto target = std::make_shared<CopyOutput>(to);
  const auto written = [&](const arrow::Status& status) {
    if (status.ok()) return;
    target->rethrow();
    fail("{}: the table cannot be copied: {}", name, fit_to_print(status.message()));
  };
  auto writer = check_source(arrow::ipc::MakeStreamWriter(target, reader->schema()));
  for (std::shared_ptr<arrow::RecordBatch> batch;;) {
    if (stop) fail_for_now("interrupted while reading {}", name);
    copied(reader->ReadNext(&batch));
    if (!batch) break;
    copied(batch->ValidateFull());
    written(writer->WriteRecordBatch(*batch));
  }
  written(writer->Close());
}

std::unique_ptr<TableStream> open_copy(const ScratchFile& file, const std::string& name) {
  return std::make_unique<TableStream>(std::make_unique<CopiedBatches>(file, name));
}

void export_copy(std::shared_ptr<const ScratchFile> file, ArrowArrayStream* to) {
  check_source(arrow::ExportRecordBatchReader(std::make_shared<KeptCopy>(std::move(file)), to));
}

void TableInput::open() {
  if (opened_) return;
  opened_ = true;
  stream_ = open_();
  columns_ = stream_->columns();
}

const std::vector<TableFile::Column>& TableInput::columns() {
  open();
  return columns_;
}

std::unique_ptr<TableStream> TableInput::take() {
  open();
  if (!stream_ && again_) return open_();
  if (!stream_) fail("{} was read before", name_);
  return std::move(stream_);
}

}  // namespace sheaf
