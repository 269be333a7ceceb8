#include "core/tokenizer/hash_seed.h"

#include <chrono>

#include "core/base/random_stream.h"

namespace sheaf {

uint64_t hash_seed() {
  // Where the program and its stack lie differs, too.
  static const int place = 0;
  static const uint64_t seed =
      mix(reinterpret_cast<uintptr_t>(&place),
          static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  return seed;
}

}  // namespace sheaf
