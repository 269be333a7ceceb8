#include "io/kv_store/kv_contents.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace sheaf {
namespace {

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
