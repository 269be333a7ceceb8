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

constexpr double kUsualQuestion = 12, kUsualAnswer = 8;  // tokens

/// Mean lengths in tokens of records that are made up instead of read.
struct RecordStatistics {
  std::optional<double> instruction;     ///< not given: the job's own; without a job none
  double document = 0;                   ///< 0: there are no statistics
  std::optional<double> questions;       ///< not given: 1, or as many as the schema has attributes
  std::optional<double> question;        ///< not given: kUsualQuestion, or the schema's keys
  std::optional<double> answer;          ///< not given: kUsualAnswer; chat: as long as answers may be
  std::optional<double> documents = {};  ///< of a record, each as long as `document`; not given: 1
};

/// What `sheaf estimate` is asked, on the command line or in the job's `estimate` section. No run looks at
/// it.
struct EstimateWishes {
  std::string model;  ///< instead of the job's: a shape by name, a config.json, a folder or a GGUF file
  std::string hardware_from = "--hardware";  ///< where the next was asked for
  std::string hardware;            ///< devices of the list, with commas between them; empty: every GPU
  std::string within;              ///< the most time, as parse_duration reads it; empty: any
  std::optional<int64_t> sample;   ///< records that are looked at; not given: 512, fewer where they are long
  std::optional<int64_t> records;  ///< of the whole corpus; not given: counted
  std::optional<int64_t> devices;  ///< not given: the job's
  std::optional<double> tokens_per_byte;
  RecordStatistics statistics;  ///< its answers are those of a corpus too
  std::vector<SweepAxis> sweep;

  /// Takes from a job's section what is not wished here. `settled`: keys of sweeps that other options decide.
  void take_missing(const EstimateWishes& section, const std::vector<std::string>& settled);
};

/// Reads the section strictly.
EstimateWishes read_estimate_section(YamlMap map);

}  // namespace sheaf
