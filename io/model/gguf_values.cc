#include <type_traits>

#include "core/base/error.h"
#include "io/model/gguf.h"

namespace sheaf {
template <class T>
constexpr GgufFile::KindFacts GgufFile::facts_of(const char* name) {
  return {name, sizeof(T), std::is_integral_v<T>,
          [](const std::byte* data) { return static_cast<double>(load_value<T>(data)); },
          [](const std::byte* data) { return static_cast<int64_t>(load_value<T>(data)); }};
}

const GgufFile::KindFacts& GgufFile::facts(Kind kind) {
  static constexpr KindFacts kFacts[] = {
      facts_of<uint8_t>("u8"),
      facts_of<int8_t>("i8"),
      facts_of<uint16_t>("u16"),
      facts_of<int16_t>("i16"),
      facts_of<uint32_t>("u32"),
      facts_of<int32_t>("i32"),
      facts_of<float>("f32"),
      {"boolean", 1, false, nullptr, facts_of<uint8_t>("").whole_number},
      {"string"},
      {"array"},
      facts_of<uint64_t>("u64"),
      facts_of<int64_t>("i64"),
      facts_of<double>("f64"),
  };
  return kFacts[static_cast<size_t>(kind)];
}

void GgufFile::wrong_kind(std::string_view key, const Value& value, const char* wanted) const {
  const std::string found = value.kind == Kind::array
                                ? fmt::format("an array of {} {}", value.count, facts(value.element).name)
                                : facts(value.kind).name;
  refuse("{}: metadata {} is {}, {} is needed", path(), shown(key), found, wanted);
}

const GgufFile::Value& GgufFile::value(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) refuse("{}: metadata {} is missing", path(), shown(key));
  return found->second;
}

int64_t GgufFile::read_integer(std::string_view key, Kind kind, const std::byte* data) const {
  const int64_t number = facts(kind).whole_number(data);
  if (kind == Kind::u64 && number < 0)
    refuse("{}: metadata {} contains {}, which is too large", path(), shown(key),
           static_cast<uint64_t>(number));
  return number;
}

std::string_view GgufFile::string(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::string) wrong_kind(key, found, "a string");
  return {reinterpret_cast<const char*>(found.data), found.count};
}

int64_t GgufFile::integer(std::string_view key) const {
  const Value& found = value(key);
  if (!facts(found.kind).integer) wrong_kind(key, found, "an integer");
  return read_integer(key, found.kind, found.data);
}

uint64_t GgufFile::uint(std::string_view key) const {
  const int64_t number = integer(key);
  if (number < 0) refuse("{}: metadata {} is {}; it must be at least 0", path(), shown(key), number);
  return static_cast<uint64_t>(number);
}

double GgufFile::number(std::string_view key) const {
  const Value& found = value(key);
  if (!facts(found.kind).number) wrong_kind(key, found, "a number");
  return facts(found.kind).number(found.data);
}

bool GgufFile::boolean(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::boolean) wrong_kind(key, found, "a boolean");
  return load_value<uint8_t>(found.data) != 0;
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
  const KindFacts& element = facts(found.element);
  for (uint64_t i = 0; i < found.count; ++i)
    out[i] = static_cast<float>(element.number(found.data + i * element.bytes));
  return out;
}

std::vector<int64_t> GgufFile::ints(std::string_view key) const {
  const Value& found = value(key);
  if (found.kind != Kind::array || (!facts(found.element).integer && found.element != Kind::boolean)) {
    wrong_kind(key, found, "an array of integers");
  }
  std::vector<int64_t> out(found.count);
  const uint64_t size = facts(found.element).bytes;
  for (uint64_t i = 0; i < found.count; ++i) out[i] = read_integer(key, found.element, found.data + i * size);
  return out;
}

}  // namespace sheaf
