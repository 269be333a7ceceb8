#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string counted_text(std::string_view text) {
  return raw<uint64_t>(text.size()) + std::string(text);
}

/// Writes GGUF files by hand, right or wrong. Types of values: 4 uint32, 5 int32, 6 float32, 8 text, 9 list.
struct GgufBytes {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<std::string> values;
  std::vector<std::string> tensors;
  std::string data;
  uint64_t more_values = 0;   ///< claimed but not there
  uint64_t more_tensors = 0;  ///< claimed but not there

  void u32(std::string_view key, uint32_t value) { add_value(key, 4, raw(value)); }
  void f32(std::string_view key, float value) { add_value(key, 6, raw(value)); }
  void text(std::string_view key, std::string_view value) { add_value(key, 8, counted_text(value)); }
  void texts(std::string_view key, const std::vector<std::string>& texts) {
    std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(texts.size());
    for (const std::string& each : texts) bytes += counted_text(each);
    add_value(key, 9, bytes);
  }
  template <class T>
  void numbers(std::string_view key, uint32_t type, const std::vector<T>& numbers) {
    std::string bytes = raw(type) + raw<uint64_t>(numbers.size());
    for (const T number : numbers) bytes += raw(number);
    add_value(key, 9, bytes);
  }
  void tensor(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    std::string bytes = counted_text(name) + raw(static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) bytes += raw(size);
    tensors.push_back(bytes + raw(type) + raw(offset));
  }
  std::string bytes() const {
    std::string out = magic + raw(version) + raw<uint64_t>(tensors.size() + more_tensors) +
                      raw<uint64_t>(values.size() + more_values);
    for (const std::string& value : values) out += value;
    for (const std::string& one : tensors) out += one;
    if (!tensors.empty()) out.resize((out.size() + 31) / 32 * 32, '\0');
    return out + data;
  }

 private:
  void add_value(std::string_view key, uint32_t type, const std::string& value) {
    values.push_back(counted_text(key) + raw(type) + value);
  }
};

}  // namespace sheaf
