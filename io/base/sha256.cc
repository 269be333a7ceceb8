#include "io/base/sha256.h"

#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

void check_digest(bool good) {
  if (good) return;
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  fail("OpenSSL cannot compute SHA-256: {}", text.data());
}

/// Fetched once: a look through OpenSSL's providers takes longer than the sum of a short text.
const EVP_MD* algorithm() {
  static EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  check_digest(fetched != nullptr);
  return fetched;
}

}  // namespace

void Sha256::Free::operator()(EVP_MD_CTX* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check_digest(context_ && EVP_DigestInit_ex2(context_.get(), algorithm(), nullptr) == 1);
}

Sha256::Sha256(const Sha256& other) : context_(EVP_MD_CTX_new()) {
  *this = other;
}

Sha256& Sha256::operator=(const Sha256& other) {
  check_digest(context_ && (this == &other || EVP_MD_CTX_copy_ex(context_.get(), other.context_.get()) == 1));
  return *this;
}

Sha256& Sha256::add(std::string_view bytes) {
  check_digest(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  return *this;
}

std::array<uint8_t, 32> Sha256::digest() const {
  const Sha256 end = *this;
  std::array<uint8_t, 32> sum{};
  check_digest(EVP_DigestFinal_ex(end.context_.get(), sum.data(), nullptr) == 1);
  return sum;
}

std::string Sha256::hex() const {
  return fmt::format("{:02x}", fmt::join(digest(), ""));
}

std::string base64_sha256(std::string_view bytes) {
  const std::array<uint8_t, 32> digest = Sha256().add(bytes).digest();
  std::string out(44, '=');
  EVP_EncodeBlock(reinterpret_cast<uint8_t*>(out.data()), digest.data(), static_cast<int>(digest.size()));
  return out;
}

}  // namespace sheaf
