#include "core/text/format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace sheaf {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1e16) return fmt::format("{:.3g}", value);
  if (size >= 100 || value == std::round(value)) {
    std::string digits = fmt::format("{}", std::llround(size));
    for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
      digits.insert(static_cast<size_t>(at), ",");
    return (value < 0 && digits != "0" ? "-" : "") + digits;
  }
  return fmt::format("{:.3g}", value);
}

std::string time_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  return duration_text(seconds);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const auto two = [](int64_t first, const char* unit, int64_t second, const char* small) {
    return fmt::format("{} {}", first, unit) + (second > 0 ? fmt::format(" {} {}", second, small) : "");
  };
  const int64_t s = std::llround(std::max(0.0, seconds)), minutes = std::llround(seconds / 60),
                hours = std::llround(seconds / 3600);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return two(s / 60, "min", s % 60, "s");
  if (minutes < 48 * 60) return two(minutes / 60, "h", minutes % 60, "min");
  if (hours < 240) return two(hours / 24, "days", hours % 24, "h");
  return number_text(std::round(seconds / 86400)) + " days";
}

std::string size_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= 100'000'000) return fmt::format("{:.2f} GB", size / 1e9);
  if (bytes >= 100'000) return fmt::format("{:.2f} MB", size / 1e6);
  return bytes == 0 ? "0 kB" : fmt::format("{:.1f} kB", size / 1e3);
}

std::string money_text(double usd) {
  if (usd > 0 && usd < 0.0001) return "<$0.0001";
  return usd >= 100 ? fmt::format("${:.0f}", usd) : fmt::format("${:.{}f}", usd, usd >= 1 ? 2 : 4);
}

std::string percent_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace sheaf
