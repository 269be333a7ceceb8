#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// Where to compute.
struct Device {
  enum class Kind : uint8_t { automatic, cpu, cuda };
  Kind kind = Kind::automatic;
  std::vector<int32_t> indices = {};  ///< of CUDA devices, one engine for each; empty: the first device
  bool all = false;                   ///< every CUDA device
  int32_t engines = 1;                ///< on the CPU: so many, which share its threads

  bool several() const { return all || indices.size() > 1 || engines > 1; }
  int32_t index() const { return indices.empty() ? 0 : indices.front(); }
  bool operator==(const Device&) const = default;
};

/// auto, cpu, cpu:N, cuda, cuda:all, cuda:N, cuda:N,M, or N for cuda:N. Refuses anything else; `where` says
/// what named it.
Device parse_device(std::string_view text, std::string_view where);

/// As parse_device reads it.
std::string device_text(const Device& device);

}  // namespace sheaf
