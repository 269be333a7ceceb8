#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/eval/eval_table.h"
#include "io/eval/lengths.h"
#include "io/files/job_file.h"

namespace sheaf {

/// An evaluation as its YAML file describes it: models × datasets × methods. docs/eval.md explains the keys.
struct Eval {
  std::string file, name, output, baseline;

  struct Model {
    std::string name, path;
    std::vector<JobChange> changes;                          ///< its other keys, and its `set`
    std::vector<std::string> skip;                           ///< datasets that it is not run on
    std::map<std::string, std::vector<JobChange>> set_on;    ///< more changes, by dataset
    std::map<std::string, std::vector<JobChange>> set_with;  ///< more changes, by method
    bool replaced = false;                                   ///< by --model NAME=PATH
  };
  struct Dataset {
    std::string name, place;
    std::string job;                     ///< the job file; empty where there are lengths
    std::optional<EvalLengths> lengths;  ///< rows are made up and timed
    std::string metric, value;           ///< of `sheaf score`; empty: quality is not measured
    std::string gold, gold_format;       ///< empty: the job's input
    std::vector<std::string> no_answer;  ///< answers that mean there is none
    bool unmentioned_absent = false;     ///< extract: attributes that the gold does not name count as absent
    std::string judge;                   ///< extract: path of the model that counts LLM-F1; empty: none
    std::vector<JobChange> changes;
  };
  struct Method {
    std::string label, place;
    std::vector<JobChange> changes;
    std::vector<std::string> skip;  ///< datasets that it is not run on
    // With lengths only.
    double accepted = 0;          ///< the share of its draft's tokens that count as right
    bool attention = true;        ///< false: a token sees one key, so that attention takes next to no time
    bool share_documents = true;  ///< false: each answer has a copy of its document
  };
  std::vector<Model> models;
  std::vector<Dataset> datasets;
  std::vector<Method> methods;
  std::vector<JobChange> cost;

  std::string paper;  ///< what the paper calls its table; empty: there is none
  struct PaperRow {
    std::string model, dataset, method;
    EvalFigures figures;  ///< in our units
    EvalDigits digits;    ///< as they are printed
  };
  std::vector<PaperRow> paper_rows;
};

/// What the command line chooses or changes.
struct EvalChoice {
  std::vector<std::string> models;       ///< "NAME", "NAME=PATH" or "all=PATH"
  std::vector<std::string> datasets;     ///< names; empty: all
  std::vector<std::string> methods;      ///< labels; empty: all
  std::vector<std::string> differences;  ///< two labels instead of `methods`, or none
  std::string data;                      ///< replaces the file's `data`
  std::string output;                    ///< replaces output.path
};

template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries, std::string Entry::*name) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.*name);
  return names;
}

/// Refuses unknown keys, names that are not unique or do not fit a file name, and figures of a paper that
/// belong to nothing, with file and line.
Eval read_eval(const std::string& path, const EvalChoice& choice);

/// Refuses a name that is not `known`, with `trouble` and the nearest one that is.
void check_known(const std::string& trouble, const std::string& name, const std::vector<std::string>& known);

/// Reads the `paper` section: figures as the paper prints them, and per dataset what its quality is
/// multiplied by to be in the units of our metric.
void read_paper(YamlMap map, Eval& eval);  // paper_figures.cc

}  // namespace sheaf
