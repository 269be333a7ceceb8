#include "io/run_folder/merge_shards.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/report/report.h"
#include "core/report/report_html.h"
#include "io/base/job_changes.h"
#include "io/base/sha256.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/row_line.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct ShardFolder {
  std::string path;
  Manifest manifest;
  int64_t index = 0, count = 0, first = 0, end = 0;
};

constexpr const char* kRunAgain = "run the shard again with --restart";

ShardFolder open_shard(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored))
    refuse("{}: no such folder; name the folder to create first, then the shards", path);
  if (!file_size(path + "/_SUCCESS")) refuse("{}: this shard is not finished; finish its run first", path);
  ShardFolder shard{path, read_manifest(path, kRunAgain)};
  const ordered_json part = shard.manifest.fingerprint.value("shard", ordered_json());
  if (part.is_null()) refuse("{}: the folder contains a whole run, not a shard", path);
  const auto number = [&](const char* key) {
    const auto at = part.is_object() ? part.find(key) : part.end();
    if (at == part.end() || !at->is_number_integer() || *at < 0 || *at > INT64_MAX)
      refuse("{}/manifest.json: fingerprint.shard.{} is not a count; {}", path, key, kRunAgain);
    return at->get<int64_t>();
  };
  shard.index = number("index");
  shard.count = number("count");
  shard.first = number("first");
  shard.end = number("end");
  if (shard.index >= shard.count || shard.first > shard.end)
    refuse("{}/manifest.json: fingerprint.shard is not a valid shard; {}", path, kRunAgain);
  return shard;
}

ordered_json without_shard(const ShardFolder& shard) {
  ordered_json fingerprint = shard.manifest.fingerprint;
  fingerprint["shard"] = nullptr;
  return fingerprint;
}

void check_shards(const std::vector<ShardFolder>& shards) {
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto changes = list_differences(without_shard(shards[0]), without_shard(shards[i]));
    if (!changes.empty())
      refuse("{} and {} come from different jobs: {}", shards[0].path, shards[i].path, changes[0]);
    if (shards[i].count != shards[0].count)
      refuse("{} is one of {} shards, but {} is one of {}; merge shards of the same run", shards[0].path,
             shards[0].count, shards[i].path, shards[i].count);
    if (i > 0 && shards[i].index == shards[i - 1].index)
      refuse("{} and {} are both shard {}/{}; leave one out", shards[i - 1].path, shards[i].path,
             shards[i].index, shards[i].count);
    const int64_t wanted = i > 0 ? shards[i - 1].index + 1 : 0;
    if (shards[i].index != wanted)
      refuse("shard {}/{} is missing; give its folder too", wanted, shards[0].count);
    if (shards[i].first != (i > 0 ? shards[i - 1].end : 0))
      refuse(
          "{} begins at corpus record {}, not where the shard before it ends; run both shards again with "
          "--restart",
          shards[i].path, shards[i].first);
  }
  if (static_cast<int64_t>(shards.size()) != shards[0].count)
    refuse("shard {}/{} is missing; give its folder too", shards.size(), shards[0].count);
}

/// Appends a shard's file, which must have the bytes its manifest says.
void copy_file(const ShardFolder& shard, const PublishedFile& file, OutputFile& target, Sha256* all) {
  const std::string path = shard.path + "/" + file.name;
  Sha256 sum;
  int64_t bytes = 0;
  const bool there = read_pieces(path, [&](std::string_view piece) {
    sum.add(piece);
    bytes += static_cast<int64_t>(piece.size());
    if (all) all->add(piece);
    target.append(piece);
  });
  if (!there || sum.hex() != file.sha256 || bytes != file.bytes)
    refuse("{}: the file is missing, or does not match its manifest; {}", path, kRunAgain);
}

/// The shards' reports as one.
ordered_json add_up_reports(const std::vector<ShardFolder>& shards) {
  ordered_json sum;
  for (const ShardFolder& shard : shards) {
    const std::string path = shard.path + "/report.json";
    ordered_json report = read_report_file(path);
    if (!sum.is_null()) {
      report = add_reports(sum, report);
      check_report(report, path);  // counts that overflow when they are added are none
    }
    sum = std::move(report);
  }
  return sum;
}

/// What the merge will hold: the shards' rows files in order under new numbers.
struct MergePlan {
  struct Copy {
    const ShardFolder* shard;
    const PublishedFile* file;
  };
  std::vector<Copy> rows, rejects;
  Manifest manifest;  ///< the sum of the rejects is known when they are copied
};

MergePlan plan_merge(const std::vector<ShardFolder>& shards) {
  MergePlan plan;
  PublishedFile rejects;
  rejects.name = "rejects.jsonl";
  std::optional<MergePlan::Copy> empty;
  for (const ShardFolder& shard : shards) {
    for (const PublishedFile& file : shard.manifest.files) {
      if (file.name == "rejects.jsonl") {
        plan.rejects.push_back({&shard, &file});
        rejects.rows += file.rows;
        rejects.bytes += file.bytes;
      } else if (file.rows > 0) {
        plan.rows.push_back({&shard, &file});
      } else {
        empty = {&shard, &file};
      }
    }
    plan.manifest.end = std::max(plan.manifest.end, shard.manifest.end);
  }
  // A shard without rows has an empty file; the whole needs one only where there is no other.
  if (plan.rows.empty() && empty) plan.rows.push_back(*empty);
  for (const MergePlan::Copy& copy : plan.rows) {
    PublishedFile file = *copy.file;
    file.name = fmt::format("rows-{:05}{}", plan.manifest.files.size(),
                            std::filesystem::path(file.name).extension().string());
    plan.manifest.rows += file.rows;
    plan.manifest.files.push_back(std::move(file));
  }
  plan.manifest.rejects = rejects.rows;
  plan.manifest.files.push_back(rejects);
  plan.manifest.fingerprint = without_shard(shards[0]);
  plan.manifest.sources = shards[0].manifest.sources;
  return plan;
}

/// Whether the folder holds this very merge, finished before.
bool is_merged(const std::string& out, const MergePlan& plan) {
  if (!file_size(out + "/_SUCCESS") || file_size(out + "/" + kMergeMark)) return false;
  const Manifest there = read_manifest(out, "merge into a new folder");
  const auto same = [&](const PublishedFile& a, const PublishedFile& b) {
    return a.name == b.name && a.rows == b.rows && a.bytes == b.bytes &&
           file_size(out + "/" + a.name) == a.bytes && (a.name == "rejects.jsonl" || a.sha256 == b.sha256);
  };
  return there.fingerprint == plan.manifest.fingerprint &&
         std::equal(there.files.begin(), there.files.end(), plan.manifest.files.begin(),
                    plan.manifest.files.end(), same);
}

/// A folder with anything in it but a merge that was cut off is somebody else's.
void check_empty(const std::string& out) {
  const bool begun = file_size(out + "/" + kMergeMark).has_value();
  for (const std::string& name : list_folder(out))
    if (!name.starts_with('.') && !(begun && is_run_file(name)))
      refuse("{}: the folder is not empty: it contains {}; merge into a new folder", out, name);
}

/// Leaves nothing of a merge in the folder but its mark.
void prepare_folder(FileLayer& files, const std::string& out) {
  if (file_size(out + "/_SUCCESS")) {
    files.remove(out + "/_SUCCESS");
    files.sync_folder(out);
  }
  for (const std::string& name : list_folder(out))
    if (is_run_file(name)) files.remove(fmt::format("{}/{}", out, name));
  const auto mark = files.open(out + "/" + kMergeMark);
  files.sync_folder(out);
}

}  // namespace

Merged merge_shards(FileLayer& files, const std::string& folder, const std::vector<std::string>& paths,
                    const MergeMore& more) {
  const std::string out = settle_path(folder);
  std::vector<ShardFolder> shards;
  shards.reserve(paths.size());
  for (const std::string& path : paths) shards.push_back(open_shard(path));
  std::sort(shards.begin(), shards.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  if (shards.empty()) refuse("no shards to merge");
  check_shards(shards);
  MergePlan plan = plan_merge(shards);
  Manifest& manifest = plan.manifest;
  Merged merged{manifest.rows, manifest.rejects, static_cast<int64_t>(plan.rows.size()), {}, true};
  if (is_merged(out, plan)) return merged;
  merged.was_finished = false;
  ordered_json report;
  try {
    report = add_up_reports(shards);
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    merged.notice = fmt::format("the merged folder has no report: {}", error.what());
  }
  check_empty(out);  // first, so that nothing is left in a folder that is refused
  files.make_folder(out);
  const auto lock = files.lock(out);
  check_empty(out);
  prepare_folder(files, out);

  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const std::string target = out + "/" + manifest.files[i].name;
    {
      const auto file = files.open(target + ".part");
      copy_file(*plan.rows[i].shard, *plan.rows[i].file, *file, nullptr);
      file->sync();
    }
    lock->check();
    files.rename(target + ".part", target);
  }
  Sha256 sum;
  {
    const auto rejects = files.open(out + "/rejects.jsonl.part");
    for (const MergePlan::Copy& copy : plan.rejects) copy_file(*copy.shard, *copy.file, *rejects, &sum);
    rejects->sync();
  }
  manifest.files.back().sha256 = sum.hex();
  const auto publish = [&](const char* name, const std::string& text) {
    lock->check();
    write_whole(files, out, name, text);
  };
  lock->check();
  files.rename(out + "/rejects.jsonl.part", out + "/rejects.jsonl");
  if (writes_openai_batch(manifest.fingerprint)) write_openai_errors(files, out);
  if (more) {
    lock->check();
    std::vector<std::string> sources;
    for (const ShardFolder& shard : shards) sources.push_back(settle_path(shard.path));
    if (const std::string notice = more(out, sources); !notice.empty())
      merged.notice += (merged.notice.empty() ? "" : "; ") + notice;
  }
  publish("manifest.json", manifest_json(manifest).dump(2) + "\n");
  if (!report.is_null()) {
    publish("report.json", report.dump(2) + "\n");
    publish("report.html", report_html(report));
  }
  publish("_SUCCESS", "");
  lock->check();
  files.remove(out + "/" + kMergeMark);
  files.sync_folder(out);
  return merged;
}

}  // namespace sheaf
