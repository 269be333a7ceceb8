#include "io/byte_source.h"

#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/result.h>
#include <arrow/util/compression.h>

#include "core/error.h"

namespace sheaf {
namespace {

template <class Value>
Value unwrap(const std::string& path, arrow::Result<Value> result) {
  if (!result.ok()) refuse("{}: cannot be read: {}", path, result.status().message());
  return std::move(result).ValueUnsafe();
}

class ArrowSource : public ByteSource {
 public:
  explicit ArrowSource(const std::string& path) : path_(path) {
    stream_ = unwrap(path, arrow::io::ReadableFile::Open(path));
    const bool gzip = path.ends_with(".gz");
    if (!gzip && !path.ends_with(".zst")) return;
    codec_ =
        unwrap(path, arrow::util::Codec::Create(gzip ? arrow::Compression::GZIP : arrow::Compression::ZSTD));
    stream_ = unwrap(path, arrow::io::CompressedInputStream::Make(codec_.get(), stream_));
  }

  size_t read(char* target, size_t size) override {
    return static_cast<size_t>(unwrap(path_, stream_->Read(static_cast<int64_t>(size), target)));
  }

 private:
  std::string path_;
  std::unique_ptr<arrow::util::Codec> codec_;  // outlives the stream that uses it
  std::shared_ptr<arrow::io::InputStream> stream_;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  return std::make_unique<ArrowSource>(path);
}

}  // namespace sheaf
