#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sheaf {

/// Where to compute.
struct Device {
  enum class Kind : uint8_t { automatic, cpu, cuda };
  Kind kind = Kind::automatic;
  std::optional<int32_t> index = {};  ///< of a CUDA device, where one is named

  bool operator==(const Device&) const = default;
};

/// auto, cpu, cuda, cuda:N, or N for the latter. Refuses anything else; `where` says what named it.
Device parse_device(std::string_view text, std::string_view where);

/// auto, cpu, cuda or cuda:N.
std::string device_text(const Device& device);

}  // namespace sheaf
