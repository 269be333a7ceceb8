#include "io/kv_store/kv_folder.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fmt/format.h>
#include <random>

#include "core/base/error.h"
#include "core/base/random_stream.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = "sheaf-kv-store";
constexpr const char* kSpeed = "speed";
constexpr std::string_view kVersion = "1\n";
constexpr auto kAbandoned = std::chrono::hours(1);  // for so long no file is being written

void check_version(const std::string& path, const std::string& place) {
  const std::string found = read_whole(path + "/" + kMarker, 64).value_or("");
  if (found != kVersion)
    refuse(
        "{}{}: this store of keys and values is of another version of sheaf; choose another folder, or "
        "remove it",
        place, path);
}

/// Whether a store has entries of this name.
bool is_entry(const std::string& name) {
  const bool staged = name.ends_with(".part") && (name.starts_with(std::string(kMarker) + ".") ||
                                                  name.starts_with(std::string(kSpeed) + "."));
  return staged || name == kMarker || name == kSpeed || is_own_folder_name(name);
}

/// Refuses a folder that holds something else. One that another process is just making is fine.
void check_ours(const std::string& path, const std::string& place) {
  std::error_code error;
  bool ours = fs::is_directory(path, error);
  for (fs::directory_iterator entry(path, error), end; ours && !error && entry != end; entry.increment(error))
    ours = is_entry(entry->path().filename().string());
  if (!ours || error)
    refuse("{}{}: this is not a store of keys and values, and not an empty folder; choose another folder",
           place, path);
}

/// Different in every process, on every machine and in every container.
std::string unique_name() {
  static const uint64_t process = mix(std::random_device()(), std::random_device()());
  static std::atomic<uint64_t> number = 0;
  return fmt::format("{:016x}.{}", process, ++number);
}

/// Calls with every file of the store's own. Files and folders may go meanwhile.
template <class Visit>
void each_file(const std::string& folder, KvOwn kind, Visit&& visit) {
  std::error_code gone;
  for (fs::directory_iterator below(folder, gone), end; !gone && below != end; below.increment(gone)) {
    std::error_code inner;
    if (!is_own_folder(below->path())) continue;
    for (fs::directory_iterator file(below->path(), inner); !inner && file != end; file.increment(inner))
      if (own_kind(file->path()) == kind) visit(*file);
  }
}

/// Whether it is a regular file, and not a link to one.
bool is_plain(const std::string& path) {
  std::error_code gone;
  return fs::symlink_status(path, gone).type() == fs::file_type::regular;
}

int64_t bytes_of(const std::vector<KvFolder::Entry>& entries) {
  int64_t sum = 0;
  for (const KvFolder::Entry& entry : entries) sum += entry.bytes;
  return sum;
}

}  // namespace

KvFolder KvFolder::open(const std::string& path, const std::string& place) {
  std::error_code error;
  if (fs::exists(path + "/" + kMarker, error)) {
    check_version(path, place);
    return KvFolder(path);
  }
  if (fs::exists(path, error)) check_ours(path, place);
  real_files().make_folder(path);
  // Others may make it at the same time: every one writes the same, and the last one's name stays.
  const std::string staged = fmt::format("{}/{}.{}.part", path, kMarker, unique_name());
  real_files().open(staged)->append(kVersion);
  real_files().rename(staged, path + "/" + kMarker);
  return KvFolder(path);
}

KvFolder KvFolder::existing(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path + "/" + kMarker, error))
    refuse("{}: there is no store of keys and values here; name the folder of a job's engine.kv_store", path);
  check_version(path, "");
  return KvFolder(path);
}

std::vector<KvFolder::Entry> KvFolder::list(KvOwn kind) const {
  std::vector<Entry> entries;
  each_file(path_, kind, [&](const fs::directory_entry& file) {
    std::error_code error;
    Entry entry{file.path().string(), static_cast<int64_t>(file.file_size(error)), {}};
    if (!error) entry.used = file.last_write_time(error);
    if (!error) entries.push_back(std::move(entry));
  });
  return entries;
}

std::vector<KvFolder::Entry> KvFolder::list() const {
  return list(KvOwn::kept);
}

int64_t KvFolder::bytes() const {
  return bytes_of(list()) + bytes_of(list(KvOwn::staged));
}

std::string KvFolder::file(const KvKey& key) const {
  const std::string text = key_text(key);
  return fmt::format("{}/{}/{}.kv", path_, text.substr(0, 2), text);
}

bool KvFolder::has(const KvKey& key) const {
  return own_kind(file(key)) == KvOwn::kept;
}

bool KvFolder::is_obstructed(const KvKey& key) const {
  const fs::path path = file(key), folder = path.parent_path();
  std::error_code error;
  const auto is_there = [&](const fs::path& each) { return fs::exists(fs::symlink_status(each, error)); };
  if (is_there(folder) && !is_own_folder(folder)) return true;
  return is_there(path) && !has(key);
}

void KvFolder::add(const KvFileHead& head, std::span<const std::byte> bytes) const {
  const std::string path = file(head.key);
  const std::string staged = fmt::format("{}.{}.part", path, unique_name());
  FileLayer& files = real_files();
  if (is_obstructed(head.key))
    fail("{}: this file or its folder is a link, or not a regular file; remove it from the store", path);
  files.make_folder(fs::path(path).parent_path().string());
  try {
    write_kv_file(*files.open(staged), head, bytes);
    files.rename(staged, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(staged, ignored);
    throw;
  }
}

double KvFolder::speed() const {
  if (!is_plain(path_ + "/" + kSpeed)) return 0;
  const std::string text = read_whole(path_ + "/" + kSpeed, 64).value_or("");
  double speed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), speed);
  return error == std::errc() && speed > 0 && speed < 1e13 ? speed : 0;
}

void KvFolder::save_speed(double bytes_per_second) const {
  std::error_code gone;
  const std::string path = path_ + "/" + kSpeed;
  if (fs::exists(fs::symlink_status(path, gone)) && !is_plain(path)) return;
  write_whole(real_files(), path_, kSpeed, fmt::format("{:.0f}\n", bytes_per_second));
}

void KvFolder::touch(const std::string& file) const {
  std::error_code ignored;
  fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
}

void KvFolder::clear_abandoned() const {
  const auto now = fs::file_time_type::clock::now();
  each_file(path_, KvOwn::staged, [&](const fs::directory_entry& file) {
    std::error_code error;
    if (now - file.last_write_time(error) > kAbandoned && !error) fs::remove(file.path(), error);
  });
}

KvFolder::Pruned KvFolder::prune(int64_t most) const {
  clear_abandoned();
  const std::vector<Entry> staged = list(KvOwn::staged);
  std::vector<Entry> entries = list();
  std::ranges::sort(entries, {}, &Entry::used);
  Pruned pruned;
  pruned.staged_files = std::ssize(staged);
  pruned.staged_bytes = bytes_of(staged);
  int64_t left = bytes_of(entries) + pruned.staged_bytes;
  for (const Entry& entry : entries) {
    if (left <= most) break;
    std::error_code error;
    if (!fs::remove(entry.path, error) && error)
      fail("{}: sheaf cannot remove it: {}; check that you may write to the store", entry.path,
           error.message());
    left -= entry.bytes;
    ++pruned.files;
    pruned.bytes += entry.bytes;
  }
  return pruned;
}

}  // namespace sheaf
