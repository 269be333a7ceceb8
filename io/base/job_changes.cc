#include "io/base/job_changes.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <unordered_map>

#include "core/text/spelling.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Texts = std::vector<std::string>;

using Members = std::unordered_map<std::string_view, const ordered_json*>;

constexpr const char* kCorpus = "the corpus";
constexpr size_t kFilesShown = 3;     // of a part of the job
constexpr size_t kSettingsShown = 5;  // settings that changed

std::string shown_part(const ordered_json& value) {
  return shorten_text(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace), 60);
}

/// A limit of 0 means all.
std::string setting_text(std::string_view key, const ordered_json& value) {
  return key.ends_with("input.limit") && value == 0 ? "0 (all)" : shown_part(value);
}

/// An ordered object looks through all its keys for one; a corpus may have a hundred thousand.
Members members_of(const ordered_json& object) {
  Members members;
  for (const auto& [key, value] : object.items()) members.emplace(key, &value);
  return members;
}

/// How to tell of a value, of one that only the first has, and of one that only the second has.
struct ChangeWords {
  fmt::format_string<const std::string&, std::string, std::string> other;
  const char *removed, *added;
};

void add_changes(const std::string& key, const ordered_json& before, const ordered_json& now,
                 const ChangeWords& words, std::vector<std::string>& changes) {
  if (!before.is_object() || !now.is_object()) {
    if (before != now)
      changes.push_back(fmt::format(words.other, key, setting_text(key, before), setting_text(key, now)));
    return;
  }
  const std::string prefix = key.empty() ? "" : key + ".";
  const Members old = members_of(before), fresh = members_of(now);
  for (const auto& [name, value] : before.items()) {
    const auto other = fresh.find(name);
    if (other == fresh.end())
      changes.push_back(prefix + name + words.removed);
    else
      add_changes(prefix + name, value, *other->second, words, changes);
  }
  for (const auto& [name, value] : now.items())
    if (!old.contains(name)) changes.push_back(prefix + name + words.added);
}

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

/// As people call a file of the corpus.
std::string file_title(const std::string& name) {
  return name == "-" ? "standard input" : name;
}

/// What became of the files of a part of the job.
struct FileChanges {
  Texts texts;  ///< of each file that changed
  bool more = false, less = false, other = false;
  bool shared = false;  ///< some file is there before and now
};

void add_change(const std::string& name, const ordered_json& before, const ordered_json& now,
                FileChanges& changes) {
  const ordered_json old_bytes = part_of(before, "bytes"), bytes = part_of(now, "bytes");
  if (old_bytes != bytes) {
    const bool grew = old_bytes < bytes;
    (grew ? changes.more : changes.less) = true;
    changes.texts.push_back(fmt::format("{} {} from {} to {} bytes", name, grew ? "grew" : "shrank",
                                        shown_part(old_bytes), shown_part(bytes)));
    return;
  }
  changes.other = true;
  const char* what = "was written again";
  for (const char* sum : {"sha256", "pieces_sha256", "sampled_sha256", "etag"}) {
    const ordered_json old_sum = part_of(before, sum), new_sum = part_of(now, sum);
    if (old_sum == new_sum) continue;
    what = old_sum.is_null() || new_sum.is_null() ? "was recorded differently by another version of sheaf"
                                                  : "has other contents of the same size";
  }
  changes.texts.push_back(fmt::format("{} {}", name, what));
}

/// What became of files; both are objects by name.
FileChanges file_changes(const ordered_json& before, const ordered_json& now) {
  Members old = members_of(before);
  FileChanges changes;
  for (const auto& [name, about] : now.items()) {
    const auto found = old.find(name);
    if (found == old.end()) {
      changes.more = true;
      changes.texts.push_back(file_title(name) + " is new");
      continue;
    }
    changes.shared = true;
    if (*found->second != about) add_change(file_title(name), *found->second, about, changes);
    old.erase(found);
  }
  for (const auto& [name, about] : before.items())
    if (old.contains(name)) {
      changes.less = true;
      changes.texts.push_back(file_title(name) + " is gone");
    }
  return changes;
}

std::string names_of(const ordered_json& files) {
  Texts names;
  for (const auto& [name, about] : files.items()) names.push_back(file_title(name));
  return fmt::format("{}", fmt::join(shortened_list(std::move(names), kFilesShown, "file"), ", "));
}

/// "the corpus grew: items.jsonl grew from 380 to 420 bytes".
std::string describe_files(std::string_view name, const ordered_json& before, const ordered_json& now) {
  if (!now.is_object()) return fmt::format("{} was left out", name);
  if (!before.is_object()) return fmt::format("{} was added: {}", name, names_of(now));
  const FileChanges changes = file_changes(before, now);
  if (!changes.shared)
    return fmt::format("{} has changed: {} instead of {}", name, names_of(now), names_of(before));
  const bool one_way = name == std::string_view(kCorpus) && !changes.other && changes.more != changes.less;
  const char* const how = !one_way ? "changed" : changes.more ? "grew" : "shrank";
  return fmt::format("{} {}: {}", name, how,
                     fmt::join(shortened_list(changes.texts, kFilesShown, "file"), ", "));
}

std::string shard_text(const ordered_json& shard) {
  if (!shard.is_object()) return "absent";
  return fmt::format("{}/{}", shown_part(part_of(shard, "index")), shown_part(part_of(shard, "count")));
}

}  // namespace

std::vector<std::string> list_changes(const ordered_json& before, const ordered_json& now) {
  std::vector<std::string> changes;
  add_changes("", before, now, {"{} was {} and is now {}", " was removed", " was added"}, changes);
  return changes;
}

std::vector<std::string> list_differences(const ordered_json& first, const ordered_json& other) {
  std::vector<std::string> differences;
  add_changes("", first, other,
              {"{} is {} in the first and {} in the other", " is only in the first", " is only in the other"},
              differences);
  return differences;
}

std::string describe_changes(const ordered_json& before, const ordered_json& now) {
  Texts changes;
  const auto differs = [&](const char* key) { return part_of(before, key) != part_of(now, key); };
  for (const auto& [key, name] :
       {std::pair{"corpus", kCorpus}, {"model", "the model"}, {"adapter", "the adapter"}})
    if (differs(key)) changes.push_back(describe_files(name, part_of(before, key), part_of(now, key)));
  for (const auto& [key, name] : {std::pair{"schema", "the schema (task.schema)"},
                                  {"examples", "the examples (task.examples)"},
                                  {"chat", "the chat template (model.chat)"},
                                  {"passages", "the passages (input.corpus)"},
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
