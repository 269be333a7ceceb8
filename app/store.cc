#include <chrono>
#include <fmt/chrono.h>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/format.h"
#include "core/text/spelling.h"
#include "io/kv_store/kv_folder.h"

namespace sheaf {
namespace {

struct StoreOptions {
  std::string action, folder;
  double gb = -1;
  bool json = false;
  bool remove = false;
};

std::string date_of(std::filesystem::file_time_type time) {
  const auto seconds =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(time));
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

std::string amounts(const KvTotals& totals) {
  return fmt::format("{}, {} tokens, {}", counted(totals.segments, "segment"), totals.tokens,
                     size_text(totals.bytes));
}

nlohmann::ordered_json contents_json(const KvListing& listing) {
  auto lines = nlohmann::ordered_json::array(), troubles = lines;
  for (const KvContents& each : listing.contents)
    lines.push_back({{"model", each.model},
                     {"kind", each.kind},
                     {"state", each.state},
                     {"segments", each.segments},
                     {"tokens", each.tokens},
                     {"bytes", each.bytes},
                     {"used", date_of(each.used)}});
  for (const KvTrouble& each : listing.troubles)
    troubles.push_back({{"path", each.path}, {"trouble", each.trouble}});
  return {{"segments", listing.total.segments},
          {"tokens", listing.total.tokens},
          {"bytes", listing.total.bytes},
          {"contents", lines},
          {"damaged", troubles}};
}

void show_contents(const KvListing& listing, const StoreOptions& options) {
  if (options.json) return print_json(contents_json(listing));
  for (const KvContents& each : listing.contents)
    print_line(fmt::format("{}: {}, last used {} UTC", each.title, amounts(each), date_of(each.used)));
  for (const KvTrouble& each : listing.troubles) print_line(fmt::format("{}: {}", each.path, each.trouble));
  print_line(fmt::format("{}: {}", options.folder, amounts(listing.total)));
}

int verify(const StoreOptions& options) {
  const KvFolder folder = KvFolder::existing(options.folder);
  KvListing listing = list_contents(folder, true);
  const int64_t left = options.remove ? remove_damaged(listing) : std::ssize(listing.troubles);
  show_contents(listing, options);
  if (left > 0 && !options.remove)
    print_note(fmt::format("{} cannot be used; runs compute what {} again; add --remove to delete {}",
                           counted(left, "file"), left == 1 ? "it held" : "they held",
                           left == 1 ? "it" : "them"));
  return left == 0 ? 0 : 1;
}

int prune(const StoreOptions& options) {
  if (options.gb < 0)
    refuse("sheaf store prune needs --gb: the gigabytes that may stay; 0 empties the store");
  const KvFolder folder = KvFolder::existing(options.folder);
  const KvFolder::Pruned pruned = folder.prune(static_cast<int64_t>(options.gb * 1e9));
  if (options.json)
    print_json({{"files", pruned.files},
                {"bytes", pruned.bytes},
                {"staged_files", pruned.staged_files},
                {"staged_bytes", pruned.staged_bytes}});
  else
    print_line(fmt::format("{}: {} removed, {}", options.folder, counted(pruned.files, "segment"),
                           size_text(pruned.bytes)));
  if (pruned.staged_files > 0 && !options.json)
    print_note(
        fmt::format("left in place: {} ({}), which a run may be writing; prune removes such files an hour "
                    "after their last change",
                    counted(pruned.staged_files, "unfinished file"), size_text(pruned.staged_bytes)));
  return 0;
}

int look_at(const StoreOptions& options) {
  if (options.gb >= 0 && options.action != "prune") refuse("--gb works only with `sheaf store prune`");
  if (options.remove && options.action != "verify") refuse("--remove works only with `sheaf store verify`");
  if (options.action == "verify") return verify(options);
  if (options.action == "prune") return prune(options);
  show_contents(list_contents(KvFolder::existing(options.folder), false), options);
  return 0;
}

}  // namespace

void add_store_command(Program& program) {
  auto options = std::make_shared<StoreOptions>();
  add_command(
      program, "store",
      "Look at a store of keys and values (a job's engine.kv_store): ls shows which models keep how much, "
      "verify reads every byte, prune deletes what was least recently used",
      {{"ACTION", options->action, "What to do", kRequired, one_of({"ls", "verify", "prune"})},
       {"STORE", options->folder, "The folder of the store", value_name("FOLDER"), kRequired},
       {"--gb", options->gb, "prune: gigabytes that may stay; 0 empties the store", number_from(0, 1e6)},
       {"--remove", options->remove, "verify: delete what is damaged or of an earlier version"},
       {"--json", options->json, "Print JSON"}},
      [options] { return look_at(*options); });
}

}  // namespace sheaf
