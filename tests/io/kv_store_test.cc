// Keys and values in a folder: what was kept is read back, and what is damaged or foreign is not.
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

#include "core/base/error.h"
#include "io/kv_store/disk_kv_store.h"
#include "io/kv_store/kv_folder.h"
#include "tests/files.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

class KvStoreFolder : public testing::Test {
 protected:
  std::string path() const { return temp_.path() + "/store"; }
  std::unique_ptr<DiskKvStore> open(KvStoreOptions options = {}, const std::string& model = "model",
                                    const std::string& kind = "CPU, fp32") {
    if (options.bytes == 0) options.bytes = 1 << 30;
    if (options.memory_bytes == 0) options.memory_bytes = 1 << 30;
    return std::make_unique<DiskKvStore>(
        KvFolder::open(path()), model, "name of the model", kind, options, [](int64_t bytes) {
          return std::shared_ptr<std::byte>(new std::byte[static_cast<size_t>(bytes)],
                                            std::default_delete<std::byte[]>());
        });
  }
  static Segment segment(TokenId number) { return {Role::document, {number, 2, 3}, 0, {}, true}; }
  static KvKey key_of(const DiskKvStore& store, TokenId number) { return store.key(segment(number), {}, 0); }
  static void fill(const KvBytes& bytes, TokenId number) {
    for (size_t i = 0; i < bytes.span().size(); ++i)
      bytes.span()[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(number));
  }
  static void keep(DiskKvStore& store, TokenId number, int64_t size = 1000) {
    const KvKey key = key_of(store, number);
    ASSERT_TRUE(store.wants(key, size, 3));
    const KvBytes bytes = store.room(size);
    fill(bytes, number);
    store.keep(key, Role::document, 3, bytes);
    store.flush();
  }
  /// Whether it is there, and whole.
  static bool has(DiskKvStore& store, TokenId number, int64_t size = 1000) {
    const auto fetch = store.fetch(key_of(store, number), size, 3, 0);
    if (!fetch) return false;
    const auto got = fetch->bytes();
    if (got.empty()) return false;
    const KvBytes expected = store.room(size);
    fill(expected, number);
    EXPECT_TRUE(std::ranges::equal(got, expected.span()));
    return true;
  }
  /// As open(), with the memory it takes in `live` and the most of it in `peak`.
  std::unique_ptr<DiskKvStore> open_counted(const KvStoreOptions& options) {
    return std::make_unique<DiskKvStore>(
        KvFolder::open(path()), "model", "name of the model", "CPU, fp32", options, [this](int64_t bytes) {
          const int64_t now = live_ += bytes;
          for (int64_t before = peak_; before < now && !peak_.compare_exchange_weak(before, now);) continue;
          return std::shared_ptr<std::byte>(new std::byte[static_cast<size_t>(bytes)],
                                            [this, bytes](const std::byte* block) {
                                              delete[] block;
                                              live_ -= bytes;
                                            });
        });
  }
  /// A name that the store gives what it is writing; its folder is there.
  std::string staged_file() const {
    fs::create_directories(path() + "/00");
    return fmt::format("{}/00/{:064}.kv.0123456789abcdef.1.part", path(), 0);
  }
  std::string file_of(TokenId number) { return KvFolder::open(path()).file(key_of(*open(), number)); }

  TempFolder temp_;
  std::atomic<int64_t> live_ = 0, peak_ = 0;
};

TEST_F(KvStoreFolder, OutlivesTheProcessThatFilledIt) {
  {
    const auto store = open();
    EXPECT_FALSE(has(*store, 1));
    keep(*store, 1);
    keep(*store, 2, 70001);
    EXPECT_TRUE(has(*store, 1)) << "in memory";
    EXPECT_FALSE(store->wants(key_of(*store, 1), 1000, 3)) << "it is there";
    EXPECT_EQ(store->use().disk_bytes, 0);
    EXPECT_EQ(store->use().kept_tokens, 6);
  }
  const auto store = open();
  EXPECT_TRUE(has(*store, 1));
  EXPECT_TRUE(has(*store, 2, 70001));
  EXPECT_FALSE(has(*store, 3));
  EXPECT_EQ(store->use().disk_bytes, 71001);
  EXPECT_TRUE(store->take_notices().empty());
}

TEST_F(KvStoreFolder, NamesDependOnEverythingThatDecidesTheBits) {
  const auto store = open();
  const Segment plain = segment(1);
  const KvKey other = key_of(*store, 2);
  std::set<KvKey> keys;
  const auto add = [&](const DiskKvStore& from, const Segment& one, std::vector<KvKey> seen, int32_t page) {
    EXPECT_TRUE(keys.insert(from.key(one, seen, page)).second);
  };
  add(*store, plain, {}, 0);
  add(*store, plain, {}, 16);
  add(*open({}, "another model"), plain, {}, 0);
  add(*open({}, "model", "CPU, int8"), plain, {}, 0);
  Segment moved = plain;
  moved.first_position = 4;
  add(*store, moved, {}, 0);
  Segment looking = plain;
  looking.sees = {{0, false}};
  add(*store, looking, {other}, 0);
  add(*store, looking, {key_of(*store, 3)}, 0);
  looking.sees[0].abreast = true;
  add(*store, looking, {other}, 0);
  Segment longer = plain;
  longer.tokens.push_back(4);
  add(*store, longer, {}, 0);
}

TEST_F(KvStoreFolder, DamagedFilesAreSkippedWithANotice) {
  keep(*open(), 1);
  const std::string file = file_of(1);
  const std::string whole = read_text(file);
  ASSERT_EQ(whole.size(), 5096u);
  const auto damage = [&](const std::string& bytes) {
    fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    const auto store = open();
    EXPECT_FALSE(has(*store, 1));
    EXPECT_EQ(store->use().damaged, 1);
    const auto notices = store->take_notices();
    ASSERT_EQ(notices.size(), 1u);
    EXPECT_NE(notices[0].find(file), std::string::npos);
    EXPECT_FALSE(fs::exists(file)) << "it is made again";
    keep(*store, 1);
    EXPECT_TRUE(has(*open(), 1));
  };
  for (const size_t at : {size_t{3}, size_t{12}, size_t{20}, size_t{30}, size_t{40}, size_t{66}, size_t{80},
                          size_t{4000}, size_t{4096}, size_t{5000}, size_t{5095}}) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    damage(bytes);
  }
  for (const size_t size : {size_t{0}, size_t{100}, size_t{4096}, size_t{5095}})
    damage(whole.substr(0, size));
}

TEST_F(KvStoreFolder, AFileUnderAnotherNameIsNotTaken) {
  keep(*open(), 1);
  const std::string from = file_of(1), to = file_of(2);
  fs::create_directories(fs::path(to).parent_path());
  fs::rename(from, to);
  EXPECT_FALSE(has(*open(), 2));
}

TEST_F(KvStoreFolder, ForeignFoldersAreRefused) {
  const std::string folder = temp_.path() + "/mine";
  fs::create_directory(folder);
  std::ofstream(folder + "/diary.txt") << "dear diary";
  EXPECT_THROW(KvFolder::open(folder), Error);
  EXPECT_THROW(KvFolder::existing(folder), Error);
  EXPECT_EQ(KvFolder::open(path()).bytes(), 0);
  std::ofstream(path() + "/sheaf-kv-store") << "99\n";
  EXPECT_THROW(KvFolder::open(path()), Error) << "of a later version";
}

TEST_F(KvStoreFolder, ManyProcessesMayCreateItAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const std::string folder = path() + std::to_string(round);
    std::atomic<int> refused = 0;
    {
      std::vector<std::jthread> all;
      for (int i = 0; i < 8; ++i)
        all.emplace_back([&] {
          try {
            KvFolder::open(folder);
          } catch (const Error&) {
            ++refused;
          }
        });
    }
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(KvFolder::existing(folder).bytes(), 0);
  }
  // What a process that was killed meanwhile left, and a store without its marker.
  fs::create_directory(path());
  std::ofstream(path() + "/sheaf-kv-store.1234.part") << "";
  fs::create_directory(path() + "/a7");
  EXPECT_EQ(KvFolder::open(path()).bytes(), 0);
}

TEST_F(KvStoreFolder, UnreadableFilesAreNotRemoved) {
  keep(*open(), 1);
  const std::string file = file_of(1);
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  const auto store = open();
  EXPECT_FALSE(has(*store, 1));
  keep(*store, 1);
  EXPECT_EQ(store->take_notices().size(), 1u) << "it is not kept";
  EXPECT_TRUE(fs::exists(file));
  keep(*store, 2);
  EXPECT_TRUE(has(*open(), 2));
}

TEST_F(KvStoreFolder, TheLeastRecentlyUsedFilesAreRemoved) {
  const auto age = [&](TokenId number, int hours) {
    fs::last_write_time(file_of(number), fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  for (TokenId number = 1; number <= 5; ++number) keep(*open(), number);
  for (TokenId number = 1; number <= 5; ++number) age(number, 10 - number);
  EXPECT_TRUE(has(*open(), 1)) << "which makes it the youngest";
  const std::string left = staged_file();
  std::ofstream(left) << "half";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  // Room for three and a half: whoever adds something makes room for it.
  const auto store = open({.bytes = 5096 * 7 / 2});
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(KvFolder::open(path()).list().size(), 5u) << "only to look changes nothing";
  keep(*store, 6);
  ASSERT_EQ(store->take_notices().size(), 1u);
  EXPECT_TRUE(has(*store, 1));
  EXPECT_FALSE(has(*store, 2));
  EXPECT_FALSE(has(*store, 3));
  EXPECT_TRUE(has(*store, 6));
  for (TokenId number = 10; number < 20; ++number) keep(*store, number);
  EXPECT_LE(KvFolder::open(path()).bytes(), 5096 * 7 / 2);
  EXPECT_TRUE(has(*open(), 19));
  EXPECT_FALSE(store->wants(key_of(*store, 30), 5096 * 4, 3)) << "larger than the whole store";
}

TEST_F(KvStoreFolder, MemoryIsBounded) {
  for (TokenId number = 0; number < 20; ++number) keep(*open(), number);
  const auto store = open({.memory_bytes = 3000});
  for (int round = 0; round < 2; ++round)
    for (TokenId number = 0; number < 20; ++number) EXPECT_TRUE(has(*store, number));
  EXPECT_EQ(store->use().disk_bytes, 40 * 1000) << "nothing stays for a whole round";
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(has(*store, 19));
  EXPECT_EQ(store->use().disk_bytes, 40 * 1000);
  // What an engine holds stays whatever the bound is.
  std::vector<std::shared_ptr<const KvFetch>> held;
  for (TokenId number = 0; number < 20; ++number)
    held.push_back(store->fetch(key_of(*store, number), 1000, 3, 0));
  for (const auto& fetch : held) EXPECT_EQ(fetch->bytes().size(), 1000u);
}

TEST_F(KvStoreFolder, OnlyWhatAnEngineWaitsForExceedsTheMemory) {
  const KvStoreOptions options{.bytes = 1 << 30, .memory_bytes = 8000, .threads = 3};
  {
    const auto store = open_counted(options);
    for (TokenId number = 0; number < 200; ++number)
      if (const KvKey key = key_of(*store, number); store->wants(key, 1000, 3))
        store->keep(key, Role::document, 3, store->room(1000));
    store->flush();
    EXPECT_LE(peak_, 8000) << "what waits to be written counts";
  }
  EXPECT_EQ(live_, 0);
  for (TokenId number = 0; number < 30; ++number)
    if (const auto store = open(); store->wants(key_of(*store, number), 1000, 3)) keep(*store, number);
  const auto store = open_counted(options);
  peak_ = 0;
  for (TokenId number = 0; number < 30; ++number) {
    store->expect(key_of(*store, number), 1000, 0);
    store->fetch(key_of(*store, number), 1000, 3, 0)->wait();
  }
  EXPECT_LE(peak_, 8000);
  std::vector<std::shared_ptr<const KvFetch>> waiting;
  for (TokenId number = 0; number < 12; ++number)
    waiting.push_back(store->fetch(key_of(*store, number), 1000, 3, 0));
  for (const auto& fetch : waiting) fetch->wait();
  EXPECT_LE(peak_, 12000);
  waiting.clear();
  store->fetch(key_of(*store, 20), 1000, 3, 0)->wait();
  EXPECT_LE(live_, 8000);
}

TEST_F(KvStoreFolder, FilesThatMayBeInTheMakingStay) {
  keep(*open(), 1);
  const std::string staged = staged_file();
  std::ofstream(staged) << "half";
  const KvFolder folder = KvFolder::existing(path());
  EXPECT_EQ(folder.bytes(), 5096 + 4);
  KvFolder::Pruned pruned = folder.prune(5096 + 4);
  EXPECT_EQ(pruned.files, 0);
  pruned = folder.prune(5096);
  EXPECT_EQ(pruned.files, 1) << "a file that is being written takes room too";
  EXPECT_EQ(pruned.staged_files, 1);
  EXPECT_EQ(pruned.staged_bytes, 4);
  EXPECT_TRUE(fs::exists(staged));
  fs::last_write_time(staged, fs::file_time_type::clock::now() - std::chrono::minutes(61));
  pruned = folder.prune(0);
  EXPECT_EQ(pruned.staged_files, 0);
  EXPECT_FALSE(fs::exists(staged));
}

TEST_F(KvStoreFolder, ExpectedSegmentsAreReadAhead) {
  for (TokenId number = 0; number < 20; ++number) keep(*open(), number);
  const auto store = open({.memory_bytes = 10000});
  for (TokenId number = 0; number < 20; ++number) store->expect(key_of(*store, number), 1000, 0);
  store->expect(key_of(*store, 99), 1000, 0);
  const auto last = store->fetch(key_of(*store, 19), 1000, 3, 0);
  last->wait();  // readers take turns, so those before it are read too
  EXPECT_EQ(store->use().disk_bytes, 6000) << "half of the memory, and the one that was fetched";
  EXPECT_TRUE(has(*store, 4));
  EXPECT_EQ(store->use().disk_bytes, 6000);
}

TEST_F(KvStoreFolder, ReadingThatIsSlowerThanComputingIsSkipped) {
  constexpr int64_t size = 8 << 20;
  for (TokenId number = 0; number < 40; ++number) keep(*open(), number, size);
  const auto fetched = [&](DiskKvStore& store, TokenId number, double seconds) {
    const auto fetch = store.fetch(key_of(store, number), size, 3, seconds);
    if (fetch) fetch->wait();
    return fetch != nullptr;
  };
  {
    const auto store = open({.memory_bytes = 1});
    TokenId number = 0;
    while (fetched(*store, number, 1e-9)) ++number;
    EXPECT_EQ(number, 32) << "so much is read to know how quick the disk is";
    EXPECT_FALSE(fetched(*store, number, 1e-9));
    EXPECT_EQ(store->use().dearer_tokens, 6);
    EXPECT_TRUE(fetched(*store, number, 1000));
    EXPECT_TRUE(fetched(*store, 39, 0)) << "what computing takes is not known";
  }
  const double speed = KvFolder::open(path()).speed();
  EXPECT_GT(speed, 1e6);
  const auto store = open({.memory_bytes = 1});
  TokenId number = 0;
  while (fetched(*store, number, 1e-9)) ++number;
  EXPECT_EQ(number, 32) << "it may have changed since last time";
  EXPECT_FALSE(fetched(*store, 20, 0.001 * static_cast<double>(size) / speed));
  EXPECT_TRUE(fetched(*store, 20, 1000 * static_cast<double>(size) / speed));
}

TEST_F(KvStoreFolder, AFolderThatCannotBeWrittenStopsOnlyTheWriting) {
  const auto store = open();
  keep(*store, 1);
  fs::remove_all(path());
  std::ofstream(path()) << "a file in the way";
  const KvKey key = key_of(*store, 2);
  ASSERT_TRUE(store->wants(key, 1000, 3));
  store->keep(key, Role::document, 3, store->room(1000));
  store->flush();
  EXPECT_EQ(store->take_notices().size(), 1u);
  EXPECT_FALSE(store->wants(key_of(*store, 4), 1000, 3));
  EXPECT_EQ(store->use().unkept_tokens, 6);
}

TEST_F(KvStoreFolder, ContentsAreListedAndVerified) {
  keep(*open(), 1);
  keep(*open(), 2);
  keep(*open({}, "model", "CPU, int8"), 1);
  KvFolder folder = KvFolder::existing(path());
  KvListing listing = list_contents(folder, true);
  ASSERT_EQ(listing.contents.size(), 2u);
  EXPECT_EQ(listing.contents[0].kind, "CPU, int8") << "used last";
  EXPECT_EQ(listing.contents[1].segments, 2);
  EXPECT_EQ(listing.contents[1].tokens, 6);
  EXPECT_EQ(listing.contents[1].model, "name of the model");
  EXPECT_EQ(listing.contents[1].title, "name of the model (CPU, fp32)");
  EXPECT_EQ(listing.total.segments, 3);
  EXPECT_EQ(listing.total.tokens, 9);
  EXPECT_EQ(listing.total.bytes, folder.bytes());
  EXPECT_TRUE(listing.troubles.empty());
  // The same model after a change of its file.
  keep(*open({}, "model, changed"), 1);
  listing = list_contents(folder, false);
  ASSERT_EQ(listing.contents.size(), 3u);
  std::set<std::string> titles;
  for (const KvContents& each : listing.contents) titles.insert(each.title);
  EXPECT_EQ(titles.size(), 3u);
  EXPECT_TRUE(listing.contents[0].title.starts_with("name of the model (CPU, fp32), state "));
  std::ofstream(file_of(1), std::ios::binary | std::ios::app) << "more";
  listing = list_contents(folder, false);
  ASSERT_EQ(listing.troubles.size(), 1u);
  EXPECT_EQ(folder.prune(0).files, 4);
  EXPECT_EQ(folder.bytes(), 0);
}

/// Everything that others may have in a store's folder, or behind a link in it.
TEST_F(KvStoreFolder, FilesOfOthersAreNotTouched) {
  keep(*open(), 1);
  const KvFolder folder = KvFolder::existing(path());
  const int64_t own_bytes = folder.bytes();
  const std::string hex(62, 'a'), outside = temp_.path() + "/outside", old_name = ".kv.1.1.part";
  std::vector<std::string> foreign;
  const auto add = [&](const std::string& file) {
    fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file) << "mine";
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(48));
    foreign.push_back(file);
  };
  // A run that was put into the store's folder.
  for (const char* name : {"rows-00000.jsonl.part", "rejects.jsonl.part", "journal.part", "notes.kv"})
    add(path() + "/out/" + name);
  // Names that are nearly the store's.
  for (const std::string& name : std::vector<std::string>{
           "00/notes.kv", "00/rows-00000.jsonl.part", "00/" + hex + ".kv", "01/00" + hex + ".kv",
           "00/00" + hex + "a.kv", "00/00" + hex + ".KV", "00/00" + hex + ".kv.part", "00/00" + hex + ".part",
           "00/00" + std::string(62, 'G') + ".kv", "00/deep/00" + hex + ".kv", "AA/AA" + hex + ".kv",
           "000/000" + hex + ".kv", "00/00" + hex + ".kv.1.1.part.txt"})
    add(path() + "/" + name);
  add(path() + "/00" + hex + ".kv");
  add(path() + "/00" + hex + old_name);
  // Names of the store behind links: a folder of another disk, and single files.
  for (const std::string& name : {"bb" + hex + ".kv", "bb" + hex + old_name}) add(outside + "/bb/" + name);
  add(outside + "/cc.kv");
  add(outside + "/cc.part");
  fs::create_directory_symlink(outside + "/bb", path() + "/bb");
  fs::create_directories(path() + "/cc");
  fs::create_symlink(outside + "/cc.kv", path() + "/cc/cc" + hex + ".kv");
  fs::create_symlink(outside + "/cc.part", path() + "/cc/cc" + hex + old_name);

  const auto all_there = [&](const char* after) {
    for (const std::string& file : foreign) EXPECT_EQ(read_text(file), "mine") << after << ": " << file;
    EXPECT_TRUE(fs::is_symlink(path() + "/bb") && fs::is_symlink(path() + "/cc/cc" + hex + ".kv")) << after;
  };
  EXPECT_EQ(folder.bytes(), own_bytes);
  EXPECT_EQ(folder.list().size(), 1u);
  KvListing listing = list_contents(folder, true);
  EXPECT_TRUE(listing.troubles.empty());
  EXPECT_EQ(listing.total.segments, 1);
  EXPECT_EQ(remove_damaged(listing), 0);
  all_there("verify");
  EXPECT_TRUE(has(*open(), 1));
  all_there("a run");
  EXPECT_EQ(folder.prune(0).files, 1);
  EXPECT_EQ(folder.prune(0).staged_files, 0);
  all_there("prune");
}

/// A link in the place of a key's file or folder: neither followed nor replaced, and the others are kept.
TEST_F(KvStoreFolder, LinksAreNotFollowed) {
  keep(*open(), 1);
  const std::string file = file_of(1), elsewhere = temp_.path() + "/elsewhere", linked = file_of(2);
  fs::create_directory(elsewhere);
  fs::rename(file, elsewhere + "/kept.kv");
  fs::create_symlink(elsewhere + "/kept.kv", file);
  const std::string bytes = read_text(elsewhere + "/kept.kv");
  if (!fs::exists(fs::path(linked).parent_path()))
    fs::create_directory_symlink(elsewhere, fs::path(linked).parent_path());
  const auto store = open();
  EXPECT_FALSE(has(*store, 1)) << "not read";
  keep(*store, 1);
  keep(*store, 2);
  EXPECT_EQ(store->take_notices().size(), 2u);
  EXPECT_TRUE(fs::is_symlink(file));
  EXPECT_EQ(read_text(elsewhere + "/kept.kv"), bytes);
  EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere), {}), 1) << "nothing is written outside";
  for (TokenId number = 3; number < 9; ++number) keep(*store, number);
  EXPECT_GE(store->use().kept_tokens, 3 * 5) << "a store with one such place is still of use";
}

TEST_F(KvStoreFolder, FilesOfAnEarlierVersionAreReplaced) {
  keep(*open(), 1);
  const std::string file = file_of(1);
  std::string bytes = read_text(file);
  bytes.replace(0, 8, "sheafkv1");
  const std::vector<std::string> old_files = {bytes, bytes.substr(0, 4096), bytes.substr(0, 8)};
  for (const std::string& old : old_files) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << old;
    KvListing listing = list_contents(KvFolder::existing(path()), true);
    ASSERT_EQ(listing.troubles.size(), 1u);
    EXPECT_EQ(listing.troubles[0].trouble, "an earlier version of sheaf wrote it");
    const auto store = open();
    EXPECT_FALSE(has(*store, 1));
    const auto notices = store->take_notices();
    ASSERT_EQ(notices.size(), 1u);
    EXPECT_NE(notices[0].find("earlier version of sheaf"), std::string::npos) << notices[0];
    keep(*store, 1);
    EXPECT_TRUE(has(*open(), 1));
  }
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  KvListing listing = list_contents(KvFolder::existing(path()), true);
  EXPECT_EQ(remove_damaged(listing), 0);
  EXPECT_FALSE(fs::exists(file));
}

/// Two flipped bits must never cancel out, however far apart they are. (They did in the sum of files of
/// version 1: the highest bit of a word and bit 30 of the word 64 bytes behind it.)
TEST_F(KvStoreFolder, EveryPairOfFlippedBitsIsNoticed) {
  constexpr int64_t size = 8192;
  keep(*open(), 1, size);
  const std::string file = file_of(1);
  std::string bytes = read_text(file);
  const KvKey key = key_of(*open(), 1);
  std::vector<std::byte> to(size);
  const auto content = std::as_writable_bytes(std::span(bytes)).subspan(static_cast<size_t>(kKvHeadBytes));
  const KvSum right = sum_bytes(content);
  const auto flip = [&](size_t at, int bit) { content[at] ^= static_cast<std::byte>(1 << bit); };
  int64_t unnoticed = 0, tried = 0;
  const auto try_pair = [&](size_t at, size_t distance, int bit, int other) {
    flip(at, bit);
    flip(at + distance, other);
    unnoticed += sum_bytes(content) == right;
    if (++tried % 97 == 0) {  // the sum is what the file's readers go by
      std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
      EXPECT_FALSE(verify_kv_file(file).trouble.empty()) << at << " " << distance;
      EXPECT_FALSE(read_kv_file(file, key, to).trouble.empty()) << at << " " << distance;
    }
    flip(at, bit);
    flip(at + distance, other);
  };
  for (size_t distance = 1; distance <= 4096; ++distance)
    for (const size_t at : {size_t{0}, size_t{63}, size_t{1000}, size_t{4095}})
      for (const auto& [bit, other] : {std::pair{0, 0}, {7, 7}, {7, 0}, {3, 5}})
        try_pair(at, distance, bit, other);
  for (size_t distance = 1; distance <= 192; ++distance)
    for (size_t at = 0; at < 8; ++at)
      for (int bits = 0; bits < 64; ++bits) try_pair(at, distance, bits / 8, bits % 8);
  EXPECT_EQ(unnoticed, 0) << "of " << tried;
}

TEST_F(KvStoreFolder, CutsAndAppendedBytesAreNoticed) {
  keep(*open(), 1);
  const std::string file = file_of(1), whole = read_text(file);
  const KvKey key = key_of(*open(), 1);
  std::vector<std::byte> to(1000);
  ASSERT_TRUE(read_kv_file(file, key, to).trouble.empty());
  const auto is_noticed = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    return read_kv_file(file, key, to).damaged && verify_kv_file(file).damaged && read_kv_head(file).damaged;
  };
  for (size_t left = 0; left < whole.size(); left += left < 4000 ? 37 : 1)
    EXPECT_TRUE(is_noticed(whole.substr(0, left))) << left;
  for (const size_t more : {1, 8, 63, 64, 1000, 4096}) {
    EXPECT_TRUE(is_noticed(whole + std::string(more, '\0'))) << more;
    EXPECT_TRUE(is_noticed(whole + whole.substr(0, more))) << more;
  }
}

TEST_F(KvStoreFolder, RandomBytesAreRefused) {
  keep(*open(), 1);
  const std::string file = file_of(1);
  const std::string whole = read_text(file);
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    for (int changes = 0; changes < 4; ++changes)
      bytes[random() % (i % 2 ? 200 : bytes.size())] = static_cast<char>(random());
    bytes.resize(random() % 3 ? bytes.size() : random() % bytes.size());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    if (bytes == whole) continue;
    EXPECT_FALSE(verify_kv_file(file).trouble.empty()) << i;
  }
}

}  // namespace
}  // namespace sheaf
