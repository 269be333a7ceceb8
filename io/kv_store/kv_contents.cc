#include "io/kv_store/kv_contents.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "io/base/file_layer.h"

namespace sheaf {

KvListing list_contents(const KvFolder& folder, bool whole) {
  KvListing listing;
  std::map<std::pair<std::string, std::string>, KvContents> found;
  for (const KvFolder::Entry& entry : folder.list()) {
    ReadKv read = whole ? verify_kv_file(entry.path) : read_kv_head(entry.path);
    if (read.head && read.trouble.empty() && entry.bytes != kKvHeadBytes + read.head->bytes)
      mark_damaged(read,
                   fmt::format("it has {} bytes, not {}", entry.bytes, kKvHeadBytes + read.head->bytes));
    if (read.head && read.trouble.empty() &&
        std::filesystem::path(entry.path).stem().string() != key_text(read.head->key))
      mark_damaged(read, "it holds other keys and values than its name says");
    if (!read.trouble.empty()) {
      if (file_size(entry.path)) listing.troubles.push_back({entry.path, read.trouble, read.damaged});
      continue;
    }
    KvContents& same = found[{read.head->model, read.head->kind}];
    same.model = read.head->model;
    same.kind = read.head->kind;
    same.used = same.segments++ == 0 ? entry.used : std::max(same.used, entry.used);
    same.tokens += read.head->tokens;
    same.bytes += entry.bytes;
  }
  for (auto& [_, contents] : found) listing.contents.push_back(std::move(contents));
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
