#include "io/run_folder/unfinished.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/run_folder/journal.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr const char* kRunItAgain = "run the job again with --restart";

/// The groups of the journal, one after the other.
Manifest add_up(const JournalText& journal, const std::string& folder) {
  const ordered_json& head = journal.lines.at(0).record;
  Manifest manifest;
  manifest.fingerprint = head.at("fingerprint");
  manifest.first = manifest.end = head.at("first_row");
  if (const auto sources = head.find("sources"); sources != head.end())  // not in earlier versions
    manifest.sources = {sources->at("input"), sources->at("schema")};
  PublishedFile rows, rejects{"rejects.jsonl.part", 0, 0, ""};
  for (size_t i = 1; i < journal.lines.size(); ++i) {
    const ordered_json& line = journal.lines[i].record;
    if (line.contains("published")) {
      manifest.files.push_back({line.at("published"), line.at("rows"), line.at("bytes"), line.at("sha256")});
      if (!is_rows_name(manifest.files.back().name))
        refuse("{}/journal: a line was not written by sheaf; {}", folder, kRunItAgain);
      rows = {};
      continue;
    }
    manifest.end = line.at("position");
    manifest.rows = line.at("rows");
    manifest.rejects = line.at("rejects");
    rows = {"", line.at("file_rows"), line.at("file_bytes"), line.at("file_sha256")};
    rejects = {rejects.name, manifest.rejects, line.at("rejects_bytes"), line.at("rejects_sha256")};
  }
  rows.name = fmt::format("rows-{:05}.jsonl.part", manifest.files.size());
  if (rows.rows > 0) manifest.files.push_back(std::move(rows));
  manifest.files.push_back(std::move(rejects));
  return manifest;
}

}  // namespace

Manifest committed_so_far(const std::string& folder) {
  const auto text = read_whole(folder + "/journal", kLargestJournal);
  if (!text) refuse("{}: the folder has no run; name the output folder of a run", folder);
  const JournalText journal = read_journal(*text);
  try {
    Manifest manifest = journal.lines.empty() ? Manifest() : add_up(journal, folder);
    if (manifest.rows > 0) return manifest;
  } catch (const ordered_json::exception&) {
    refuse("{}/journal: a line was not written by sheaf; {}", folder, kRunItAgain);
  }
  refuse("{}: the run there has no rows yet; `sheaf run` resumes it", folder);
}

}  // namespace sheaf
