#include "io/model/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/base/error.h"

namespace sheaf {

static_assert(std::endian::native == std::endian::little, "GGUF is read as it lies: little-endian");

/// Walks the header; nothing is read or allocated before it is known to lie inside the file.
class GgufFile::Reader {
 public:
  explicit Reader(GgufFile& out) : out_(out), bytes_(out.file_->bytes()) {}

  void read() {
    read_start();
    for (uint64_t i = 0; i < value_count_; ++i) read_value();
    for (uint64_t i = 0; i < tensor_count_; ++i) read_tensor();
    place_tensors();
  }

 private:
  const std::string& path() const { return out_.file_->path(); }
  uint64_t left() const { return bytes_.size() - at_; }

  const std::byte* take(uint64_t size, const char* what) {
    if (size > left()) {
      refuse("{}: the file ends inside {} ({} bytes needed at byte {}, {} left); it is cut short or damaged",
             path(), what, size, at_, left());
    }
    const std::byte* data = bytes_.data() + at_;
    at_ += size;
    return data;
  }
  template <class T>
  T number(const char* what) {
    return load_value<T>(take(sizeof(T), what));
  }
  std::string_view text(const char* what, uint64_t longest) {
    const auto length = number<uint64_t>(what);
    if (length > longest)
      refuse("{}: {} at byte {} has {} bytes; at most {} are allowed", path(), what, at_, length, longest);
    return {reinterpret_cast<const char*>(take(length, what)), length};
  }

  void read_start() {
    if (bytes_.size() < 8 || std::memcmp(bytes_.data(), "GGUF", 4) != 0)
      refuse("{}: this is not a GGUF file", path());
    at_ = 4;
    const auto version = number<uint32_t>("the header");
    if ((version & 0xffffU) == 0 && version != 0)
      refuse("{}: this is a big-endian GGUF file; only little-endian is supported", path());
    if (version == 1)
      refuse(
          "{}: this is GGUF version 1; only versions 2 and 3 are supported; convert the model again with a "
          "current tool",
          path());
    if (version != 2 && version != 3)
      refuse("{}: this is GGUF version {}; only versions 2 and 3 are supported", path(), version);
    out_.version_ = version;
    tensor_count_ = number<uint64_t>("the header");
    value_count_ = number<uint64_t>("the header");
    constexpr uint64_t smallest_value = 8 + 4 + 1;
    constexpr uint64_t smallest_tensor = 8 + 4 + 8 + 4 + 8;
    if (value_count_ > left() / smallest_value)
      refuse("{}: the file claims to have {} metadata values, more than fit in the file", path(),
             value_count_);
    if (tensor_count_ > left() / smallest_tensor)
      refuse("{}: the file claims to have {} tensors, more than fit in the file", path(), tensor_count_);
  }

  Kind kind(std::string_view key) {
    const auto number_of_kind = number<uint32_t>("a metadata value");
    if (number_of_kind > static_cast<uint32_t>(Kind::f64))
      refuse("{}: metadata {} has unknown type {}", path(), shown(key), number_of_kind);
    return static_cast<Kind>(number_of_kind);
  }

  void read_value() {
    const std::string_view key = text("a metadata key", 65535);
    Value value;
    value.kind = kind(key);
    if (value.kind == Kind::string) {
      value.count = number<uint64_t>("a metadata string");
      value.data = take(value.count, "a metadata string");
    } else if (value.kind == Kind::array) {
      read_array(key, value);
    } else {
      value.data = take(facts(value.kind).bytes, "a metadata value");
      if (value.kind == Kind::boolean && load_value<uint8_t>(value.data) > 1)
        refuse("{}: metadata {} is neither true nor false", path(), shown(key));
    }
    if (!out_.values_.emplace(key, value).second) refuse("{}: metadata {} appears twice", path(), shown(key));
  }

  void read_array(std::string_view key, Value& value) {
    value.element = kind(key);
    value.count = number<uint64_t>("a metadata array");
    if (value.element == Kind::array)
      refuse("{}: metadata {} is an array of arrays, which is not supported", path(), shown(key));
    value.data = bytes_.data() + at_;
    if (value.element == Kind::string) {
      if (value.count > left() / 8)
        refuse("{}: metadata {} claims to have {} strings, more than fit in the file", path(), shown(key),
               value.count);
      for (uint64_t i = 0; i < value.count; ++i)
        take(number<uint64_t>("a metadata string"), "a metadata string");
    } else {
      const uint64_t size = facts(value.element).bytes;
      if (value.count > left() / size)
        refuse("{}: metadata {} claims to have {} values, more than fit in the file", path(), shown(key),
               value.count);
      take(value.count * size, "a metadata array");
    }
  }

  void read_tensor() {
    FileTensor tensor;
    const std::string name(text("a tensor name", 1024));
    const auto dimensions = number<uint32_t>("a tensor description");
    if (dimensions > 4)
      refuse("{}: tensor {} has {} dimensions; at most 4 are allowed", path(), shown(name), dimensions);
    int64_t values = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
      const auto size = number<uint64_t>("a tensor description");
      if (size == 0) refuse("{}: tensor {} has an empty dimension", path(), shown(name));
      if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / values))
        refuse("{}: tensor {} has more values than can be counted", path(), shown(name));
      values *= static_cast<int64_t>(size);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    const auto type_number = number<uint32_t>("a tensor description");
    const auto offset = number<uint64_t>("a tensor description");
    tensor.type = fmt::format("type {}", type_number);
    if (const TensorType* type = find_ggml_type(type_number)) {
      const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
      if (row % type->block_values != 0) {
        refuse("{}: tensor {} has rows of {} values; {} needs a multiple of {}", path(), shown(name), row,
               type->name, type->block_values);
      }
      const int64_t blocks = values / type->block_values;
      if (blocks > std::numeric_limits<int64_t>::max() / type->block_bytes)
        refuse("{}: tensor {} has more bytes than can be counted", path(), shown(name));
      tensor.size = static_cast<uint64_t>(blocks * type->block_bytes);
      tensor.type = type->name;
      tensor.dtype = type->dtype;
    }
    tensor.file = path();
    const auto [added, fresh] = out_.tensors_.emplace(name, std::move(tensor));
    if (!fresh) refuse("{}: tensor {} appears twice", path(), shown(name));
    places_.push_back({&added->first, &added->second, offset});
  }

  void place_tensors() {
    const uint64_t alignment = out_.uint("general.alignment", 32);
    if (alignment < 8 || alignment > 65536 || !std::has_single_bit(alignment)) {
      refuse("{}: general.alignment is {}; it must be a power of two from 8 to 65536", path(), alignment);
    }
    const uint64_t start = (at_ + alignment - 1) / alignment * alignment;
    const uint64_t room = start <= bytes_.size() ? bytes_.size() - start : 0;
    for (const auto& [name, tensor, offset] : places_) {
      if (offset % alignment != 0)
        refuse("{}: tensor {} starts at offset {}, which is not a multiple of {}", path(), shown(*name),
               offset, alignment);
      if (offset > room || tensor->size > room - offset) {
        refuse(
            "{}: tensor {} ends past the end of the file (offset {} + {} bytes, {} available); the file is "
            "cut short or "
            "damaged",
            path(), shown(*name), offset, tensor->size, room);
      }
      tensor->data = bytes_.data() + start + offset;
    }
    std::erase_if(places_, [](const Place& place) { return place.tensor->size == 0; });
    std::ranges::sort(places_, {}, &Place::offset);
    for (size_t i = 1; i < places_.size(); ++i) {
      const Place &before = places_[i - 1], &after = places_[i];
      if (before.offset + before.tensor->size > after.offset)
        refuse("{}: tensors {} and {} overlap", path(), shown(*before.name), shown(*after.name));
    }
  }

  struct Place {
    const std::string* name;
    FileTensor* tensor;
    uint64_t offset;  ///< from the first tensor
  };

  GgufFile& out_;
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t value_count_ = 0;
  std::vector<Place> places_;  ///< in the order of the header
};

GgufFile GgufFile::open(const std::string& path) {
  GgufFile gguf;
  gguf.file_ = MappedFile::open(path);
  Reader(gguf).read();
  return gguf;
}

}  // namespace sheaf
