#pragma once
#include <vector>

#include "core/estimate/probe.h"

namespace sheaf {

enum class ProbeKind {
  bare,       ///< rows that see but themselves: products and picks by the number of rows
  attention,  ///< many keys
  held_out,   ///< steps as real jobs have them, kept to check the curves with
};

struct ListedProbe {
  ProbeKind kind;
  Probe probe;
};

/// Bare probes first, with rising rows.
using ProbeList = std::vector<ListedProbe>;

ProbeList probes_for_gpu();
ProbeList probes_for_cpu();

}  // namespace sheaf
