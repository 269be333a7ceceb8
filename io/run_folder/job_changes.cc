#include "io/run_folder/job_changes.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/spelling.h"
#include "io/base/list_changes.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr size_t kFilesShown = 3;     // of a part of the job
constexpr size_t kSettingsShown = 5;  // that changed

Texts shortened_list(Texts texts, size_t most, std::string_view noun) {
  const size_t all = texts.size();
  texts.resize(std::min(all, most));
  if (all > most) texts.push_back("and " + counted(static_cast<int64_t>(all - most), noun) + " more");
  return texts;
}

/// Null where it is not there: a stranger may have written the fingerprint.
ordered_json part_of(const ordered_json& from, const char* key) {
  return from.is_object() ? from.value(key, ordered_json()) : ordered_json();
}

std::string shown_part(const ordered_json& value) {
  return shorten_text(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace), 60);
}

/// As people call a file of the corpus.
std::string file_title(const std::string& name) {
  return name == "-" ? "standard input" : name;
}

std::string file_change(const std::string& name, const ordered_json& before, const ordered_json& now) {
  const ordered_json old_bytes = part_of(before, "bytes"), bytes = part_of(now, "bytes");
  if (old_bytes != bytes)
    return fmt::format("{} has {} bytes instead of {}", name, shown_part(bytes), shown_part(old_bytes));
  for (const char* sum : {"sha256", "sampled_sha256"})
    if (part_of(before, sum) != part_of(now, sum))
      return fmt::format("{} has other contents of the same size", name);
  return fmt::format("{} was written again", name);
}

/// Of two lists of files by name.
Texts file_changes(const ordered_json& before, const ordered_json& now) {
  // An ordered object looks through all its keys for one; a corpus may have a hundred thousand.
  std::unordered_map<std::string_view, const ordered_json*> old;
  if (before.is_object())
    for (const auto& [name, about] : before.items()) old.emplace(name, &about);
  Texts changes;
  if (now.is_object())
    for (const auto& [name, about] : now.items()) {
      const auto found = old.find(name);
      if (found == old.end()) {
        changes.push_back(file_title(name) + " is new");
        continue;
      }
      if (*found->second != about) changes.push_back(file_change(file_title(name), *found->second, about));
      old.erase(found);
    }
  if (before.is_object())
    for (const auto& [name, about] : before.items())
      if (old.contains(name)) changes.push_back(file_title(name) + " is gone");
  return changes;
}

std::string shard_text(const ordered_json& shard) {
  if (!shard.is_object()) return "absent";
  return fmt::format("{}/{}", shown_part(part_of(shard, "index")), shown_part(part_of(shard, "count")));
}

}  // namespace

std::string describe_changes(const ordered_json& before, const ordered_json& now) {
  Texts changes;
  const auto differs = [&](const char* key) { return part_of(before, key) != part_of(now, key); };
  for (const auto& [key, name] :
       {std::pair{"corpus", "the corpus"}, {"model", "the model"}, {"adapter", "the adapter"}})
    if (differs(key)) {
      const Texts files = file_changes(part_of(before, key), part_of(now, key));
      changes.push_back(
          fmt::format("{} changed: {}", name, fmt::join(shortened_list(files, kFilesShown, "file"), ", ")));
    }
  for (const auto& [key, name] : {std::pair{"schema", "the schema (task.schema)"},
                                  {"examples", "the examples (task.examples)"},
                                  {"chat", "the chat template (model.chat)"},
                                  {"calibration", "the calibration (output.calibration)"}})
    if (differs(key)) changes.push_back(fmt::format("{} changed", name));
  const Texts settings = list_changes(part_of(before, "job"), part_of(now, "job"));
  for (std::string& setting : shortened_list(settings, kSettingsShown, "setting"))
    changes.push_back(std::move(setting));
  if (differs("shard"))
    changes.push_back(fmt::format("--shard was {} and is now {}", shard_text(part_of(before, "shard")),
                                  shard_text(part_of(now, "shard"))));
  for (const auto& [key, name] : {std::pair{"device", "the device"}, {"sheaf", "the version of sheaf"}})
    if (differs(key))
      changes.push_back(fmt::format("{} was {} and is now {}", name, shown_part(part_of(before, key)),
                                    shown_part(part_of(now, key))));
  // Something that this version does not know by name.
  if (changes.empty()) changes = shortened_list(list_changes(before, now), kSettingsShown, "setting");
  return fmt::format("{}", fmt::join(changes, "; "));
}

}  // namespace sheaf
