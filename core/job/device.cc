#include "core/job/device.h"

#include <charconv>

#include "core/base/error.h"
#include "core/text/spelling.h"

namespace sheaf {

Device parse_device(std::string_view text, std::string_view where) {
  using Kind = Device::Kind;
  if (text == "auto") return {Kind::automatic};
  if (text == "cpu") return {Kind::cpu};
  if (text == "cuda") return {Kind::cuda};
  constexpr std::string_view prefix = "cuda:";
  std::string_view number = text;
  if (number.starts_with(prefix)) number.remove_prefix(prefix.size());
  uint16_t index = 0;
  const char* end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, index);
  if (error != std::errc() || rest != end)
    refuse("{}: unknown device \"{}\"; use auto, cpu, cuda, cuda:N or N", where,
           shorten_text(std::string(text), 60));
  return {Kind::cuda, index};
}

std::string device_text(const Device& device) {
  if (device.kind == Device::Kind::automatic) return "auto";
  if (device.kind == Device::Kind::cpu) return "cpu";
  return device.index ? fmt::format("cuda:{}", *device.index) : "cuda";
}

}  // namespace sheaf
