#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/base/mapped_file.h"
#include "io/model/tensor_map.h"

namespace sheaf {

/// One safetensors file, mapped. Opening checks the whole header: sizes, types, offsets in range, no overlap,
/// no holes.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::map<std::string, FileTensor>& tensors() const { return tensors_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, FileTensor> tensors_;
};

/// The tensors of a model: `path` is a safetensors file, or the index (*.index.json) of a sharded one.
struct SafetensorsModel {
  TensorMap tensors;
  std::vector<std::shared_ptr<const void>> files;
};
SafetensorsModel open_safetensors_model(const std::string& path);

}  // namespace sheaf
