#include "io/kv_store/kv_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <vector>

#include "core/base/random_stream.h"
#include "core/text/printable.h"
#include "io/base/descriptor.h"

namespace sheaf {
namespace {

constexpr std::string_view kMagic = "sheafkv1";
constexpr size_t kSummed = 16;  // where what the head's sum is of begins
constexpr size_t kTextAt = 72;

using Head = std::array<std::byte, kKvHeadBytes>;

void put(Head& head, size_t at, uint64_t number) {
  for (size_t i = 0; i < 8; ++i) head[at + i] = static_cast<std::byte>(number >> (8 * i));
}

uint64_t take(const Head& head, size_t at) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) number |= std::to_integer<uint64_t>(head[at + i]) << (8 * i);
  return number;
}

uint64_t sum_head(const Head& head) {
  return sum_bytes(std::span(head).subspan(kSummed));
}

/// The lines of text in the head, fit for a terminal.
std::vector<std::string> texts_of(const Head& head) {
  const auto* text = reinterpret_cast<const char*>(head.data()) + kTextAt;
  std::vector<std::string> lines(1);
  for (const char* end = text + (kKvHeadBytes - kTextAt); text < end && *text != '\0'; ++text)
    if (*text == '\n')
      lines.emplace_back();
    else
      lines.back() += *text;
  for (std::string& line : lines) line = printable_line(line);
  lines.resize(4);
  return lines;
}

std::span<const char> chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// After reading fewer bytes than there should be.
void unread(ReadKv& read, int64_t count) {
  if (count >= 0) return mark_damaged(read, "it was cut short");
  read.trouble = fmt::format("it cannot be read: {}", std::strerror(errno));
}

struct OpenKv : ReadKv {
  Descriptor file;
};

OpenKv open_kv(const std::string& path) {
  OpenKv open{{}, open_regular(path, O_RDONLY)};
  if (open.file.number() < 0) {
    open.trouble = fmt::format("it cannot be opened: {}", std::strerror(errno));
    return open;
  }
  Head head;
  const int64_t count = read_at(open.file.number(), 0, reinterpret_cast<char*>(head.data()), kKvHeadBytes);
  if (count < kKvHeadBytes) {
    unread(open, count);
  } else if (std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    mark_damaged(open, "this is not a file of keys and values, or another version of sheaf wrote it");
  } else if (take(head, 8) != sum_head(head)) {
    mark_damaged(open, "its head is damaged");
  } else {
    KvFileHead& read = open.head.emplace();
    read.bytes = static_cast<int64_t>(take(head, 16));
    read.sum = take(head, 24);
    std::memcpy(read.key.data(), head.data() + 32, read.key.size());
    read.tokens = static_cast<int64_t>(take(head, 64));
    std::vector<std::string> texts = texts_of(head);
    read.model = std::move(texts[0]);
    read.kind = std::move(texts[1]);
    read.role = std::move(texts[2]);
    read.state = std::move(texts[3]);
  }
  return open;
}

/// Adds up bytes that come in pieces, each a multiple of 64 bytes but the last.
class Sum {
 public:
  void add(std::span<const std::byte> bytes) {
    size_ += bytes.size();
    for (; bytes.size() >= 64; bytes = bytes.subspan(64)) add_block(bytes.data());
    if (bytes.empty()) return;
    std::array<std::byte, 64> last{};
    std::ranges::copy(bytes, last.begin());
    add_block(last.data());
  }
  uint64_t result() const {
    uint64_t sum = size_;
    for (const uint64_t lane : lanes_) sum = mix(sum, lane);
    return sum;
  }

 private:
  void add_block(const std::byte* bytes) {
    for (size_t i = 0; i < 8; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes + 8 * i, 8);
      lanes_[i] = (std::rotl(lanes_[i], 31) ^ word) * 0x9e3779b97f4a7c15u;
    }
  }

  std::array<uint64_t, 8> lanes_ = {1, 2, 3, 4, 5, 6, 7, 8};
  uint64_t size_ = 0;
};

}  // namespace

void mark_damaged(ReadKv& read, std::string why) {
  read.trouble = std::move(why);
  read.damaged = true;
}

uint64_t sum_bytes(std::span<const std::byte> bytes) {
  Sum sum;
  sum.add(bytes);
  return sum.result();
}

std::string key_text(const KvKey& key) {
  std::string text;
  for (const uint8_t byte : key) text += fmt::format("{:02x}", byte);
  return text;
}

void write_kv_file(OutputFile& file, const KvFileHead& about, std::span<const std::byte> bytes) {
  Head head{};
  std::memcpy(head.data(), kMagic.data(), kMagic.size());
  put(head, 16, bytes.size());
  put(head, 24, sum_bytes(bytes));
  std::memcpy(head.data() + 32, about.key.data(), about.key.size());
  put(head, 64, static_cast<uint64_t>(about.tokens));
  const std::string text =
      fmt::format("{:.200}\n{:.200}\n{:.200}\n{:.200}\n", about.model, about.kind, about.role, about.state);
  std::memcpy(head.data() + kTextAt, text.data(), text.size());
  put(head, 8, sum_head(head));
  for (const std::span<const std::byte> part : {std::span<const std::byte>(head), bytes})
    file.append({chars(part).data(), part.size()});
}

ReadKv read_kv_head(const std::string& path) {
  return open_kv(path);
}

ReadKv read_kv_file(const std::string& path, const KvKey& key, std::span<std::byte> to) {
  OpenKv open = open_kv(path);
  if (!open.head) return open;
  if (open.head->key != key || open.head->bytes != std::ssize(to)) {
    mark_damaged(open, "it holds other keys and values than its name says");
    return open;
  }
  const int64_t count =
      read_at(open.file.number(), kKvHeadBytes, reinterpret_cast<char*>(to.data()), std::ssize(to));
  if (count < std::ssize(to))
    unread(open, count);
  else if (sum_bytes(to) != open.head->sum)
    mark_damaged(open, "its bytes are damaged");
  return open;
}

ReadKv verify_kv_file(const std::string& path) {
  OpenKv open = open_kv(path);
  if (!open.head) return open;
  std::vector<std::byte> piece(int64_t{1} << 22);
  Sum sum;
  for (int64_t at = 0; at < open.head->bytes; at += std::ssize(piece)) {
    const int64_t wanted = std::min(std::ssize(piece), open.head->bytes - at);
    const int64_t count =
        read_at(open.file.number(), kKvHeadBytes + at, reinterpret_cast<char*>(piece.data()), wanted);
    if (count < wanted) {
      unread(open, count);
      return open;
    }
    sum.add(std::span(piece).first(static_cast<size_t>(wanted)));
  }
  if (sum.result() != open.head->sum) mark_damaged(open, "its bytes are damaged");
  return open;
}

}  // namespace sheaf
