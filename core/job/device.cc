#include "core/job/device.h"

#include <charconv>
#include <fmt/ranges.h>
#include <optional>
#include <ranges>

#include "core/base/error.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

constexpr int32_t kMostEngines = 256;

std::optional<int32_t> read_number(std::string_view text) {
  uint16_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

/// "0,2,5"; empty where it is none.
std::vector<int32_t> read_numbers(std::string_view text) {
  std::vector<int32_t> numbers;
  for (const auto part : std::views::split(text, ',')) {
    const std::optional<int32_t> number = read_number({part.begin(), part.end()});
    if (!number || numbers.size() == kMostEngines) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

Device parse_device(std::string_view text, std::string_view where) {
  using Kind = Device::Kind;
  if (text == "auto") return {Kind::automatic};
  if (text == "cpu") return {Kind::cpu};
  if (text == "cuda") return {Kind::cuda};
  if (text == "cuda:all") return {Kind::cuda, {}, true};
  if (text.starts_with("cpu:")) {
    const std::optional<int32_t> engines = read_number(text.substr(4));
    if (engines && *engines >= 1 && *engines <= kMostEngines) return {Kind::cpu, {}, false, *engines};
  } else if (std::vector<int32_t> numbers = read_numbers(text.substr(text.starts_with("cuda:") ? 5 : 0));
             !numbers.empty()) {
    return {Kind::cuda, std::move(numbers)};
  }
  refuse("{}: unknown device \"{}\"; use auto, cpu, cpu:N, cuda, cuda:all, cuda:N or cuda:N,M", where,
         shorten_text(std::string(text), 60));
}

std::string device_text(const Device& device) {
  if (device.kind == Device::Kind::automatic) return "auto";
  if (device.kind == Device::Kind::cpu)
    return device.engines > 1 ? fmt::format("cpu:{}", device.engines) : "cpu";
  if (device.all) return "cuda:all";
  return device.indices.empty() ? "cuda" : fmt::format("cuda:{}", fmt::join(device.indices, ","));
}

}  // namespace sheaf
