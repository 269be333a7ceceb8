#include "io/kv_store/kv_file.h"

#include <algorithm>
#include <arrow/util/hashing.h>  // brings xxHash, whose version in Arrow every build has
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include "core/text/printable.h"
#include "io/base/descriptor.h"

namespace sheaf {
namespace {

constexpr std::string_view kMagic = "sheafkv2", kOldMagic = "sheafkv1";

static_assert(std::endian::native == std::endian::little, "heads are written as they lie in memory");

struct Head {
  std::array<char, 8> magic;
  KvSum head_sum;  ///< of all that follows it in the head
  int64_t bytes;
  KvSum sum;
  KvKey key;
  int64_t tokens;
  std::array<char, 4008> texts;
};
static_assert(sizeof(Head) == kKvHeadBytes);

KvSum sum_head(const Head& head) {
  return sum_bytes(std::as_bytes(std::span(&head, 1)).subspan(offsetof(Head, bytes)));
}

bool begins_with(const Head& head, std::string_view magic) {
  return std::string_view(head.magic.data(), head.magic.size()) == magic;
}

KvSum kv_sum(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;  // bytes in one order, whatever the machine's
  XXH128_canonicalFromHash(&canonical, hash);
  return std::bit_cast<KvSum>(canonical);
}

/// After reading fewer bytes than there should be.
void unread(ReadKv& read, int64_t count) {
  if (count >= 0) return mark_damaged(read, "it was cut short");
  read.trouble = fmt::format("it cannot be read: {}", std::strerror(errno));
}

struct OpenKv {
  ReadKv read;
  Descriptor file;
};

KvFileHead read_head(const Head& head) {
  std::string_view texts(head.texts.data(), head.texts.size());
  texts = texts.substr(0, texts.find('\0'));
  const auto take_line = [&] {
    const std::string_view line = texts.substr(0, texts.find('\n'));
    texts.remove_prefix(std::min(line.size() + 1, texts.size()));
    return printable_line(line);
  };
  return {head.key, head.bytes, head.sum, head.tokens, take_line(), take_line(), take_line(), take_line()};
}

/// The head is there only where it and the size of the file are right.
OpenKv open_kv(const std::string& path) {
  OpenKv open{{}, open_regular(path, O_RDONLY | O_NOFOLLOW)};
  struct stat about {};
  if (open.file.number() < 0 || ::fstat(open.file.number(), &about) != 0) {
    open.read.trouble = fmt::format("it cannot be opened: {}", std::strerror(errno));
    return open;
  }
  Head head;
  const int64_t count = read_at(open.file.number(), 0, reinterpret_cast<char*>(&head), kKvHeadBytes);
  if (count >= std::ssize(kOldMagic) && begins_with(head, kOldMagic)) {
    mark_damaged(open.read, "an earlier version of sheaf wrote it");
  } else if (count < kKvHeadBytes) {
    unread(open.read, count);
  } else if (!begins_with(head, kMagic)) {
    mark_damaged(open.read, "this is not a file of keys and values, or a later version of sheaf wrote it");
  } else if (head.head_sum != sum_head(head)) {
    mark_damaged(open.read, "its head is damaged");
  } else if (about.st_size - kKvHeadBytes < head.bytes) {
    mark_damaged(open.read, "it was cut short");
  } else if (about.st_size - kKvHeadBytes > head.bytes) {
    mark_damaged(open.read, fmt::format("it has {} bytes, not {}", about.st_size, kKvHeadBytes + head.bytes));
  } else {
    open.read.head = read_head(head);
  }
  return open;
}

}  // namespace

KvSum sum_bytes(std::span<const std::byte> bytes) {
  return kv_sum(XXH3_128bits(bytes.data(), bytes.size()));
}

void mark_damaged(ReadKv& read, std::string why) {
  read.trouble = std::move(why);
  read.damaged = true;
}

std::string key_text(const KvKey& key) {
  return fmt::format("{:02x}", fmt::join(key, ""));
}

void write_kv_file(OutputFile& file, const KvFileHead& about, std::span<const std::byte> bytes) {
  Head head{{}, {}, std::ssize(bytes), sum_bytes(bytes), about.key, about.tokens, {}};
  kMagic.copy(head.magic.data(), head.magic.size());
  fmt::format("{:.200}\n{:.200}\n{:.200}\n{:.200}\n", about.model, about.kind, about.role, about.state)
      .copy(head.texts.data(), head.texts.size());
  head.head_sum = sum_head(head);
  file.append({reinterpret_cast<const char*>(&head), sizeof head});
  file.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

ReadKv read_kv_head(const std::string& path) {
  return open_kv(path).read;
}

ReadKv read_kv_file(const std::string& path, const KvKey& key, std::span<std::byte> to) {
  OpenKv open = open_kv(path);
  ReadKv& read = open.read;
  if (!read.head) return std::move(read);
  if (read.head->key != key || read.head->bytes != std::ssize(to)) {
    mark_damaged(read, "it holds other keys and values than its name says");
    return std::move(read);
  }
  const int64_t count =
      read_at(open.file.number(), kKvHeadBytes, reinterpret_cast<char*>(to.data()), std::ssize(to));
  if (count < std::ssize(to))
    unread(read, count);
  else if (sum_bytes(to) != read.head->sum)
    mark_damaged(read, "its bytes are damaged");
  return std::move(read);
}

ReadKv verify_kv_file(const std::string& path) {
  OpenKv open = open_kv(path);
  ReadKv& read = open.read;
  if (!read.head) return std::move(read);
  std::string piece(1 << 22, '\0');
  XXH3_state_t sum;
  XXH3_128bits_reset(&sum);
  for (int64_t at = 0; at < read.head->bytes; at += std::ssize(piece)) {
    const int64_t wanted = std::min(std::ssize(piece), read.head->bytes - at);
    const int64_t count = read_at(open.file.number(), kKvHeadBytes + at, piece.data(), wanted);
    if (count < wanted) {
      unread(read, count);
      return std::move(read);
    }
    XXH3_128bits_update(&sum, piece.data(), static_cast<size_t>(wanted));
  }
  if (kv_sum(XXH3_128bits_digest(&sum)) != read.head->sum) mark_damaged(read, "its bytes are damaged");
  return std::move(read);
}

}  // namespace sheaf
