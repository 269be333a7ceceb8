#include "io/base/file_identity.h"

#include <chrono>
#include <gtest/gtest.h>

#include "tests/files.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

/// Large files and a memory of their digests, each in a folder of its own.
class Identity : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  std::string large() const {
    std::string text(kLarge, 'a');
    for (size_t i = 0; i < text.size(); i += 4093) text[i] = static_cast<char>(i % 251);
    return folder_.write("model.gguf", text);
  }
  /// Changes one byte and keeps the size; `hours` old afterwards.
  void flip(const std::string& path, size_t at, int hours) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char changed = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(changed);
    file.close();
    age(path, hours);
  }
  static void age(const std::string& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  static constexpr size_t kLarge = (64 << 20) + 12345;
  const TempFolder folder_{quick_place()};
};

TEST_F(Identity, ChangesWithEveryByteOfAModel) {
  const std::string path = large();
  FileIdentity before = identify_file(path, Look::every_byte);
  EXPECT_EQ(before.bytes, static_cast<int64_t>(kLarge));
  // Between the samples, in each piece, and at both ends.
  for (const size_t at : {size_t{0}, size_t{1234567}, size_t{20'000'003}, size_t{50'000'001}, kLarge - 1}) {
    flip(path, at, 3);
    const FileIdentity now = identify_file(path, Look::every_byte);
    EXPECT_FALSE(before.is_same(now)) << at;
    EXPECT_NE(identity_json(before), identity_json(now));
    before = now;
  }
  age(path, 5);
  EXPECT_TRUE(before.is_same(identify_file(path, Look::every_byte))) << "a copy has another time";
  EXPECT_EQ(identity_json(before), identity_json(identify_file(path, Look::every_byte)));
}

TEST_F(Identity, OfALargeCorpusIncludesItsTime) {
  const std::string path = large();
  const FileIdentity before = identify_file(path, Look::samples);
  EXPECT_EQ(before.seen, FileIdentity::Seen::samples);
  age(path, 5);
  EXPECT_FALSE(before.is_same(identify_file(path, Look::samples)));
  const std::string small = folder_.write("a.jsonl", "x");
  const auto print = identity_json(identify_file(small, Look::samples));
  age(small, 5);
  EXPECT_EQ(identity_json(identify_file(small, Look::samples)), print);
}

struct stat stat_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0);
  return found;
}

TEST_F(Identity, IsRememberedWhileTheFileStays) {
  const std::string path = folder_.write("model.gguf", "x");
  const struct stat found = stat_of(path);
  const int64_t later = found.st_ctim.tv_sec + 60;
  const std::string digest(64, 'e');
  EXPECT_FALSE(remembered_digest(found));
  remember_digest(found, digest, found.st_ctim.tv_sec);
  EXPECT_FALSE(remembered_digest(found)) << "it may have been changed within the same tick";
  remember_digest(found, digest, later);
  EXPECT_EQ(remembered_digest(found), digest);
  struct stat other = found;
  other.st_mtim.tv_nsec ^= 1;
  EXPECT_FALSE(remembered_digest(other));
  other = found;
  other.st_ctim.tv_nsec ^= 1;
  EXPECT_FALSE(remembered_digest(other));
  other = found;
  other.st_size += 1;
  EXPECT_FALSE(remembered_digest(other));
}

TEST_F(Identity, DamagedMemoryIsIgnored) {
  const std::string path = folder_.write("model.gguf", "x"), memory = "cache/sheaf/digests";
  const struct stat found = stat_of(path);
  remember_digest(found, std::string(64, 'e'), found.st_ctim.tv_sec + 60);
  const std::string good = read_text(folder_.path(memory));
  for (size_t at = 0; at + 1 < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    folder_.write(memory, bad);
    EXPECT_FALSE(remembered_digest(found)) << at;
  }
  folder_.write(memory, std::string(1000, '\0') + "\n" + good);
  EXPECT_TRUE(remembered_digest(found));
  // A folder in its place: nothing is remembered, and nothing fails.
  fs::remove(folder_.path(memory));
  fs::create_directories(folder_.path(memory));
  remember_digest(found, std::string(64, 'e'), found.st_ctim.tv_sec + 60);
  EXPECT_FALSE(remembered_digest(found));
}

TEST_F(Identity, OfObjectsIsTheirETag) {
  const FileIdentity a{5, 1'000'000, "\"x\""}, later{5, 2'000'000, "\"x\""}, other{5, 1'000'000, "\"y\""};
  EXPECT_TRUE(a.is_same(later)) << "the same contents were put again";
  EXPECT_FALSE(a.is_same(other)) << "equal size and time";
  EXPECT_NE(identity_json(a), identity_json(other));
  const FileIdentity early{5, 1'000'000}, late{5, 1'000'700};
  EXPECT_FALSE(early.is_same(late)) << "without an ETag, the time counts";
  EXPECT_FALSE(a.is_same(late));
}

}  // namespace
}  // namespace sheaf
