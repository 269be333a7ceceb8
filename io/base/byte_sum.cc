#include "io/base/byte_sum.h"

#include <arrow/util/hashing.h>  // brings xxHash, whose version in Arrow every build has
#include <cstring>

namespace sheaf {

struct ByteSum::State {
  XXH3_state_t xxh;
};

void ByteSum::Free::operator()(State* state) const {
  delete state;
}

ByteSum::ByteSum() : state_(new State) {
  XXH3_128bits_reset(&state_->xxh);
}

ByteSum& ByteSum::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
  return *this;
}

ByteSum::Result ByteSum::result() const {
  XXH128_canonical_t canonical;  // bytes in one order, whatever the machine's
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  Result result;
  static_assert(sizeof canonical.digest == sizeof result);
  std::memcpy(result.data(), canonical.digest, result.size());
  return result;
}

}  // namespace sheaf
