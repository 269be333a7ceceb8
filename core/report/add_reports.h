#pragma once
#include <nlohmann/json.hpp>

namespace sheaf {

/// Two reports of parts of one run as one: counts and seconds are summed, rates are made anew from the sums,
/// the throughput of `later` follows on that of `earlier`. What describes the run is taken from `later`.
/// Throws nlohmann's exceptions where one of them is no whole report.
nlohmann::ordered_json add_reports(const nlohmann::ordered_json& earlier,
                                   const nlohmann::ordered_json& later);

}  // namespace sheaf
