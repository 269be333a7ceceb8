#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sheaf {

/// XXH3 in 128 bits over bytes that come in pieces: finds damage at the speed of memory. No protection
/// against a forger, for which there is Sha256.
class ByteSum {
 public:
  using Result = std::array<std::byte, 16>;

  ByteSum();
  ByteSum& add(std::span<const std::byte> bytes);
  Result result() const;

 private:
  struct State;
  struct Free {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Free> state_;
};

inline ByteSum::Result sum_bytes(std::span<const std::byte> bytes) {
  return ByteSum().add(bytes).result();
}

}  // namespace sheaf
