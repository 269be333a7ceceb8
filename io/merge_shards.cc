#include "io/merge_shards.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/add_reports.h"
#include "core/error.h"
#include "core/report.h"
#include "core/report_html.h"
#include "io/run_folder.h"
#include "io/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr const char* kMark = ".merging";  // in a folder whose merge is not done

struct ShardFolder {
  std::string path;
  ordered_json manifest;
  int64_t index = 0, count = 0, first = 0, end = 0;
};

ShardFolder open_shard(const std::string& path) {
  if (!std::filesystem::is_directory(path)) refuse("{}: no such folder", path);
  if (!file_size(path + "/_SUCCESS")) refuse("{}: is not finished; run its shard to the end first", path);
  ShardFolder shard{path,
                    ordered_json::parse(read_whole(path + "/manifest.json").value_or(""), nullptr, false)};
  try {
    const ordered_json& part = shard.manifest.at("fingerprint").at("shard");
    if (part.is_null()) refuse("{}: holds a whole run, not a shard of one", path);
    shard.index = part.at("index");
    shard.count = part.at("count");
    shard.first = part.at("first");
    shard.end = part.at("end");
  } catch (const ordered_json::exception&) {
    refuse("{}: manifest.json cannot be read; run the shard again with --restart", path);
  }
  return shard;
}

ordered_json without_shard(const ShardFolder& shard) {
  ordered_json fingerprint = shard.manifest.at("fingerprint");
  fingerprint["shard"] = nullptr;
  return fingerprint;
}

void check_shards(const std::vector<ShardFolder>& shards) {
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto changes = list_changes(without_shard(shards[0]), without_shard(shards[i]));
    if (!changes.empty())
      refuse("{} and {} are of different jobs: {}", shards[0].path, shards[i].path, changes[0]);
    if (shards[i].count != shards[0].count)
      refuse("{} is one of {} shards and {} one of {}; they do not belong together", shards[0].path,
             shards[0].count, shards[i].path, shards[i].count);
    if (i > 0 && shards[i].index == shards[i - 1].index)
      refuse("{} and {} are both shard {}/{}; leave one out", shards[i - 1].path, shards[i].path,
             shards[i].index, shards[i].count);
    const int64_t wanted = i > 0 ? shards[i - 1].index + 1 : 0;
    if (shards[i].index != wanted) refuse("shard {}/{} is missing", wanted, shards[0].count);
    if (shards[i].first != (i > 0 ? shards[i - 1].end : 0))
      refuse("{} begins at corpus row {} and not where the shard before it ends", shards[i].path,
             shards[i].first);
  }
  if (static_cast<int64_t>(shards.size()) != shards[0].count)
    refuse("shard {}/{} is missing", shards.size(), shards[0].count);
}

/// Appends a shard's file, which must have the bytes its manifest says.
void copy_file(const ShardFolder& shard, const ordered_json& about, OutputFile& target, Sha256* all) {
  const std::string path = shard.path + "/" + about.at("name").get<std::string>();
  Sha256 sum;
  const bool there = read_pieces(path, [&](std::string_view piece) {
    sum.add(piece);
    if (all) all->add(piece);
    target.append(piece);
  });
  if (!there || sum.hex() != about.at("sha256").get<std::string>())
    refuse("{}: is gone or no longer what its manifest says; run the shard again with --restart", path);
}

/// The shards' reports as one; null where one of them has none that can be read.
ordered_json add_up_reports(const std::vector<ShardFolder>& shards) {
  ordered_json sum;
  for (const ShardFolder& shard : shards) {
    const ordered_json report =
        ordered_json::parse(read_whole(shard.path + "/report.json").value_or(""), nullptr, false);
    try {
      sum = sum.is_null() ? report : add_reports(sum, report);
      if (report.at("version") != kReportVersion) return nullptr;
    } catch (const ordered_json::exception&) {
      return nullptr;
    }
  }
  return sum;
}

/// Leaves nothing in the folder but the mark of a merge that is not done.
void prepare_folder(FileLayer& files, const std::string& out) {
  std::vector<std::string> there = list_folder(out);
  std::erase(there, ".lock");
  if (!there.empty()) {
    if (std::find(there.begin(), there.end(), kMark) == there.end())
      refuse("{}: is not empty; merge into a new folder", out);
    files.remove(out + "/_SUCCESS");
    files.sync_folder(out);
  }
  for (const std::string& name : there)
    if (name != kMark) files.remove(fmt::format("{}/{}", out, name));
  const auto mark = files.open(out + "/" + kMark);
  files.sync_folder(out);
}

}  // namespace

Merged merge_shards(FileLayer& files, const std::string& out, const std::vector<std::string>& paths) {
  std::vector<ShardFolder> shards;
  shards.reserve(paths.size());
  for (const std::string& path : paths) shards.push_back(open_shard(path));
  std::sort(shards.begin(), shards.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  if (shards.empty()) refuse("no shards to merge");
  check_shards(shards);
  files.make_folder(out);
  const auto lock = files.lock(out);
  prepare_folder(files, out);

  Merged merged;
  ordered_json table = ordered_json::array();
  Sha256 rejects_sum;
  int64_t rejects_bytes = 0, corpus_end = 0;
  const auto rejects = files.open(out + "/rejects.jsonl.part");
  for (const ShardFolder& shard : shards) {
    for (ordered_json about : shard.manifest.at("files")) {
      const std::string name = about.at("name");
      if (name == "rejects.jsonl") {
        copy_file(shard, about, *rejects, &rejects_sum);
        rejects_bytes += about.at("bytes").get<int64_t>();
        merged.rejects += about.at("rows").get<int64_t>();
        continue;
      }
      // A shard without rows has an empty file; the whole needs one only where there is no other.
      const bool last = &shard == &shards.back();
      if (about.at("rows") == 0 && !(last && merged.files == 0)) continue;
      about["name"] =
          fmt::format("rows-{:05}{}", merged.files++, std::filesystem::path(name).extension().string());
      const std::string target = out + "/" + about["name"].get<std::string>();
      {
        const auto file = files.open(target + ".part");
        ordered_json source = about;
        source["name"] = name;
        copy_file(shard, source, *file, nullptr);
        file->sync();
      }
      files.rename(target + ".part", target);
      merged.rows += about.at("rows").get<int64_t>();
      table.push_back(std::move(about));
    }
    corpus_end = std::max(corpus_end, shard.manifest.at("corpus_rows").at("end").get<int64_t>());
  }
  rejects->sync();
  files.rename(out + "/rejects.jsonl.part", out + "/rejects.jsonl");
  table.push_back({{"name", "rejects.jsonl"},
                   {"rows", merged.rejects},
                   {"bytes", rejects_bytes},
                   {"sha256", rejects_sum.hex()}});
  const ordered_json fingerprint = without_shard(shards[0]);
  const ordered_json manifest{{"manifest", 1},
                              {"rows", merged.rows},
                              {"rejects", merged.rejects},
                              {"corpus_rows", {{"first", 0}, {"end", corpus_end}}},
                              {"files", std::move(table)},
                              {"fingerprint_sha256", sha256(fingerprint.dump())},
                              {"fingerprint", fingerprint}};
  write_whole(files, out, "manifest.json", manifest.dump(2) + "\n");
  if (const ordered_json report = add_up_reports(shards); !report.is_null()) {
    write_whole(files, out, "report.json", report.dump(2) + "\n");
    write_whole(files, out, "report.html", report_html(report));
  }
  write_whole(files, out, "_SUCCESS", "");
  files.remove(out + "/" + kMark);
  files.sync_folder(out);
  return merged;
}

}  // namespace sheaf
