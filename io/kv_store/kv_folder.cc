#include "io/kv_store/kv_folder.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <random>
#include <tuple>

#include "core/base/error.h"
#include "core/base/random_stream.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHexDigits = 64;  // of a key
constexpr std::string_view kKept = ".kv", kStaged = ".kv.", kStagedEnd = ".part";
constexpr const char* kMarker = "sheaf-kv-store";
constexpr const char* kSpeed = "speed";
constexpr std::string_view kVersion = "1\n";
constexpr auto kAbandoned = std::chrono::hours(1);  // for so long no file is being written

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

KvOwn kind_by_name(std::string_view folder, std::string_view name) {
  if (name.size() <= kHexDigits || !name.starts_with(folder) || !is_hex(name.substr(0, kHexDigits)))
    return KvOwn::no;
  const std::string_view ending = name.substr(kHexDigits);
  if (ending == kKept) return KvOwn::kept;
  const bool staged = ending.starts_with(kStaged) && ending.ends_with(kStagedEnd) &&
                      ending.size() > kStaged.size() + kStagedEnd.size();
  return staged ? KvOwn::staged : KvOwn::no;
}

bool is_own_folder_name(const std::string& name) {
  return name.size() == 2 && is_hex(name);
}

/// Whether a store may have such a folder, directly below its own.
bool is_own_folder(const fs::path& path) {
  std::error_code gone;
  return is_own_folder_name(path.filename().string()) &&
         fs::symlink_status(path, gone).type() == fs::file_type::directory;
}

/// Whether it is a regular file, and not a link to one.
bool is_plain(const fs::path& path) {
  std::error_code gone;
  return fs::symlink_status(path, gone).type() == fs::file_type::regular;
}

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

int64_t bytes_of(const std::vector<KvFolder::Entry>& entries) {
  int64_t sum = 0;
  for (const KvFolder::Entry& entry : entries) sum += entry.bytes;
  return sum;
}

void add(KvTotals& totals, const KvTotals& more) {
  totals.segments += more.segments;
  totals.tokens += more.tokens;
  totals.bytes += more.bytes;
}

void set_titles(std::vector<KvContents>& contents) {
  for (KvContents& each : contents) {
    each.title = fmt::format("{} ({})", each.model, each.kind);
    const bool alone = std::ranges::count_if(contents, [&](const KvContents& other) {
                         return other.model == each.model && other.kind == each.kind;
                       }) == 1;
    if (!alone && !each.state.empty()) each.title += ", state " + each.state;
  }
}

}  // namespace

KvOwn own_kind(const fs::path& path) {
  const fs::path folder = path.parent_path();
  if (!is_own_folder(folder) || !is_plain(path)) return KvOwn::no;
  return kind_by_name(folder.filename().string(), path.filename().string());
}

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

KvListing list_contents(const KvFolder& folder, bool whole) {
  KvListing listing;
  std::map<std::tuple<std::string, std::string, std::string>, KvContents> found;
  for (const KvFolder::Entry& entry : folder.list()) {
    ReadKv read = whole ? verify_kv_file(entry.path) : read_kv_head(entry.path);
    if (read.head && read.trouble.empty() &&
        std::filesystem::path(entry.path).stem().string() != key_text(read.head->key))
      mark_damaged(read, "it holds other keys and values than its name says");
    if (!read.trouble.empty()) {
      if (own_kind(entry.path) == KvOwn::kept)
        listing.troubles.push_back({entry.path, read.trouble, read.damaged});
      continue;
    }
    KvContents& same = found[{read.head->model, read.head->kind, read.head->state}];
    std::tie(same.model, same.kind, same.state) =
        std::tie(read.head->model, read.head->kind, read.head->state);
    same.used = same.segments == 0 ? entry.used : std::max(same.used, entry.used);
    add(same, {1, read.head->tokens, entry.bytes});
  }
  for (auto& [_, contents] : found) {
    add(listing.total, contents);
    listing.contents.push_back(std::move(contents));
  }
  set_titles(listing.contents);
  std::ranges::sort(listing.contents, std::greater(), &KvContents::used);
  std::ranges::sort(listing.troubles, {}, &KvTrouble::path);
  return listing;
}

int64_t remove_damaged(KvListing& listing) {
  int64_t left = std::ssize(listing.troubles);
  for (KvTrouble& each : listing.troubles) {
    if (!each.damaged) continue;
    std::error_code error;
    const bool removed = std::filesystem::remove(each.path, error) && !error;
    each.trouble += removed ? "; removed" : "; it cannot be removed: " + error.message();
    left -= removed;
  }
  return left;
}

}  // namespace sheaf
