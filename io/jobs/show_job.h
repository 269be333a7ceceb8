#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/task/row.h"
#include "io/jobs/finished_run.h"

namespace sheaf {

struct ShowSettings : RunPlaces {
  int64_t sample = 5;    ///< most rows to show
  std::string category;  ///< empty: any
  std::string where;     ///< "Brand=null" or "Brand=Acme"; empty: any row
  uint64_t seed = 0;
};

struct ShownRow {
  std::string id;
  std::string document;
  ExtractedValues values;
};

struct ShownRows {
  std::vector<ShownRow> rows;  ///< in input order
  int64_t matching = 0;        ///< of the run's rows
  bool unfinished = false;     ///< these are the rows that the run has so far
};

/// A random sample of a run's rows, with their documents.
ShownRows show_rows(const ShowSettings& settings);

}  // namespace sheaf
