#pragma once
#include <map>
#include <string>
#include <vector>

#include "io/base/file_layer.h"
#include "io/eval/judge.h"
#include "io/eval/samples.h"

namespace sheaf {

/// What `sheaf eval` is asked to do.
struct EvalCommand {
  std::string path;
  EvalChoice choice;
  GridOptions grid;
  std::vector<std::string> differences;  ///< two labels, or none
  size_t count = 10;                     ///< of differences shown
  bool log_samples = false, restart = false, check = false, json = false, quiet = false;
};

/// The runs of an evaluation and the table that comes of them. Making one reads all gold answers.
class Evaluation {
 public:
  Evaluation(FileLayer& files, const EvalCommand& command, const Eval& eval, std::vector<EvalCell> cells)
      : files_(files),
        command_(command),
        eval_(eval),
        cells_(std::move(cells)),
        gold_(eval, cells_),
        lengths_(files) {}

  const std::vector<EvalCell>& cells() const { return cells_; }
  /// Runs what is not finished and writes the table. The exit code: 1 where rows were rejected, 130 where it
  /// was interrupted.
  int run();
  /// Shows where two methods differ, from runs that are finished.
  void show_differences();

 private:
  bool quiet() const { return command_.quiet || command_.json; }
  size_t group_end(size_t begin) const;
  const AskedItems& asked(const EvalCell& cell);
  bool judge_runs();
  void make_table();
  void add_group(size_t begin, size_t end);
  void add_notes();
  void check_ours() const;
  void remove_table() const;
  void write_table() const;

  FileLayer& files_;
  const EvalCommand& command_;
  const Eval& eval_;
  std::vector<EvalCell> cells_;
  GoldAnswers gold_;
  std::map<size_t, AskedItems> asked_;           ///< by dataset
  std::vector<nlohmann::ordered_json> reports_;  ///< one a cell
  std::map<size_t, Judgements> judgements_;      ///< by cell
  EvalTable table_;
  std::vector<DifferencePair> pairs_;
  LengthsBench lengths_;
};

}  // namespace sheaf
