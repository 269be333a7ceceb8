#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model.h"

namespace sheaf {

/// One tensor of a model file, wherever it came from.
struct FileTensor {
  std::string type;            ///< as the file calls it
  std::optional<DType> dtype;  ///< empty: a type sheaf does not read
  std::vector<int64_t> shape;  ///< outermost first
  const std::byte* data = nullptr;
  uint64_t size = 0;  ///< bytes
  std::string file;   ///< where it lies, one of several shards perhaps

  int64_t values() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }
};

/// Refuses a tensor of floating-point numbers one of which is NaN or infinite.
void refuse_unless_finite(const std::string& name, const FileTensor& tensor);

/// The tensors of a model by name. Taking one checks its type and shape and remembers that it was used.
class TensorMap {
 public:
  /// `readable_types` is the list for messages.
  TensorMap(std::string source, std::string readable_types)
      : source_(std::move(source)), readable_types_(std::move(readable_types)) {}

  void add(const std::string& name, FileTensor tensor);
  bool has(const std::string& name) const { return tensors_.contains(name); }
  const std::map<std::string, FileTensor>& all() const { return tensors_; }
  const std::string& source() const { return source_; }

  /// Refuses a missing tensor, a type sheaf does not read and another shape. A vector has one row.
  Matrix take(const std::string& name, const std::vector<int64_t>& shape);
  /// The tensor as it lies in the file. Refuses a missing one and another type than one of `types`, and
  /// floating-point numbers that are not finite: the scales of weights in fewer bits.
  const FileTensor& take_raw(const std::string& name, std::initializer_list<std::string_view> types);
  /// Marks a tensor as known where it exists.
  void ignore(const std::string& name) { used_.insert(name); }
  /// The same where all its values are zero.
  void ignore_zeros(const std::string& name);
  /// Refuses tensors that nobody took: ignoring a weight would give wrong answers.
  void refuse_unused() const;

 private:
  const FileTensor& need(const std::string& name) const;

  std::string source_;
  std::string readable_types_;
  std::map<std::string, FileTensor> tensors_;
  std::set<std::string> used_;
};

}  // namespace sheaf
