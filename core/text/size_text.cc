#include "core/text/size_text.h"

#include <fmt/format.h>

namespace sheaf {

std::string size_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= 100'000'000) return fmt::format("{:.2f} GB", size / 1e9);
  if (bytes >= 100'000) return fmt::format("{:.2f} MB", size / 1e6);
  return bytes == 0 ? "0 kB" : fmt::format("{:.1f} kB", size / 1e3);
}

}  // namespace sheaf
