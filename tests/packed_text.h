#pragma once
#include <arrow/result.h>
#include <arrow/util/compression.h>
#include <stdexcept>
#include <string>

namespace sheaf::test {

/// `text` as one gzip member or zstd frame.
inline std::string pack(const std::string& text, const std::string& kind) {
  const auto codec =
      arrow::util::Codec::Create(kind == "gz" ? arrow::Compression::GZIP : arrow::Compression::ZSTD);
  if (!codec.ok()) throw std::runtime_error(codec.status().ToString());
  const auto most = (*codec)->MaxCompressedLen(static_cast<int64_t>(text.size()), nullptr);
  std::string packed(static_cast<size_t>(most), '\0');
  const auto size =
      (*codec)->Compress(static_cast<int64_t>(text.size()), reinterpret_cast<const uint8_t*>(text.data()),
                         most, reinterpret_cast<uint8_t*>(packed.data()));
  if (!size.ok()) throw std::runtime_error(size.status().ToString());
  packed.resize(static_cast<size_t>(*size));
  return packed;
}

}  // namespace sheaf::test
