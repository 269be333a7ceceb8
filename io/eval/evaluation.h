#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/base/file_layer.h"
#include "io/eval/judge.h"
#include "io/eval/scores.h"

namespace sheaf {

struct EvalSettings {
  bool restart = false;       ///< throw away the runs that the output folder holds
  bool log_samples = false;   ///< write samples.jsonl beside the rows of each run
  double max_cell_hours = 0;  ///< a cell of lengths that is expected to take longer is left out; 0: none
};

struct EvalEnd {
  int exit_code = 0;        ///< 1 where rows were rejected, 130 where it was interrupted
  std::string interrupted;  ///< what to tell the user then; no table was written
};

/// The runs of an evaluation and the table that comes of them. Making one reads all gold answers.
class Evaluation {
 public:
  Evaluation(FileLayer& files, const EvalSettings& settings, const Eval& eval, std::vector<EvalCell> cells,
             RunListener& listener)
      : files_(files),
        settings_(settings),
        eval_(eval),
        listener_(listener),
        cells_(std::move(cells)),
        gold_(eval, cells_),
        lengths_(files) {}

  const std::vector<EvalCell>& cells() const { return cells_; }
  /// Runs what is not finished and writes the table.
  EvalEnd run();
  /// What run() wrote.
  const EvalTable& table() const { return table_; }
  /// Where two methods differ, one pair a model and dataset, at most `count` of each with their texts. The
  /// runs must be finished.
  std::vector<DifferencePair> differences(const std::string& first, const std::string& second, size_t count);

 private:
  void look_ahead();
  bool stopped() const { return !cells_.empty() && *cells_.front().job.stop; }
  bool leaves_out(const LengthsForecast& cell) const;
  nlohmann::ordered_json time_cell(size_t cell);
  std::optional<double> seconds_left(size_t cell) const;
  EvalEnd interrupted_end() const;
  size_t group_end(size_t begin) const;
  const AskedItems& asked(const EvalCell& cell);
  std::optional<EvalEnd> judge_runs();
  void make_table();
  void add_group(size_t begin, size_t end);
  void add_notes();
  void check_ours() const;
  void remove_table() const;
  void write_table() const;

  FileLayer& files_;
  const EvalSettings& settings_;
  const Eval& eval_;
  RunListener& listener_;
  std::vector<EvalCell> cells_;
  GoldAnswers gold_;
  std::map<size_t, AskedItems> asked_;           ///< by dataset
  std::vector<nlohmann::ordered_json> reports_;  ///< one a cell
  std::map<size_t, Judgements> judgements_;      ///< by cell
  EvalTable table_;
  std::vector<DifferencePair> pairs_;
  LengthsBench lengths_;

  using Clock = std::chrono::steady_clock;
  std::vector<LengthsForecast> expected_;  ///< one a cell; nothing for runs, and for what is measured already
  double expected_done_ = 0;               ///< expected seconds of the cells that were measured since
  double took_ = 0;                        ///< seconds that they took
  std::vector<double> runs_;               ///< seconds of the runs that this session finished
};

}  // namespace sheaf
