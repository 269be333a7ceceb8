#include "io/run_folder/journal.h"

#include "core/base/error.h"
#include "core/text/json_reader.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kSumDigits = 16;

std::string sum_of(std::string_view object, const std::string& before) {
  return Sha256().add(before).add(object).hex().substr(0, kSumDigits);
}

RunProgress next_place(const RunProgress& before, const ordered_json& line) {
  RunProgress place = before;
  if (line.contains("published")) {
    ++place.file;
    place.file_rows = place.file_bytes = 0;
    place.file_sha256 = sha256("");
    return place;
  }
  place.position = line.at("position");
  place.rows = line.at("rows");
  place.rejects = line.at("rejects");
  place.file_rows = line.at("file_rows");
  place.file_bytes = line.at("file_bytes");
  place.file_sha256 = line.at("file_sha256");
  place.rejects_bytes = line.at("rejects_bytes");
  place.rejects_sha256 = line.at("rejects_sha256");
  place.may_end = line.value("may_end", true);
  return place;
}

bool goes_on(const RunProgress& before, const RunProgress& place) {
  return place.position >= before.position && place.rows >= before.rows && place.rejects >= before.rejects &&
         place.rejects_bytes >= before.rejects_bytes &&
         (place.file > before.file ||
          (place.file_rows >= before.file_rows && place.file_bytes >= before.file_bytes));
}

}  // namespace

JournalText read_journal(std::string_view text) {
  JournalText journal;
  size_t at = 0;
  std::string before;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    journal.whole = false;
    if (end == std::string_view::npos || end - at <= kSumDigits || text[at + kSumDigits] != ' ') break;
    const std::string_view object = text.substr(at + kSumDigits + 1, end - at - kSumDigits - 1);
    JournalLine line{nullptr, std::string(text.substr(at, kSumDigits)), static_cast<int64_t>(end + 1)};
    if (line.sum != sum_of(object, before)) break;
    line.record = read_json<ordered_json>(object);
    if (!line.record.is_object()) break;
    before = line.sum;
    journal.lines.push_back(std::move(line));
    journal.whole = true;
    at = end + 1;
  }
  return journal;
}

std::string journal_line(const ordered_json& record, const std::string& before) {
  const std::string object = record.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return sum_of(object, before) + ' ' + object + '\n';
}

JournalWriter::JournalWriter(FileLayer& files, const std::string& path, const JournalLine& last)
    : file_(files.open(path)), sum_(last.sum) {
  if (file_size(path) == last.end) return;
  file_->truncate(last.end);
  file_->sync();
}

void JournalWriter::append(const ordered_json& record) {
  const std::string line = journal_line(record, sum_);
  file_->append(line);
  file_->sync();
  sum_ = line.substr(0, kSumDigits);
}

ordered_json RunProgress::json() const {
  ordered_json line{{"position", position},
                    {"rows", rows},
                    {"rejects", rejects},
                    {"file_rows", file_rows},
                    {"file_bytes", file_bytes},
                    {"file_sha256", file_sha256},
                    {"rejects_bytes", rejects_bytes},
                    {"rejects_sha256", rejects_sha256}};
  if (!may_end) line["may_end"] = false;
  return line;
}

std::optional<JournalRun> read_run(const JournalText& journal) {
  JournalRun run;
  run.places.resize(1);
  try {
    const ordered_json& head = journal.lines.at(0).record;
    run.fingerprint = head.at("fingerprint");
    run.places[0].position = head.at("first_row");
    if (const auto sources = head.find("sources"); sources != head.end())  // not in earlier versions
      run.sources = {sources->at("input"), sources->at("schema")};
    for (size_t i = 1; i < journal.lines.size(); ++i) {
      const ordered_json& line = journal.lines[i].record;
      if (line.contains("published")) {
        run.published.push_back({line.at("published"), line.at("rows"), line.at("bytes"), line.at("sha256")});
        if (!is_rows_name(run.published.back().name)) return std::nullopt;
      }
      RunProgress place = next_place(run.places.back(), line);
      if (!goes_on(run.places.back(), place)) return std::nullopt;
      run.places.push_back(std::move(place));
    }
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
  return run;
}

Manifest committed_so_far(const std::string& folder) {
  const auto text = read_whole(folder + "/journal", kLargestJournal);
  if (!text) refuse("{}: the folder has no run; name the output folder of a run", folder);
  const JournalText journal = read_journal(*text);
  const auto run = journal.lines.empty() ? JournalRun{{}, {}, {{}}, {}} : read_run(journal);
  if (!run) refuse("{}/journal: a line was not written by sheaf; {}", folder, kRestart);
  const RunProgress& last = run->places.back();
  if (last.rows == 0) refuse("{}: the run there has no rows yet; `sheaf run` resumes it", folder);
  Manifest manifest{last.rows,        last.rejects, run->places[0].position, last.position, run->published,
                    run->fingerprint, run->sources};
  if (last.file_rows > 0)
    manifest.files.push_back({fmt::format("rows-{:05}.jsonl.part", manifest.files.size()), last.file_rows,
                              last.file_bytes, last.file_sha256});
  manifest.files.push_back({"rejects.jsonl.part", last.rejects, last.rejects_bytes, last.rejects_sha256});
  return manifest;
}

}  // namespace sheaf
