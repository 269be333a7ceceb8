// Run folders that were damaged or written by somebody else: whatever their files say, a run, a merge and a
// report end in a result or a refusal that names the folder.
#include <filesystem>
#include <map>

#include "core/report/report.h"
#include "core/report/report_html.h"
#include "io/files/workload.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/merge_shards.h"
#include "io/run_folder/read_rows.h"
#include "io/run_folder/run_folder.h"
#include "tests/fuzz.h"
#include "tests/io/faulty_files.h"
#include "tests/io/folder_contents.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
constexpr int64_t kRows = 9;

RunFolderOptions options_for(const std::string& path) {
  RunFolderOptions options;
  options.path = path;
  options.rows_per_file = 2;
  options.fingerprint = {{"job", {{"seed", 1}}},
                         {"shard", {{"index", 0}, {"count", 1}, {"first", 0}, {"end", kRows}}}};
  return options;
}

/// Does what is left to do up to corpus row `end`.
void work(RunFolder& folder, int64_t end) {
  for (int64_t at = folder.position(); at < end; ++at) {
    if (at % 4 == 3)
      folder.reject({});
    else
      folder.row({at});
    folder.commit(at + 1);
  }
}

std::string made_up_report() {
  return report_json(Report{}).dump();
}

void write_files(const TempFolder& folder, const std::string& name, const FolderContents& files) {
  std::filesystem::remove_all(folder.path(name));
  for (const auto& [file, text] : files) folder.write(name + "/" + file, text);
}

/// The journal's lines as they are, with sums that are right: what an attacker would write, not a disk.
std::string with_new_sums(const std::string& journal) {
  std::string out, before;
  size_t at = 0;
  for (size_t end; (end = journal.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = journal.substr(at, end - at);
    const size_t object = line.find('{');
    if (object == std::string::npos) continue;
    before = Sha256().add(before).add(line.substr(object)).hex().substr(0, 16);
    out += before + ' ' + line.substr(object) + '\n';
  }
  return out;
}

void expect_named(const TempFolder& folder, const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(folder.path()), std::string::npos) << error.what();
    throw;
  }
}

TEST(Fuzz, Journals) {
  const TempFolder folder;
  const RunFolderOptions options = options_for(folder.path("out"));
  {
    RunFolder run(quick_files(), options);
    work(run, 6);
  }
  FolderContents files = contents(options.path);
  const std::string journal = files.at("journal");
  int64_t resumed = 0;
  const auto read = [&](const std::string& text) {
    expect_named(folder, [&] {
      for (const std::string& each : {text, with_new_sums(text)}) {
        files["journal"] = each;
        write_files(folder, "out", files);
        RunFolder run(quick_files(), options);
        ++resumed;
        work(run, kRows);
        run.finish("{}\n");
      }
    });
  };
  fuzz_target("journal", {journal}, kJsonWords, read);
  EXPECT_GT(resumed, 10);
}

TEST(Fuzz, Manifests) {
  const TempFolder folder;
  const RunFolderOptions options = options_for(folder.path("out"));
  {
    RunFolder run(quick_files(), options);
    work(run, kRows);
    run.finish(made_up_report() + "\n");
  }
  FolderContents files = contents(options.path);
  fuzz_target("manifest", {files.at("manifest.json")}, kJsonWords, [&](const std::string& text) {
    files["manifest.json"] = text;
    write_files(folder, "out", files);
    std::filesystem::remove_all(folder.path("merged"));
    merge_shards(quick_files(), folder.path("merged"), {options.path});
    expect_named(folder, [&] { EXPECT_TRUE(RunFolder(quick_files(), options).finished()); });
  });
}

TEST(Fuzz, Rejects) {
  const TempFolder folder;
  Manifest manifest;
  manifest.fingerprint = ordered_json::parse(R"({"corpus": {"a.jsonl": {"bytes": 1}}})");
  const std::string good = "{\"file\":\"a.jsonl\",\"row\":3,\"id\":7,\"reason\":\"too long\"}\n";
  int64_t found = 0;
  fuzz_target("rejects", {good, good + good}, kJsonWords, [&](const std::string& text) {
    folder.write("rejects.jsonl", text);
    manifest.files = {{"rejects.jsonl", 1, std::ssize(text), ""}};
    expect_named(folder, [&] {
      found += RejectedRecords(folder.path(), manifest, {"now.jsonl"}).has({"now.jsonl", 3}) ? 1 : 0;
    });
  });
  EXPECT_GT(found, 0);
}

TEST(Fuzz, Reports) {
  const TempFolder folder;
  const ordered_json good = report_json(Report{});
  fuzz_target("report", {good.dump(), good.dump(2)}, kJsonWords, [&](const std::string& text) {
    const std::string path = folder.write("report.json", text);
    expect_named(folder, [&] {
      const ordered_json report = read_report_file(path), sum = add_reports(report, good);
      report_text(sum);
      report_html(sum);
      comparison_text({{"a", report}, {"b", sum}});
      comparison_html({{"a", report}, {"b", sum}});
    });
  });
}

TEST(Fuzz, SavedReports) {
  const std::string good =
      ordered_json{{"rows", 3}, {"rejects", 1}, {"report", report_json(Report{})}}.dump();
  fuzz_target("progress", {good}, kJsonWords, [&](const std::string& text) {
    const SavedReport saved = read_saved_report(text, "progress.json");
    add_reports(saved.report, saved.report);
  });
}

TEST(Fuzz, Workloads) {
  const TempFolder folder;
  const std::vector<std::string> seeds = {
      "{\"name\": \"w\", \"instruction_ids\": [1, 2]}\n"
      "{\"context_ids\": [3, 4], \"questions\": [{\"ids\": [5], \"answer_tokens\": 3}]}\n"
      "{\"context_ids\": [], \"questions\": [{\"ids\": [5, 6], \"answer_tokens\": 1}]}\n"};
  fuzz_target("workload", seeds, kJsonWords, [&](const std::string& text) {
    const std::string path = folder.write("w.jsonl", text);
    expect_named(folder, [&] { least_work(read_workload(path, false), {{0, 1}}); });
  });
}

}  // namespace
}  // namespace sheaf
