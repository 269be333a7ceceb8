#include "io/kv_store/disk_kv_store.h"

#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "core/text/format.h"

namespace sheaf {
namespace {

constexpr int64_t kMeasured = int64_t{64} << 20;  // bytes that tell the disk's speed
constexpr double kSlowDisk = 5e8;                 // bytes a second
constexpr int64_t kTried = int64_t{256} << 20;    // most bytes that are read to measure it
constexpr size_t kMostNotices = 3;

}  // namespace

/// Keys and values in memory, or on their way there.
struct DiskKvStore::Held final : KvFetch {
  Held(DiskKvStore& of, const KvKey& named, int64_t size) : store(of), key(named), wanted(size) {}

  bool ready() const override {
    const std::lock_guard lock(store.mutex_);
    return there;
  }
  void wait() const override {
    std::unique_lock lock(store.mutex_);
    store.changed_.wait(lock, [&] { return there; });
  }
  std::span<const std::byte> bytes() const override {
    wait();
    return held.span();
  }

  DiskKvStore& store;
  const KvKey key;
  const int64_t wanted;  ///< bytes
  KvBytes held;          ///< empty where it could not be read
  bool there = false;    ///< read, or given up
  bool ahead = false;    ///< no engine asked for it yet
  std::list<KvKey>::iterator use;
};

DiskKvStore::DiskKvStore(KvFolder folder, const std::string& model, std::string name, std::string kind,
                         const KvStoreOptions& options, Allocate allocate)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      kind_(std::move(kind)),
      options_(options),
      allocate_(std::move(allocate)) {
  base_.add(fmt::format("sheaf {}\n{}\n{}\n", SHEAF_VERSION, kind_, model));
  state_ = key_text(Sha256(base_).digest()).substr(0, 8);
  folder_.clear_abandoned();
  folder_bytes_ = folder_.bytes();
  known_speed_ = folder_.speed();
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { read_files(stop); });
    threads_.emplace_back([this](const std::stop_token& stop) { write_files(stop); });
  }
}

DiskKvStore::~DiskKvStore() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  if (use_.disk_bytes < kMeasured) return;
  try {
    folder_.save_speed(speed());
  } catch (const std::exception&) {  // it is a hint
  }
}

KvKey DiskKvStore::key(const Segment& segment, std::span<const KvKey> seen, int32_t page_size) const {
  Sha256 sum = base_;
  sum.add_raw(page_size).add_raw(segment.first_position).add_raw(seen.size());
  for (size_t i = 0; i < seen.size(); ++i)
    sum.add_raw(seen[i]).add(segment.sees[i].abreast ? "abreast" : "whole");
  const std::string_view tokens(reinterpret_cast<const char*>(segment.tokens.data()),
                                segment.tokens.size() * sizeof(TokenId));
  sum.add(tokens);
  return sum.digest();
}

std::shared_ptr<const KvFetch> DiskKvStore::fetch(const KvKey& key, int64_t bytes, int64_t tokens,
                                                  double seconds) {
  std::unique_lock lock(mutex_);
  if (const auto at = held_.find(key); at != held_.end()) {
    if (at->second->wanted != bytes) return nullptr;
    by_use_.splice(by_use_.end(), by_use_, at->second->use);
    taken(*at->second);
    return at->second;
  }
  lock.unlock();
  const bool there = folder_.has(key);
  lock.lock();
  if (!there || held_.contains(key)) return nullptr;
  if (pays(bytes, seconds)) return begin(key, bytes);
  use_.dearer_tokens += tokens;
  return nullptr;
}

void DiskKvStore::expect(const KvKey& key, int64_t bytes, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    if (held_.contains(key) || ahead_bytes_ + bytes > options_.memory_bytes / 2) return;
  }
  if (!folder_.has(key)) return;
  const std::lock_guard lock(mutex_);
  if (held_.contains(key) || !pays(bytes, seconds)) return;
  begin(key, bytes)->ahead = true;
  ahead_bytes_ += bytes;
}

/// The caller has the lock.
std::shared_ptr<DiskKvStore::Held> DiskKvStore::begin(const KvKey& key, int64_t bytes) {
  auto held = std::make_shared<Held>(*this, key, bytes);
  held_.emplace(key, held);
  held->use = by_use_.insert(by_use_.end(), key);
  to_read_.push_back(held);
  changed_.notify_all();
  return held;
}

/// By an engine, or let go: no longer ahead of anyone.
void DiskKvStore::taken(Held& held) {
  if (std::exchange(held.ahead, false)) ahead_bytes_ -= held.wanted;
}

/// Bytes a second, all readers together: as measured, before that as last time, or as slow disks are.
double DiskKvStore::speed() const {
  if (use_.disk_bytes >= kMeasured)
    return static_cast<double>(use_.disk_bytes) / use_.disk_seconds * options_.threads;
  return known_speed_ > 0 ? known_speed_ : kSlowDisk;
}

/// Whether reading takes less time than computing, as far as both are known. To know it, some is read that
/// may not pay.
bool DiskKvStore::pays(int64_t bytes, double seconds) {
  if (seconds <= 0 || static_cast<double>(bytes) / speed() < seconds) return true;
  if (tried_bytes_ >= kTried) return false;
  tried_bytes_ += bytes;
  return true;
}

bool DiskKvStore::wants(const KvKey& key, int64_t bytes, int64_t tokens) {
  if (folder_.has(key)) return false;
  std::unique_lock lock(mutex_);
  if (bytes + kKvHeadBytes > options_.bytes) {
    use_.unkept_tokens += tokens;
    return false;
  }
  const auto has_room = [&] {
    return !writing_ || write_bytes_ == 0 || write_bytes_ + bytes <= options_.memory_bytes / 4;
  };
  if (options_.patient) changed_.wait(lock, has_room);
  if (writing_ && has_room()) return true;
  use_.unkept_tokens += tokens;
  return false;
}

KvBytes DiskKvStore::room(int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    make_space(bytes);
  }
  return {allocate_(bytes), bytes};
}

void DiskKvStore::keep(const KvKey& key, Role role, int32_t tokens, KvBytes bytes) {
  const std::lock_guard lock(mutex_);
  write_bytes_ += bytes.size;
  to_write_.push_back({{key, bytes.size, {}, tokens, name_, kind_, role_name(role), state_}, bytes});
  if (held_bytes_ + write_bytes_ <= options_.memory_bytes) {
    auto held = std::make_shared<Held>(*this, key, bytes.size);
    if (held_.emplace(key, held).second) {
      held->use = by_use_.insert(by_use_.end(), key);
      held->there = true;
      held_bytes_ += bytes.size;
      held->held = std::move(bytes);
    }
  }
  changed_.notify_all();
}

/// Lets go of what was least recently used and is not wanted now, so that `bytes` more fit the memory. What
/// waits to be written counts too, though some of it may be among what is held.
void DiskKvStore::make_space(int64_t bytes) {
  for (auto at = by_use_.begin();
       at != by_use_.end() && held_bytes_ + write_bytes_ + bytes > options_.memory_bytes;) {
    const auto held = held_.find(*at);
    if (!held->second->there || held->second.use_count() > 1) {
      ++at;
      continue;
    }
    held_bytes_ -= held->second->held.size;
    taken(*held->second);
    held_.erase(held);
    at = by_use_.erase(at);
  }
}

void DiskKvStore::read_files(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !to_read_.empty(); }) && !stop.stop_requested()) {
    const std::shared_ptr<Held> held = std::move(to_read_.front());
    to_read_.pop_front();
    make_space(held->wanted);
    held_bytes_ += held->wanted;
    lock.unlock();
    read(*held);
    lock.lock();
    held->there = true;
    held_bytes_ -= held->wanted - held->held.size;
    if (held->held.size == 0) {  // asked for again, it is looked for again
      taken(*held);
      by_use_.erase(held->use);
      held_.erase(held->key);
    }
    changed_.notify_all();
  }
}

void DiskKvStore::read(Held& held) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string path = folder_.file(held.key);
  KvBytes bytes;
  ReadKv read;
  try {
    if (!folder_.has(held.key)) return;  // another process removed it
    bytes = {allocate_(held.wanted), held.wanted};
    read = read_kv_file(path, held.key, bytes.span());
  } catch (const std::exception& error) {
    read.trouble = error.what();
  }
  if (!read.trouble.empty()) {
    if (folder_.has(held.key)) note_trouble(path, read);  // or else another process removed it
    return;
  }
  held.held = std::move(bytes);
  folder_.touch(path);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::lock_guard lock(mutex_);
  use_.disk_bytes += held.wanted;
  use_.disk_seconds += seconds.count();
}

/// Its keys and values are computed. A damaged file is removed, so that they are kept again in its place.
void DiskKvStore::note_trouble(const std::string& path, const ReadKv& read) {
  std::error_code error;
  const bool removed = read.damaged && std::filesystem::remove(path, error) && !error;
  const std::lock_guard lock(mutex_);
  if (std::cmp_less(use_.damaged++, kMostNotices))
    notices_.push_back(fmt::format("{}: {}; sheaf {}computed its keys and values", path, read.trouble,
                                   removed ? "removed it and " : ""));
}

void DiskKvStore::write_files(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  // What waits when the run ends is written all the same.
  while (changed_.wait(lock, stop, [&] { return !to_write_.empty(); }) || !to_write_.empty()) {
    const Write write = std::move(to_write_.front());
    to_write_.pop_front();
    const bool usable = writing_;
    lock.unlock();
    std::string trouble;
    bool over = true;  // for all that comes
    try {
      if (usable) folder_.add(write.head, write.bytes.span());
    } catch (const std::exception& error) {
      trouble = error.what();
      over = !folder_.is_obstructed(write.head.key);  // or only this one cannot be kept
    }
    lock.lock();
    if (usable && trouble.empty()) limit_folder(write.bytes.size + kKvHeadBytes, trouble);
    write_bytes_ -= write.bytes.size;
    if (usable && trouble.empty()) {
      use_.kept_tokens += write.head.tokens;
      use_.kept_bytes += write.bytes.size;
    } else {
      use_.unkept_tokens += write.head.tokens;
    }
    if (!trouble.empty() && writing_) {
      writing_ = !over;
      notices_.push_back(fmt::format(
          "engine.kv_store: {}; {}", trouble.substr(0, trouble.find(';')),
          over ? "this run keeps no more keys and values" : "these keys and values are not kept"));
    }
    changed_.notify_all();
  }
}

/// Other processes add to the folder too, so its size is found again before anything is removed. The caller
/// has the lock.
void DiskKvStore::limit_folder(int64_t added, std::string& trouble) {
  folder_bytes_ += added;
  if (folder_bytes_ <= options_.bytes) return;
  try {
    use_.removed_bytes += folder_.prune(options_.bytes - options_.bytes / 20).bytes;
    folder_bytes_ = folder_.bytes();
  } catch (const std::exception& error) {
    trouble = error.what();
  }
}

void DiskKvStore::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return write_bytes_ == 0; });
}

KvStoreUse DiskKvStore::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

std::vector<std::string> DiskKvStore::take_notices() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> notices = std::exchange(notices_, {});
  if (use_.removed_bytes > 0)
    notices.push_back(
        fmt::format("engine.kv_store: the store is full: the least recently used {} were removed{}; raise "
                    "engine.kv_store.gb to keep more",
                    size_text(use_.removed_bytes),
                    use_.kept_bytes > options_.bytes ? ", part of what this run kept among them" : ""));
  return notices;
}

}  // namespace sheaf
