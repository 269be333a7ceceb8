#pragma once
#include <cstdint>
#include <string>

// Numbers as people read them.

namespace sheaf {

/// 1234567 as "1,234,567"; 0.0123 as "0.0123"; a few digits are enough for reading.
std::string number_text(double value);
/// "0.42 s", "12.3 s", "4 min 5 s", "2 h 10 min", "3 days 4 h", "20 days".
std::string time_text(double seconds);
/// A duration in whole seconds: "12 s", "4 min 5 s".
std::string duration_text(double seconds);

/// "0.49 GB", "31.20 MB", "4.1 kB": in the largest unit that shows something of it.
std::string size_text(int64_t bytes);
/// "$0.0123", "$4.59", "$4591".
std::string money_text(double usd);
/// 0.1234 as "12.3 %".
std::string percent_text(double share);

}  // namespace sheaf
