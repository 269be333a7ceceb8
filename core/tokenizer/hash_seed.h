#pragma once
#include <cstdint>

namespace sheaf {

/// A number that differs from process to process, for hashes of what a file holds: nobody can write a file
/// whose entries all fall on one place. No result depends on it.
uint64_t hash_seed();

}  // namespace sheaf
