#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/estimate/sweep.h"
#include "io/base/yaml_reader.h"

namespace sheaf {

/// Refuses an unknown key and an empty list.
SweepAxis parse_sweep(const std::string& text);

/// Seconds of "2h", "90m" or "30s".
double parse_duration(const std::string& text);

/// Mean lengths in tokens, and questions of a document; documents of a record.
constexpr Range<double> kLengths{1, 1e7};
constexpr Range<double> kDocuments{1, 1000};

/// What `sheaf estimate` is asked, on the command line or in the job's `estimate` section. No run looks at
/// it.
struct EstimateWishes {
  std::string model;                         ///< instead of the job's
  std::string hardware_from = "--hardware";  ///< where the next was asked for
  std::string hardware;  ///< devices of the list, with commas between them; empty: every GPU
  std::string within;    ///< the most time, as parse_duration reads it; empty: any
  std::optional<int64_t> sample, records, devices;
  std::optional<double> answer_tokens, tokens_per_byte;
  std::optional<double> document_tokens, documents_per_record, questions, question_tokens, instruction_tokens;
  std::vector<SweepAxis> sweep;

  /// Takes from a job's section what is not wished here. `settled`: keys of sweeps that other options decide.
  void take_missing(const EstimateWishes& section, const std::vector<std::string>& settled);
};

/// Reads the section strictly.
EstimateWishes read_estimate_section(YamlMap map);

}  // namespace sheaf
