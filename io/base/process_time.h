#pragma once

namespace sheaf {

/// Seconds since the operating system started this process, to a hundredth.
double process_seconds();

/// The most memory this process has held, in bytes.
double process_peak_bytes();

}  // namespace sheaf
