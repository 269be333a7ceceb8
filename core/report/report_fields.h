#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/report/report.h"

namespace sheaf {

/// A figure or a fact of a report that stands by itself. Writing, checking, adding, comparing and showing
/// reports all walk the table of them; report_lists() has the lists. Series and counts by name are elsewhere
/// (run_statistics.h).
struct ReportField {
  enum class Kind : uint8_t {
    text,
    text_or_null,
    count,   ///< whole, 0 or more
    whole,   ///< may be negative
    number,  ///< 0 or more
    list,    ///< of objects
  };
  /// What it is of several sessions or shards.
  enum class Adds : uint8_t {
    sum,
    most,
    first,
    last,
    derived,  ///< made from the other figures
  };
  enum class Better : uint8_t { neither, more, less };

  std::string_view path;  ///< "/tokens/prefill"; empty: made for comparisons only
  Kind kind = Kind::count;
  Adds adds = Adds::sum;
  nlohmann::ordered_json (*of_run)(const Report& run) = nullptr;  ///< null: such a run has none
  std::optional<double> (*made)(const nlohmann::ordered_json& report) = nullptr;  ///< by Adds::derived
  bool always = true;           ///< false: only some runs, or later versions of sheaf, have it
  std::string_view with = {};   ///< a place that no report has without this one
  std::string_view title = {};  ///< for people; empty: not compared and not listed
  std::string (*show)(double value) = nullptr;
  Better better = Better::neither;

  nlohmann::ordered_json::json_pointer pointer() const {
    return nlohmann::ordered_json::json_pointer(std::string(path));
  }
  /// Empty where the report has none.
  std::optional<double> value(const nlohmann::ordered_json& report) const;
};

std::span<const ReportField> report_fields();

/// A member of the entries of a list.
struct ReportMember {
  std::string key;
  ReportField::Kind kind = ReportField::Kind::count;
  ReportField::Adds adds = ReportField::Adds::sum;
  bool always = true;                      ///< false: only some runs, or later versions of sheaf, have it
  std::vector<ReportMember> entries = {};  ///< what those of a list have; the first member tells them apart
};

struct ReportLists {
  ReportMember engines, values, sample, reject_reasons;
};
const ReportLists& report_lists();

}  // namespace sheaf
