#include "io/kv_store/kv_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <vector>

#include "core/text/printable.h"
#include "io/base/descriptor.h"

namespace sheaf {
namespace {

constexpr std::string_view kMagic = "sheafkv2", kOldMagic = "sheafkv1";
constexpr size_t kHeadSumAt = 8, kBytesAt = 24, kSumAt = 32, kKeyAt = 48, kTokensAt = 80, kTextAt = 88;

using Head = std::array<std::byte, kKvHeadBytes>;

void put(Head& head, size_t at, uint64_t number) {
  for (size_t i = 0; i < 8; ++i) head[at + i] = static_cast<std::byte>(number >> (8 * i));
}

uint64_t take(const Head& head, size_t at) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) number |= std::to_integer<uint64_t>(head[at + i]) << (8 * i);
  return number;
}

void put(Head& head, size_t at, const ByteSum::Result& sum) {
  std::ranges::copy(sum, head.begin() + static_cast<ptrdiff_t>(at));
}

ByteSum::Result take_sum(const Head& head, size_t at) {
  ByteSum::Result sum;
  std::copy_n(head.begin() + static_cast<ptrdiff_t>(at), sum.size(), sum.begin());
  return sum;
}

ByteSum::Result sum_head(const Head& head) {
  return sum_bytes(std::span(head).subspan(kBytesAt));
}

bool begins_with(const Head& head, std::string_view magic) {
  return std::memcmp(head.data(), magic.data(), magic.size()) == 0;
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

KvFileHead read_head(const Head& head) {
  KvFileHead read;
  read.bytes = static_cast<int64_t>(take(head, kBytesAt));
  read.sum = take_sum(head, kSumAt);
  std::memcpy(read.key.data(), head.data() + kKeyAt, read.key.size());
  read.tokens = static_cast<int64_t>(take(head, kTokensAt));
  std::vector<std::string> texts = texts_of(head);
  read.model = std::move(texts[0]);
  read.kind = std::move(texts[1]);
  read.role = std::move(texts[2]);
  read.state = std::move(texts[3]);
  return read;
}

/// The head is there only where it and the size of the file are right.
OpenKv open_kv(const std::string& path) {
  OpenKv open{{}, open_regular(path, O_RDONLY | O_NOFOLLOW)};
  struct stat about {};
  if (open.file.number() < 0 || ::fstat(open.file.number(), &about) != 0) {
    open.trouble = fmt::format("it cannot be opened: {}", std::strerror(errno));
    return open;
  }
  Head head;
  const int64_t count = read_at(open.file.number(), 0, reinterpret_cast<char*>(head.data()), kKvHeadBytes);
  if (count >= std::ssize(kOldMagic) && begins_with(head, kOldMagic)) {
    mark_damaged(open, "an earlier version of sheaf wrote it");
  } else if (count < kKvHeadBytes) {
    unread(open, count);
  } else if (!begins_with(head, kMagic)) {
    mark_damaged(open, "this is not a file of keys and values, or a later version of sheaf wrote it");
  } else if (take_sum(head, kHeadSumAt) != sum_head(head)) {
    mark_damaged(open, "its head is damaged");
  } else if (KvFileHead read = read_head(head); about.st_size - kKvHeadBytes < read.bytes) {
    mark_damaged(open, "it was cut short");
  } else if (about.st_size - kKvHeadBytes > read.bytes) {
    mark_damaged(open, fmt::format("it has {} bytes, not {}", about.st_size, kKvHeadBytes + read.bytes));
  } else {
    open.head = std::move(read);
  }
  return open;
}

}  // namespace

void mark_damaged(ReadKv& read, std::string why) {
  read.trouble = std::move(why);
  read.damaged = true;
}

std::string key_text(const KvKey& key) {
  std::string text;
  for (const uint8_t byte : key) text += fmt::format("{:02x}", byte);
  return text;
}

void write_kv_file(OutputFile& file, const KvFileHead& about, std::span<const std::byte> bytes) {
  Head head{};
  std::memcpy(head.data(), kMagic.data(), kMagic.size());
  put(head, kBytesAt, bytes.size());
  put(head, kSumAt, sum_bytes(bytes));
  std::memcpy(head.data() + kKeyAt, about.key.data(), about.key.size());
  put(head, kTokensAt, static_cast<uint64_t>(about.tokens));
  const std::string text =
      fmt::format("{:.200}\n{:.200}\n{:.200}\n{:.200}\n", about.model, about.kind, about.role, about.state);
  std::memcpy(head.data() + kTextAt, text.data(), text.size());
  put(head, kHeadSumAt, sum_head(head));
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
  ByteSum sum;
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
