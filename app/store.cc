#include <CLI/CLI.hpp>
#include <chrono>
#include <fmt/chrono.h>
#include <memory>

#include "app/commands.h"
#include "app/option_checks.h"
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

void show_contents(const KvListing& listing, const StoreOptions& options) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  const auto amounts = [](const KvTotals& totals) {
    return fmt::format("{}, {} tokens, {}", counted(totals.segments, "segment"), totals.tokens,
                       size_text(totals.bytes));
  };
  for (const KvContents& each : listing.contents) {
    if (options.json)
      lines.push_back({{"model", each.model},
                       {"kind", each.kind},
                       {"state", each.state},
                       {"segments", each.segments},
                       {"tokens", each.tokens},
                       {"bytes", each.bytes},
                       {"used", date_of(each.used)}});
    else
      print_line(fmt::format("{}: {}, last used {} UTC", each.title, amounts(each), date_of(each.used)));
  }
  nlohmann::ordered_json troubles = nlohmann::ordered_json::array();
  for (const KvTrouble& each : listing.troubles) {
    if (options.json)
      troubles.push_back({{"path", each.path}, {"trouble", each.trouble}});
    else
      print_line(fmt::format("{}: {}", each.path, each.trouble));
  }
  if (options.json)
    print_json({{"segments", listing.total.segments},
                {"tokens", listing.total.tokens},
                {"bytes", listing.total.bytes},
                {"contents", lines},
                {"damaged", troubles}});
  else
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

void add_store_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "store",
      "Look at a store of keys and values (a job's engine.kv_store): ls shows which models keep how much, "
      "verify reads every byte, prune deletes what was not used for longest");
  auto options = std::make_shared<StoreOptions>();
  command->add_option("ACTION", options->action, "What to do")
      ->required()
      ->check(one_of({"ls", "verify", "prune"}));
  command->add_option("STORE", options->folder, "The folder of the store")->type_name("FOLDER")->required();
  command->add_option("--gb", options->gb, "prune: gigabytes that may stay; 0 empties the store")
      ->check(number_from(0, 1e6));
  command->add_flag("--remove", options->remove, "verify: delete what is damaged or of an earlier version");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &exit_code] { exit_code = look_at(*options); });
}

}  // namespace sheaf
