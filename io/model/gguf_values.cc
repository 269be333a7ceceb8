#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "io/model/gguf.h"

namespace sheaf {
namespace {

template <class T>
T load_value(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

/// Hands a number to `use` as the type that it has in the file.
template <class Kind, class Use>
auto use_number(Kind kind, const std::byte* data, Use use) {
  switch (kind) {
    case Kind::f32:
      return use(load_value<float>(data));
    case Kind::f64:
      return use(load_value<double>(data));
    case Kind::u64:
      return use(load_value<uint64_t>(data));
    case Kind::i64:
      return use(load_value<int64_t>(data));
    case Kind::u32:
      return use(load_value<uint32_t>(data));
    case Kind::i32:
      return use(load_value<int32_t>(data));
    case Kind::u16:
      return use(load_value<uint16_t>(data));
    case Kind::i16:
      return use(load_value<int16_t>(data));
    case Kind::i8:
      return use(load_value<int8_t>(data));
    default:
      return use(load_value<uint8_t>(data));
  }
}

}  // namespace

const char* GgufFile::kind_name(Kind kind) {
  constexpr std::array names{"u8",      "i8",     "u16",   "i16", "u32", "i32", "f32",
                             "boolean", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<size_t>(kind)];
}

/// 0 for strings and arrays, whose size is in the file.
uint64_t GgufFile::kind_bytes(Kind kind) {
  constexpr std::array<uint64_t, 13> bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return bytes[static_cast<size_t>(kind)];
}

bool GgufFile::is_integer(Kind kind) {
  return kind != Kind::f32 && kind != Kind::f64 && kind != Kind::boolean && kind != Kind::string &&
         kind != Kind::array;
}

std::string GgufFile::describe(const Value& value) {
  if (value.kind == Kind::array)
    return fmt::format("an array of {} {}", value.count, kind_name(value.element));
  return kind_name(value.kind);
}

void GgufFile::wrong_kind(std::string_view key, const Value& value, const char* wanted) const {
  refuse("{}: metadata {} is {}, {} is needed", path(), shown(key), describe(value), wanted);
}

const GgufFile::Value& GgufFile::value(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) refuse("{}: metadata {} is missing", path(), shown(key));
  return found->second;
}

double GgufFile::read_number(Kind kind, const std::byte* data) {
  return use_number(kind, data, [](auto number) { return static_cast<double>(number); });
}

int64_t GgufFile::read_integer(std::string_view key, Kind kind, const std::byte* data) const {
  return use_number(kind, data, [&](auto number) {
    if constexpr (std::is_same_v<decltype(number), uint64_t>)
      if (!std::in_range<int64_t>(number))
        refuse("{}: metadata {} contains {}, which is too large", path(), shown(key), number);
    return static_cast<int64_t>(number);
  });
}

std::string_view GgufFile::string(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::string) wrong_kind(key, found, "a string");
  return {reinterpret_cast<const char*>(found.data), found.count};
}

int64_t GgufFile::integer(std::string_view key) const {
  const Value& found = value(key);
  if (!is_integer(found.kind)) wrong_kind(key, found, "an integer");
  return read_integer(key, found.kind, found.data);
}

uint64_t GgufFile::uint(std::string_view key) const {
  const int64_t number = integer(key);
  if (number < 0) refuse("{}: metadata {} is {}; it must be at least 0", path(), shown(key), number);
  return static_cast<uint64_t>(number);
}

double GgufFile::number(std::string_view key) const {
  const Value& found = value(key);
  if (!is_integer(found.kind) && found.kind != Kind::f32 && found.kind != Kind::f64)
    wrong_kind(key, found, "a number");
  return read_number(found.kind, found.data);
}

bool GgufFile::boolean(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::boolean) wrong_kind(key, found, "a boolean");
  return load_value<uint8_t>(found.data) != 0;
}

std::string_view GgufFile::string(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : fallback;
}
uint64_t GgufFile::uint(std::string_view key, uint64_t fallback) const {
  return has(key) ? uint(key) : fallback;
}
int64_t GgufFile::integer(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}
double GgufFile::number(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}
bool GgufFile::boolean(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

std::vector<std::string_view> GgufFile::strings(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::array || found.element != Kind::string)
    wrong_kind(key, found, "an array of strings");
  std::vector<std::string_view> out;
  out.reserve(found.count);
  const std::byte* at = found.data;
  for (uint64_t i = 0; i < found.count; ++i) {
    const auto length = load_value<uint64_t>(at);
    out.emplace_back(reinterpret_cast<const char*>(at + 8), length);
    at += 8 + length;
  }
  return out;
}

std::vector<float> GgufFile::floats(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::array || (found.element != Kind::f32 && found.element != Kind::f64)) {
    wrong_kind(key, found, "an array of floats");
  }
  std::vector<float> out(found.count);
  const uint64_t size = kind_bytes(found.element);
  for (uint64_t i = 0; i < found.count; ++i)
    out[i] = static_cast<float>(read_number(found.element, found.data + i * size));
  return out;
}

std::vector<int64_t> GgufFile::ints(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::array || (!is_integer(found.element) && found.element != Kind::boolean)) {
    wrong_kind(key, found, "an array of integers");
  }
  std::vector<int64_t> out(found.count);
  const uint64_t size = kind_bytes(found.element);
  for (uint64_t i = 0; i < found.count; ++i) out[i] = read_integer(key, found.element, found.data + i * size);
  return out;
}

}  // namespace sheaf
