#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace sheaf {

/// SHA-256 over bytes that come in pieces. A copy continues by itself, so a running sum can be told at any
/// time.
class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256& other);

  Sha256& add(std::string_view bytes);
  /// The bytes of a number, or of an array of them, as they lie in memory.
  template <class Number>
  Sha256& add_raw(const Number& number) {
    return add({reinterpret_cast<const char*>(&number), sizeof number});
  }
  std::array<uint8_t, 32> digest() const;
  /// 64 hex digits, as sha256sum prints them.
  std::string hex() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

inline std::string sha256(std::string_view bytes) {
  return Sha256().add(bytes).hex();
}

/// As a content security policy wants it.
std::string base64_sha256(std::string_view bytes);

}  // namespace sheaf
