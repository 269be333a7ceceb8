#include "io/answers/answer_bytes.h"

#include <cstring>
#include <limits>

namespace sheaf {
namespace {

constexpr uint8_t kWatched = 0x80;

void append_number(uint64_t number, std::string& bytes) {
  for (; number >= 128; number >>= 7) bytes += static_cast<char>((number & 127) | 128);
  bytes += static_cast<char>(number);
}

void append_double(double value, std::string& bytes) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

std::optional<uint64_t> take_number(std::string_view& bytes) {
  uint64_t number = 0;
  for (int shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    number |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return number;
  }
  return std::nullopt;
}

bool take_double(std::string_view& bytes, double& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace

void append_answer(const Answer& answer, std::string& bytes) {
  const Answer plain;
  const bool watched = answer.null_logprob != plain.null_logprob || answer.alternative != plain.alternative ||
                       answer.null_margin != plain.null_margin;
  bytes += static_cast<char>(static_cast<uint8_t>(answer.ending) | (watched ? kWatched : 0));
  append_number(answer.tokens.size(), bytes);
  for (const TokenId token : answer.tokens) append_number(static_cast<uint32_t>(token), bytes);
  append_double(answer.logprob, bytes);
  if (!watched) return;
  append_double(answer.null_logprob, bytes);
  append_double(answer.alternative, bytes);
  append_double(answer.null_margin, bytes);
}

std::optional<Answer> take_answer(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto head = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  Answer answer;
  if ((head & ~kWatched) > static_cast<uint8_t>(Ending::length)) return std::nullopt;
  answer.ending = static_cast<Ending>(head & ~kWatched);
  const auto count = take_number(bytes);
  if (!count || *count > bytes.size()) return std::nullopt;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto token = take_number(bytes);
    if (!token || *token > static_cast<uint64_t>(std::numeric_limits<TokenId>::max())) return std::nullopt;
    answer.tokens.push_back(static_cast<TokenId>(*token));
  }
  if (!take_double(bytes, answer.logprob)) return std::nullopt;
  if (head & kWatched && !(take_double(bytes, answer.null_logprob) &&
                           take_double(bytes, answer.alternative) && take_double(bytes, answer.null_margin)))
    return std::nullopt;
  return answer;
}

}  // namespace sheaf
