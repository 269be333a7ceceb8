#pragma once
#include <string>
#include <vector>

#include "core/eval/eval_table.h"

namespace sheaf {

/// A column of the table as people read it.
struct EvalColumn {
  std::string name;
  bool number = true;              ///< stands to the right
  bool paper = false;              ///< the paper's figures of the column before
  std::vector<std::string> cells;  ///< one a row; empty where there is nothing to say
};

/// The columns that have something in them, with the paper's figures beside ours.
std::vector<EvalColumn> table_columns(const EvalTable& table);

}  // namespace sheaf
