#pragma once
#include "core/engine/kv_store.h"
#include "io/base/file_layer.h"

namespace sheaf {

// One file holds the keys and values of one segment: a head of 4,096 bytes, then the bytes as a backend reads
// and writes them.
//
// head: "sheafkv2", the sum (16 bytes) of the rest of the head, the number of bytes behind it (little-endian,
// 8 bytes), their sum (16 bytes), the key, the number of tokens (8 bytes), then model, kind, role and state
// as lines of text, zeros. "sheafkv1" had weaker sums: such a file is never read.

constexpr int64_t kKvHeadBytes = 4096;

/// XXH3 in 128 bits, which finds damage at the speed of memory. No protection against a forger, for which
/// there is Sha256.
using KvSum = std::array<std::byte, 16>;
KvSum sum_bytes(std::span<const std::byte> bytes);

/// What a file says of itself.
struct KvFileHead {
  KvKey key{};
  int64_t bytes = 0;   ///< behind the head
  KvSum sum{};         ///< of the bytes behind the head
  int64_t tokens = 0;  ///< of the segment
  std::string model;   ///< for people: the name of its file
  std::string kind;    ///< Backend::kv_kind(), and the bits that are kept
  std::string role;    ///< of the segment
  std::string state;   ///< differs where the files of the model or its adapter do, or sheaf's version
};

std::string key_text(const KvKey& key);

void write_kv_file(OutputFile& file, const KvFileHead& about, std::span<const std::byte> bytes);

/// A file that is read, or what is wrong with it.
struct ReadKv {
  std::optional<KvFileHead> head;
  std::string trouble;   ///< empty: nothing
  bool damaged = false;  ///< of no use for good; false: perhaps readable another time
};

void mark_damaged(ReadKv& read, std::string why);

ReadKv read_kv_head(const std::string& path);
/// Reads the bytes behind the head too, as many as there is room for, and checks that they are those of
/// `key`.
ReadKv read_kv_file(const std::string& path, const KvKey& key, std::span<std::byte> to);
/// Checks a whole file piece by piece.
ReadKv verify_kv_file(const std::string& path);

}  // namespace sheaf
