#include "io/run_folder/run_folder.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/base/job_changes.h"
#include "io/run_folder/merge_shards.h"
#include "io/run_folder/row_line.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int kJournalVersion = 1;
constexpr const char* kMend = "start again with --restart, or choose another output.path";
constexpr const char* kNotOurs = "choose a new or empty folder as output.path";

std::string dump_line(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

/// The sums of the first `sizes[i]` bytes of a file, ascending; those past its end are left out.
std::vector<Sha256> prefix_sums(const std::string& path, const std::vector<int64_t>& sizes) {
  std::vector<Sha256> sums;
  Sha256 sum;
  int64_t done = 0;
  const auto take_ended = [&] {
    while (sums.size() < sizes.size() && sizes[sums.size()] == done) sums.push_back(sum);
  };
  take_ended();
  read_pieces(path, [&](std::string_view piece) {
    while (!piece.empty() && sums.size() < sizes.size()) {
      const auto part =
          static_cast<size_t>(std::min(static_cast<int64_t>(piece.size()), sizes[sums.size()] - done));
      sum.add(piece.substr(0, part));
      done += static_cast<int64_t>(part);
      piece.remove_prefix(part);
      take_ended();
    }
  });
  return sums;
}

void check_untouched(const std::string& path, bool untouched) {
  if (!untouched)
    refuse(
        "{}: another program changed this file during the run; rerun the same command to resume, and do not "
        "change the file",
        path);
}

/// Whether a file begins as a journal does, as far as it goes; zeros are what a power loss may leave of it.
bool begins_as_journal(const std::string& path, size_t least) {
  std::string head = read_beginning(path, 28).value_or("");
  head.resize(head.find_last_not_of('\0') + 1);
  constexpr std::string_view rest = " {\"journal\":";
  const size_t digits = std::min<size_t>(head.size(), 16);
  return head.size() >= least &&
         std::string_view(head).substr(0, digits).find_first_not_of("0123456789abcdef") ==
             std::string_view::npos &&
         rest.starts_with(std::string_view(head).substr(digits));
}

/// Whether no row is lost where the run begins again.
bool is_without_rows(const JournalText& journal) {
  return std::ranges::all_of(
      journal.lines, [](const JournalLine& line) { return line.record.value("rows", ordered_json(0)) == 0; });
}

}  // namespace

void check_own_folder(const std::string& path, bool replaced) {
  const std::string journal = path + "/journal";
  if (begins_as_journal(journal, 28)) return;
  // A damaged one is known by the lock that every run leaves beside it.
  if (file_size(journal) && file_size(path + "/.lock")) return;
  std::string stranger;
  for (const std::string& name : list_folder(path)) {
    // Hidden files are nothing to us; a first journal may have been cut off before it had its name.
    const bool ours = name == "journal.part" ? begins_as_journal(fmt::format("{}/{}", path, name), 0)
                                             : name.starts_with('.') && name != kMergeMark;
    if (!ours && stranger.empty()) stranger = name;
  }
  if (stranger.empty()) return;
  if (replaced && file_size(path + "/_SUCCESS") && file_size(path + "/manifest.json")) {
    read_manifest(path, kNotOurs);  // of a merge, which has no journal
    return;
  }
  refuse("{}: the folder contains {}, but no run of sheaf; {}", path, stranger, kNotOurs);
}

ordered_json started_as(const std::string& folder) {
  const std::string journal = read_whole(folder + "/journal", kLargestJournal).value_or("");
  const JournalText text = read_journal(journal.substr(0, journal.find('\n') + 1));
  return text.lines.empty() ? ordered_json() : text.lines[0].record.value("fingerprint", ordered_json());
}

RunFolder::RunFolder(FileLayer& files, RunFolderOptions options)
    : files_(files), options_(std::move(options)) {
  if (options_.path.empty()) refuse("output.path is empty");
  options_.path = settle_path(options_.path);
  if (check_finished()) return;
  check_own_folder(
      options_.path,
      options_.restart);  // first, so that nothing of this run is left in a folder that it refuses
  files_.make_folder(options_.path);
  lock_ = files_.lock(options_.path);
  notice_ = lock_->notice();
  if (check_finished()) return;  // by another process meanwhile
  check_own_folder(options_.path, options_.restart);
  open_folder();
}

void RunFolder::open_folder() {
  if (options_.restart) {
    // The journal says first that nothing else here counts any more, whatever happens before all is gone.
    write_whole(files_, options_.path, "journal",
                journal_line({{"journal", kJournalVersion}, {"empty", true}}, ""));
    begin();
    return;
  }
  const auto journal = read_whole(path("journal"), kLargestJournal);
  if (!journal) return begin();
  resume(*journal);
  saved_progress_ = read_whole(path("progress.json")).value_or("");
}

std::string RunFolder::rows_name(int64_t file) const {
  return fmt::format("rows-{:05}{}", file, options_.ending);
}

std::string RunFolder::staged_rows(int64_t file) const {
  return fmt::format("rows-{:05}.jsonl.part", file);
}

bool RunFolder::check_finished() {
  if (options_.restart || !file_size(path("_SUCCESS"))) return false;
  const Manifest manifest = read_manifest(options_.path, kMend);
  check_same(manifest.fingerprint, true);
  for (const PublishedFile& file : manifest.files)
    if (file_size(path(file.name)) != file.bytes)
      refuse("{}: the run is finished, but {} is missing or does not have its {} bytes; {}", options_.path,
             file.name, file.bytes, kMend);
  at_.rows = manifest.rows;
  at_.rejects = manifest.rejects;
  finished_ = true;
  return true;
}

void RunFolder::check_same(const ordered_json& fingerprint, bool finished) const {
  const std::string changes = describe_changes(fingerprint, options_.fingerprint);
  if (changes.empty()) return;
  if (!finished)
    refuse("{}: the folder holds an unfinished run, but since then {}; undo that to resume it, {}",
           options_.path, changes, kMend);
  refuse(
      "{0}: the folder holds a finished run, but since then {1}; use --restart to replace it once the new "
      "run "
      "is finished, --restart --reuse {0} to decode only what changed, or another output.path (it may have "
      "{{date}}, {{time}} and {{job}} in it)",
      options_.path, changes);
}

void RunFolder::begin() {
  at_.position = options_.first_row;
  remove_files(0);
  const ordered_json head{{"journal", kJournalVersion},
                          {"first_row", options_.first_row},
                          {"sources", sources_json(options_.sources)},
                          {"fingerprint", options_.fingerprint}};
  const std::string line = journal_line(head, "");
  write_whole(files_, options_.path, "journal", line);
  journal_ = std::make_unique<JournalWriter>(files_, path("journal"), read_journal(line).lines.front());
}

/// The rows files from a number on; from 0 on everything of a run but its journal.
void RunFolder::remove_files(int64_t first_rows_file) {
  bool any = false;
  for (const std::string& name : list_folder(options_.path)) {
    const std::string whole = name.ends_with(".part") ? name.substr(0, name.size() - 5) : name;
    const bool ours =
        is_rows_name(whole)
            ? std::stoll(whole.substr(5)) >= first_rows_file
            : name == "journal.part" || (first_rows_file == 0 && name != "journal" && is_run_file(name));
    if (!ours) continue;
    files_.remove(path(name));
    any = true;
  }
  if (any) files_.sync_folder(options_.path);
}

void RunFolder::resume(const std::string& text) {
  const JournalText journal = read_journal(text);
  if (journal.lines.empty() || journal.lines[0].record.value("journal", ordered_json()) != kJournalVersion)
    refuse("{}: the journal is damaged at its beginning; {}", options_.path, kMend);
  const ordered_json& head = journal.lines[0].record;
  if (head.contains("empty")) return begin();  // a restart got no further
  std::optional<JournalRun> run = read_run(journal);
  if (run && is_without_rows(journal) && run->fingerprint != options_.fingerprint) {
    notice_ += fmt::format(
        "{}: the run there has no rows yet, and since then {}; sheaf starts it again from the beginning",
        options_.path, describe_changes(run->fingerprint, options_.fingerprint));
    return begin();
  }
  if (run) check_same(run->fingerprint, false);
  bool ours = run && run->places[0].position == options_.first_row;
  for (size_t i = 0; ours && i < run->published.size(); ++i)
    ours = run->published[i].name == rows_name(static_cast<int64_t>(i));
  if (!ours) refuse("{}: a line was not written by sheaf; {}", path("journal"), kMend);
  published_ = std::move(run->published);
  std::vector<RunProgress>& places = run->places;
  const int64_t last_position = places.back().position;
  forget_damaged(places);
  const int64_t file = places.back().file;
  take_back(staged_rows(file), options_.writer ? "" : rows_name(file));
  take_back("rejects.jsonl.part", "rejects.jsonl");

  size_t first = places.size() - 1;  // of those in the rows file being filled
  while (first > 0 && places[first - 1].file == file) --first;
  std::vector<int64_t> rows_sizes, rejects_sizes;
  for (size_t i = first; i < places.size(); ++i) {
    rows_sizes.push_back(places[i].file_bytes);
    rejects_sizes.push_back(places[i].rejects_bytes);
  }
  const std::vector<Sha256> rows_sums = prefix_sums(path(staged_rows(file)), rows_sizes);
  const std::vector<Sha256> rejects_sums = prefix_sums(path("rejects.jsonl.part"), rejects_sizes);
  size_t found = std::min(rows_sums.size(), rejects_sums.size());
  while (found > 0 && (rows_sums[found - 1].hex() != places[first + found - 1].file_sha256 ||
                       rejects_sums[found - 1].hex() != places[first + found - 1].rejects_sha256))
    --found;
  if (found == 0) refuse("{}: rejects.jsonl does not match the journal; {}", options_.path, kMend);
  at_ = places[first + found - 1];
  file_sum_ = rows_sums[found - 1];
  rejects_sum_ = rejects_sums[found - 1];
  if (at_.position < last_position)
    notice_ += fmt::format("files in {} were damaged; records {} to {} of the corpus are computed again",
                           options_.path, at_.position + 1, last_position);
  else if (!journal.whole)
    notice_ += fmt::format("the last line of {} was cut or damaged; its records are computed again",
                           path("journal"));

  journal_ = std::make_unique<JournalWriter>(files_, path("journal"), journal.lines[first + found - 1]);
  if (options_.writer && file > 0) files_.remove(path(staged_rows(file - 1)));
  remove_files(file + 1);
  const auto cut = [&](std::unique_ptr<OutputFile>& target, const std::string& name, int64_t size) {
    const auto has = file_size(path(name));
    if (!has) return;
    target = files_.open(path(name));
    if (*has == size) return;
    target->truncate(size);
    target->sync();
  };
  cut(rows_file_, staged_rows(file), at_.file_bytes);
  cut(rejects_file_, "rejects.jsonl.part", at_.rejects_bytes);
  if (at_.may_end && at_.file_rows >= options_.rows_per_file) publish();
}

/// A file that got its name and may have to grow again gets its staged one back.
void RunFolder::take_back(const std::string& staged, const std::string& name) {
  if (name.empty() || file_size(path(staged)) || !file_size(path(name))) return;
  files_.rename(path(name), path(staged));
  files_.sync_folder(options_.path);
}

/// Goes back to before the first rows file that no longer holds what the journal says.
void RunFolder::forget_damaged(std::vector<RunProgress>& places) {
  for (size_t i = 0; i < published_.size(); ++i) {
    Sha256 sum;
    const bool there = read_pieces(path(published_[i].name), [&](std::string_view piece) { sum.add(piece); });
    if (there && sum.hex() == published_[i].sha256) continue;
    if (options_.writer) files_.remove(path(published_[i].name));
    published_.resize(i);
    std::erase_if(places, [&](const RunProgress& place) {
      return place.file > static_cast<int64_t>(i) ||
             (place.file == static_cast<int64_t>(i) && place.file_rows > 0);
    });
    return;
  }
}

void RunFolder::row(const Row& row) {
  const std::string line = options_.line ? options_.line(row) : row_line(row);
  if (options_.writer) {
    open_writer();
    writer_->add(row, static_cast<int64_t>(line.size()));
  }
  group_rows_ += line + '\n';
  ++group_row_count_;
}

void RunFolder::reject(const Reject& reject) {
  std::string_view file = reject.place.file;
  if (file.starts_with(options_.corpus_folder)) file.remove_prefix(options_.corpus_folder.size());
  ordered_json line{{"file", file}, {"row", reject.place.row}, {"id", reject.id}, {"reason", reject.reason}};
  if (reject.records > 1) line.update({{"records", reject.records}, {"last_row", reject.last_row}});
  group_rejects_ += dump_line(line);
  group_reject_count_ += reject.records;
}

void RunFolder::append(std::unique_ptr<OutputFile>& file, const std::string& staged, bool fresh,
                       const std::string& text) {
  if (!file) {
    file = files_.open(path(staged));
    if (fresh) file->truncate(0);
    files_.sync_folder(options_.path);
  }
  file->append(text);
  file->sync();
}

void RunFolder::commit(int64_t position, bool may_end) {
  if (position == at_.position && group_rows_.empty() && group_rejects_.empty()) return;
  lock_->check();
  if (!group_rows_.empty()) append(rows_file_, staged_rows(at_.file), at_.file_bytes == 0, group_rows_);
  if (!group_rejects_.empty())
    append(rejects_file_, "rejects.jsonl.part", at_.rejects_bytes == 0, group_rejects_);
  at_.position = position;
  at_.may_end = may_end;
  at_.rows += group_row_count_;
  at_.rejects += group_reject_count_;
  at_.file_rows += group_row_count_;
  at_.file_bytes += static_cast<int64_t>(group_rows_.size());
  at_.rejects_bytes += static_cast<int64_t>(group_rejects_.size());
  at_.file_sha256 = file_sum_.add(group_rows_).hex();
  at_.rejects_sha256 = rejects_sum_.add(group_rejects_).hex();
  group_rows_.clear();
  group_rejects_.clear();
  group_row_count_ = group_reject_count_ = 0;
  journal_->append(at_.json());
  if (may_end && at_.file_rows >= options_.rows_per_file) publish();
}

/// A file of another format than lines, such as Parquet, cannot grow again after a kill. So every row is
/// staged as a line too, which is what a group commits, and is read back only where a run is resumed in the
/// midst of a file: the file is then written again from its beginning.
void RunFolder::open_writer() {
  if (writer_) return;
  lock_->check();
  written_file_ = files_.open(path(rows_name(at_.file) + ".part"));
  written_file_->truncate(0);
  writer_ = options_.writer(*written_file_);
  if (at_.file_rows == 0) return;
  const std::string staged = path(staged_rows(at_.file));
  read_lines(staged, [&](const std::string& line) {
    const std::optional<Row> row = read_row(line);
    if (!row) refuse("{}: a line was not written by sheaf; {}", staged, kMend);
    writer_->add(*row, static_cast<int64_t>(line.size()));
  });
}

/// The whole file, still under its staged name.
PublishedFile RunFolder::close_writer() {
  open_writer();
  const std::string name = rows_name(at_.file), staged = path(name + ".part");
  writer_->close();
  written_file_->sync();
  check_untouched(staged, written_file_->is_at(staged));
  writer_.reset();
  written_file_.reset();
  PublishedFile file{name, at_.file_rows, 0, ""};
  Sha256 sum;
  read_pieces(staged, [&](std::string_view piece) {
    sum.add(piece);
    file.bytes += static_cast<int64_t>(piece.size());
  });
  file.sha256 = sum.hex();
  return file;
}

/// Gives the rows file its name and begins the next.
void RunFolder::publish() {
  const std::string staged = staged_rows(at_.file), name = rows_name(at_.file);
  lock_->check();
  check_untouched(path(staged), file_size(path(staged)) == at_.file_bytes &&
                                    (!rows_file_ || rows_file_->is_at(path(staged))));
  PublishedFile file{name, at_.file_rows, at_.file_bytes, at_.file_sha256};
  if (options_.writer) file = close_writer();
  lock_->check();
  files_.rename(path(options_.writer ? name + ".part" : staged), path(name));
  files_.sync_folder(options_.path);
  journal_->append(
      {{"published", file.name}, {"rows", file.rows}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  rows_file_.reset();
  if (options_.writer) files_.remove(path(staged));
  published_.push_back(std::move(file));
  ++at_.file;
  at_.file_rows = at_.file_bytes = 0;
  file_sum_ = {};
  at_.file_sha256 = file_sum_.hex();
}

Manifest RunFolder::manifest() const {
  Manifest manifest{at_.rows,   at_.rejects,          options_.first_row, at_.position,
                    published_, options_.fingerprint, options_.sources};
  manifest.files.push_back({"rejects.jsonl", at_.rejects, at_.rejects_bytes, at_.rejects_sha256});
  return manifest;
}

/// Not into a folder that another run has made in the place of this one's.
void RunFolder::write_file(const std::string& name, std::string_view text) {
  lock_->check();
  write_whole(files_, options_.path, name, text);
}

void RunFolder::save_progress(const std::string& text) {
  write_file("progress.json", text);
}

void RunFolder::show_rejects() {
  if (!rejects_file_) append(rejects_file_, "rejects.jsonl.part", true, "");
  lock_->check();
  files_.rename(path("rejects.jsonl.part"), path("rejects.jsonl"));
  files_.sync_folder(options_.path);
}

void RunFolder::finish(const std::string& report, const std::string& page) {
  // A job without rows still has a rows file.
  if (at_.file_rows > 0 || published_.empty()) {
    if (!rows_file_) append(rows_file_, staged_rows(at_.file), true, "");
    publish();
  }
  show_rejects();
  remove_files(at_.file);
  if (options_.openai_errors) write_openai_errors(files_, options_.path);
  write_file("manifest.json", manifest_json(manifest()).dump(2) + "\n");
  write_file("report.json", report);
  if (!page.empty()) write_file("report.html", page);
  files_.remove(path("progress.json"));
  write_file("_SUCCESS", "");
  lock_->check();
  finished_ = true;
}

}  // namespace sheaf
