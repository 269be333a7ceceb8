#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/metric.h"

namespace sheaf {

/// The figures that a table has of a run, ours or a paper's.
struct EvalFigures {
  std::optional<double> throughput;  ///< questions or records a second, opening the model not counted
  std::optional<double> seconds;     ///< of work, opening the model not counted
  std::optional<double> quality;     ///< the metric's value, in the metric's own units
  std::optional<double> llm_f1;      ///< as a judge model counts, 0 to 1
  std::optional<double> exact_match_percent;  ///< answers equal to the baseline's
  std::optional<double> speedup;              ///< throughput over the baseline's
  std::optional<double> usd_per_1k;           ///< dollars for 1,000 questions or records
  std::optional<double> memory_gb;            ///< of the device at the peak
};

/// Digits after the point that a paper prints of each figure.
using EvalDigits = std::map<std::string, int>;

/// One run: a model with a method on a dataset.
struct EvalRow {
  std::string model, dataset, method;
  std::string unit;           ///< what is counted a second: "questions", "records", "tokens", "documents"
  int64_t count = 0;          ///< how many of them there were
  int64_t rejects = 0;        ///< rows that could not be answered
  std::string unreadable;     ///< a notice of gold values that their type does not hold; may be empty
  int64_t unknown = 0;        ///< answers that gold says nothing about, not scored
  int64_t missing = 0;        ///< questions or documents without a prediction, scored as wrong
  std::string metric, value;  ///< "squad", "f1"; empty: no quality is measured
  double best = 1;            ///< what the value is at best
  double usd_per_hour = 0;    ///< of all devices; 0: not known
  EvalFigures own;
  std::optional<double> predicted;   ///< throughput, as the device's profile has it
  std::optional<Interval> interval;  ///< of the quality, 95 %
  std::optional<double> p_value;     ///< of the quality's difference from the baseline
  EvalFigures paper;
  EvalDigits paper_digits;  ///< by the figure's name in JSON
};

/// One of the figures, for all that lists them.
struct EvalFigure {
  const char* name;  ///< in files
  const char* title;
  std::optional<double> EvalFigures::*figure;
  std::string (*show)(const EvalRow& row, double value);
};
std::span<const EvalFigure> eval_figures();

struct EvalTable {
  std::string name, baseline;
  std::string paper;               ///< "IPPD, table 5"; empty: none
  std::vector<std::string> notes;  ///< sentences that belong under the table
  std::vector<EvalRow> rows;
  bool differences = true;  ///< there are answers to compare, in differences.html
};

/// Sets the speed-up against the baseline's row of the same model and dataset, and the dollars.
void set_rates(EvalTable& table);

std::string eval_text(const EvalTable& table);      ///< for the terminal, aligned
std::string eval_markdown(const EvalTable& table);  ///< the cells of eval_text()
std::string eval_csv(const EvalTable& table);       ///< every figure in full, RFC 4180
nlohmann::ordered_json eval_json(const EvalTable& table);
std::string eval_html(const EvalTable& table);  ///< a page that needs nothing but itself

}  // namespace sheaf
