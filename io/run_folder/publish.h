#pragma once
#include <cstdint>
#include <string>

#include "io/base/store.h"

namespace sheaf {

// A finished run is published as whole files under their final names: rows, rejects and reports first, then
// manifest.json, then _SUCCESS. Whoever sees _SUCCESS sees all of one run. Nothing is renamed.
//
// While a run is being published, the store has a file `_publishing` with that run's claim, a random text.
// What was put is noted in the run's folder (.published), each file with what the store then said of it. A
// publication that broke off resumes there; a note counts only while the store says the same.

/// Refuses a store that holds other files than those of a run, and one that another run was or is being
/// published to, unless that is to be replaced. To be asked before the work begins.
void check_store(Store& store, const std::string& folder, bool replace);

/// Whether the folder's run is finished and its publication was begun and not ended.
bool is_unpublished(Store& store, const std::string& folder);

/// Publishes the finished run of a folder; again is fine. `replace`: another run may be there, and is gone
/// once the first file of this one is put. Returns how many files were put.
int64_t publish_run(Store& store, const std::string& folder, bool replace);

}  // namespace sheaf
