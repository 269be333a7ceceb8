#include "core/estimate/byte_tokenizer.h"

#include <cmath>
#include <fmt/format.h>
#include <functional>

namespace sheaf {

void ByteTokenizer::encode(std::string_view text, bool, Tokens& out) const {
  const auto count = static_cast<size_t>(std::ceil(static_cast<double>(text.size()) * tokens_per_byte_));
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = text.size() * i / count, end = text.size() * (i + 1) / count;
    const size_t hash = std::hash<std::string_view>()(text.substr(begin, end - begin));
    out.push_back(static_cast<TokenId>(hash % static_cast<size_t>(vocab_)));
  }
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids, bool) const {
  return std::string(static_cast<size_t>(std::round(static_cast<double>(ids.size()) / tokens_per_byte_)),
                     'x');
}

std::string ByteTokenizer::describe() const {
  return fmt::format("{:.2f} tokens per byte", tokens_per_byte_);
}

}  // namespace sheaf
