#include "io/row_writer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include "core/error.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLinesPerFlush = 256;

/// A full disk is the machine's fault; a path that may not be written is for the user to mend.
[[noreturn]] void fail_to_write(const std::string& path, int error) {
  if (error == ENOSPC || error == EDQUOT) fail("{}: the disk is full; free some space and run again", path);
  if (error == EIO) fail("{}: cannot be written: {}", path, std::strerror(error));
  refuse("{}: cannot be written: {}", path, error ? std::strerror(error) : "unknown error");
}

template <class Json>
std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

RowWriter::RowWriter(const std::string& folder, bool replace) : folder_(folder) {
  if (folder.empty()) refuse("output.path is empty");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse("{}: the folder cannot be made: {}", folder, error.message());
  rows_.path = (fs::path(folder) / "rows.jsonl").string();
  rejects_.path = (fs::path(folder) / "rejects.jsonl").string();
  if (!replace && fs::exists(rows_.path, error))
    refuse("{}: holds the rows of a finished job; choose another output.path or replace it with --restart",
           folder);
  rows_.open();
  rejects_.open();
}

void RowWriter::row(const nlohmann::ordered_json& row) {
  rows_.write(json_line(row));
}

void RowWriter::row(const nlohmann::json& row) {
  rows_.write(json_line(row));
}

void RowWriter::reject(const Reject& reject) {
  nlohmann::ordered_json line;
  line["file"] = reject.place.file;
  line["row"] = reject.place.row;
  line["id"] = reject.id;
  line["reason"] = reject.reason;
  rejects_.write(json_line(line));
}

void RowWriter::flush() {
  rows_.flush();
  rejects_.flush();
}

void RowWriter::finish() {
  // The rows come last: their name is the sign that the job is done.
  rejects_.finish();
  rows_.finish();
}

void RowWriter::Output::open() {
  errno = 0;
  file.reset(std::fopen(part().c_str(), "wb"));
  if (!file) fail_to_write(part(), errno);
}

void RowWriter::Output::write(std::string line) {
  if (!file) fail("{}: written to after it was finished", path);
  line += '\n';
  errno = 0;
  if (std::fwrite(line.data(), 1, line.size(), file.get()) != line.size()) fail_to_write(part(), errno);
  if (++lines % kLinesPerFlush == 0) flush();
}

void RowWriter::Output::flush() {
  errno = 0;
  if (file && std::fflush(file.get()) != 0) fail_to_write(part(), errno);
}

void RowWriter::Output::finish() {
  if (!file) return;
  flush();
  errno = 0;
  // A file system that cannot sync (EINVAL: a pipe, a device) has nothing to make durable.
  if (::fsync(::fileno(file.get())) != 0 && errno != EINVAL) fail_to_write(part(), errno);
  if (std::fclose(file.release()) != 0) fail_to_write(part(), errno);
  std::error_code error;
  fs::rename(part(), path, error);
  if (error) refuse("{}: cannot be renamed to {}: {}", part(), path, error.message());
}

}  // namespace sheaf
