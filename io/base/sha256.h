#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sheaf {

/// SHA-256 over bytes that come in pieces. A copy goes on by itself, so a running sum can be told at any
/// time.
class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  /// 64 hex digits, as sha256sum prints them.
  std::string hex() const;

 private:
  void add_block(const unsigned char* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};  // bytes that do not fill a block yet
  uint64_t size_ = 0;
};

inline std::string sha256(std::string_view bytes) {
  return Sha256().add(bytes).hex();
}

}  // namespace sheaf
