#include "io/jobs/earlier_runs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/ranges.h>
#include <glob.h>
#include <unistd.h>

#include "core/methods/method.h"
#include "core/plan/planner.h"
#include "core/text/spelling.h"
#include "io/base/globs.h"
#include "io/base/paths.h"
#include "io/base/store.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kLatest = "latest:";
constexpr std::string_view kMark = "/_SUCCESS";
constexpr const char* kNameOne = "name the output folder of a finished run";

/// A pattern of run folders with wildcards in place of {date} and {time}.
struct RunPattern {
  std::string wildcards;
  bool dated = false;  ///< names sort as the runs began
};

RunPattern read_pattern(const std::string& text, const Job& job) {
  const std::string two = "[0-9][0-9]";
  const std::vector<std::pair<std::string, std::string>> fills = {
      {"{date}", two + two + "-" + two + "-" + two},
      {"{time}", two + "-" + two + "-" + two},
      {"{job}", fs::path(job.file).stem().string()}};
  RunPattern pattern{text};
  for (size_t at = 0; (at = pattern.wildcards.find('{', at)) != std::string::npos;) {
    const size_t end = pattern.wildcards.find('}', at);
    if (end == std::string::npos) break;
    const std::string name = pattern.wildcards.substr(at, end + 1 - at);
    const auto fill = std::ranges::find(fills, name, &std::pair<std::string, std::string>::first);
    if (fill == fills.end())
      refuse("output.reuse: {} stands for nothing; {{date}}, {{time}} and {{job}} are known{}", name,
             suggest_spelling(name, std::vector<std::string>{"{date}", "{time}", "{job}"}));
    pattern.dated = pattern.dated || name != "{job}";
    pattern.wildcards.replace(at, name.size(), fill->second);
    at += fill->second.size();
  }
  return pattern;
}

std::vector<std::string> glob_local(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  return paths;
}

bool is_own(const std::string& run, const std::vector<std::string>& own) {
  const auto plain = [](const std::string& place) {
    return is_uri(place) ? parse_store_uri(place).name() : settle_path(place);
  };
  return std::ranges::any_of(own, [&](const std::string& each) {
    return !each.empty() && is_uri(each) == is_uri(run) && plain(each) == plain(run);
  });
}

/// When a run was finished, in an order of its own.
int64_t finished_at(const std::string& mark) {
  if (is_uri(mark)) return listed_object(mark).changed;
  std::error_code failed;
  const auto time = fs::last_write_time(mark, failed);
  return failed ? 0 : std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// The finished runs that match, the newest first.
std::vector<std::string> matching_runs(const RunPattern& pattern, const std::vector<std::string>& own) {
  std::string wanted = pattern.wildcards;
  while (wanted.ends_with('/')) wanted.pop_back();
  wanted += kMark;
  const std::vector<std::string> marks = is_uri(wanted) ? list_corpus_uris(wanted) : glob_local(wanted);
  std::vector<std::pair<int64_t, std::string>> runs;
  for (const std::string& mark : marks) {
    const std::string run = mark.substr(0, mark.size() - kMark.size());
    if (!is_own(run, own)) runs.emplace_back(pattern.dated ? 0 : finished_at(mark), run);
  }
  std::ranges::sort(runs, std::greater());
  std::vector<std::string> names;
  for (auto& [time, run] : runs) names.push_back(std::move(run));
  return names;
}

bool exists(const std::string& run) {
  if (is_uri(run)) return !open_store(run)->list().empty();
  std::error_code ignored;
  return fs::is_directory(run, ignored);
}

/// A folder for files of a store, which is deleted once they are mapped.
class FetchedFiles {
 public:
  FetchedFiles() {
    const std::string cache = user_cache();
    folder_ =
        fmt::format("{}/reuse-{}", cache.empty() ? fs::temp_directory_path().string() : cache, ::getpid());
    std::error_code failed;
    fs::create_directories(folder_, failed);
    if (failed) fail("{}: the folder cannot be created: {}", folder_, failed.message());
  }
  FetchedFiles(const FetchedFiles&) = delete;
  FetchedFiles& operator=(const FetchedFiles&) = delete;
  ~FetchedFiles() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  const std::string& folder() const { return folder_; }
  void fetch(Store& store, const std::string& name) const {
    const std::string path = folder_ + "/" + name;
    real_files().remove(path);
    const auto file = real_files().open(path);
    if (!store.read_pieces(name, [&](std::string_view piece) { file->append(piece); }))
      refuse("{}/{}: the file is missing; the run was not published whole", store.name(), name);
  }

 private:
  std::string folder_;
};

/// The answers of a run in a store. What cannot be used is not fetched.
EarlierAnswers fetch_answers(const std::string& uri, const ordered_json& settings, std::string& trouble) {
  const auto store = open_store(uri);
  if (!store->identify("_SUCCESS")) {
    trouble = "no finished run is there";
    return {};
  }
  const auto about = store->read("answers.json");
  trouble = about ? answers_trouble(*about, settings) : kNoAnswers;
  if (!trouble.empty()) return {};
  const FetchedFiles files;
  for (const char* name : {"answers.json", "answers.log", "answers.table"}) files.fetch(*store, name);
  return {files.folder(), settings, trouble};
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", std::floor(1000 * share) / 10);
}

}  // namespace

std::vector<std::string> ReuseWish::runs_of(const Job& job) const {
  if (!runs.empty()) return runs;
  return job.output.reuse.empty() ? std::vector<std::string>() : std::vector<std::string>{job.output.reuse};
}

double parse_share(const std::string& text, const char* option) {
  const bool percents = text.ends_with('%');
  const std::string_view digits = std::string_view(text).substr(0, text.size() - (percents ? 1 : 0));
  double number = -1;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (percents) number /= 100;
  if (error != std::errc() || rest != digits.data() + digits.size() || !(number >= 0 && number <= 1))
    refuse("{} must be a share such as 0.9 or 90%; got {}", option, text);
  return number;
}

std::vector<EarlierRun> find_earlier_runs(const std::vector<std::string>& asked, const Job& job,
                                          const std::vector<std::string>& own) {
  std::vector<EarlierRun> runs;
  const auto add = [&](const std::string& name, const std::string& text, bool found) {
    if (std::ranges::find(runs, name, &EarlierRun::name) == runs.end()) runs.push_back({name, text, found});
  };
  for (const std::string& text : asked) {
    if (text.empty()) refuse("output.reuse: the name of a run is empty; {}", kNameOne);
    if (const size_t colon = text.find(':'); colon != std::string::npos && !is_uri(text) && !exists(text))
      if (const std::string word = text.substr(0, colon + 1);
          word != kLatest && nearest_spelling(word, std::vector{std::string(kLatest)}) == kLatest)
        refuse("output.reuse: {} does not exist; did you mean {}{}?", text, kLatest, text.substr(colon + 1));
    const bool latest = text.starts_with(kLatest);
    const std::string place = latest ? text.substr(kLatest.size()) : text;
    const bool pattern = latest || has_wildcard(place) || place.find('{') != std::string::npos;
    // A folder of just that name is meant, whatever its letters could stand for.
    if (!pattern || (!latest && !is_uri(place) && exists(place))) {
      add(place, text, exists(place));
      continue;
    }
    std::vector<std::string> found = matching_runs(read_pattern(place, job), own);
    if (latest && found.size() > 1) found.resize(1);
    for (const std::string& run : found) add(run, text, true);
    if (found.empty()) add(text, text, false);
  }
  return runs;
}

EarlierRuns::EarlierRuns(const ReuseWish& wish, const Job& job, const std::vector<std::string>& own,
                         const ordered_json& settings) {
  const std::vector<EarlierRun> runs = find_earlier_runs(wish.runs_of(job), job, own);
  asked_ = !runs.empty();
  is_first_ = asked_;
  for (const EarlierRun& run : runs) {
    if (run.found) {
      is_first_ = false;
      open(run, settings);
    } else if (wish.if_exists) {
      notices_.push_back(fmt::format("output.reuse: {} is not there yet (--reuse-if-exists)", run.name));
    } else if (run.asked.starts_with(kLatest) || has_wildcard(run.asked) ||
               run.asked.find('{') != std::string::npos) {
      refuse("output.reuse: no finished run matches {}; add --reuse-if-exists if this is the first one",
             run.asked);
    } else {
      refuse("output.reuse: the folder {} does not exist; {}, or add --reuse-if-exists", run.name, kNameOne);
    }
  }
  if (is_first_)
    notices_ = {fmt::format("output.reuse: no earlier run exists ({}); this run decodes every answer",
                            fmt::join(wish.runs_of(job), ", "))};
}

void EarlierRuns::open(const EarlierRun& run, const ordered_json& settings) {
  if (run.asked != run.name && run.asked.starts_with(kLatest))
    notices_.push_back(fmt::format("output.reuse: {} is {}", run.asked, run.name));
  std::string trouble;
  EarlierAnswers answers = is_uri(run.name) ? fetch_answers(run.name, settings, trouble)
                                            : EarlierAnswers(settle_path(run.name), settings, trouble);
  if (trouble.empty()) {
    all_.push_back(std::move(answers));
    names_.push_back(run.name);
  } else {
    warnings_.push_back(fmt::format("output.reuse: {}: {}", run.name, trouble));
  }
}

std::string EarlierRuns::names() const {
  return fmt::format("{}", fmt::join(names_, ", "));
}

bool EarlierRuns::has(const AnswerKey& key) const {
  return std::ranges::any_of(all_, [&](const EarlierAnswers& each) { return each.has(key); });
}

bool answers_together(const Job::Method& method) {
  const AnswerScope scope = make_builder(method).scope;
  if (scope == AnswerScope::prompt)
    refuse(
        "output.reuse: with method.stacking: joint an answer depends on the other records of its prompt; set "
        "method.stacking: isolated, or leave output.reuse out");
  return scope == AnswerScope::record;
}

std::optional<KnownShare> count_known(
    Corpus& corpus, Task& task, const Job& job, const ordered_json& settings, const EarlierRuns& earlier,
    const std::function<void(int64_t position, const Record& record, const std::vector<bool>& known)>& see) {
  const bool together = answers_together(job.method);
  AnswerKeys keys(settings, job.method.temperature > 0);
  KnownShare share;
  while (true) {
    if (*job.stop) return std::nullopt;
    const int64_t position = corpus.position();
    auto next = corpus.next();
    if (!next) return share;
    const auto* record = std::get_if<Record>(&*next);
    if (!record) continue;
    const ReadyRecord ready = std::move(make_ready(task, {record, 1}).front());
    if (!ready.refused.empty()) continue;
    std::vector<bool> known;
    for (const AnswerKey& key : keys.of(*record, ready.parts, together)) known.push_back(earlier.has(key));
    ++share.records;
    share.answers += std::ssize(known);
    const auto count = std::ranges::count(known, true);
    if (count == 0 || (together && count < std::ssize(known))) known.clear();
    share.known += std::ranges::count(known, true);
    if (see) see(position, *record, known);
  }
}

void check_required_reuse(const std::string& required, const KnownShare& known, const EarlierRuns& earlier) {
  if (known.share() >= parse_share(required, "--require-reuse")) return;
  std::string why;
  for (const std::string& warning : earlier.warnings()) why += "; " + warning;
  refuse("--require-reuse {}: only {} of {} are known from {} ({}){}; nothing was decoded", required,
         known.known, counted(known.answers, "answer"),
         earlier.usable() ? earlier.names() : "the earlier runs", percent(known.share()), why);
}

PlannedReuse::PlannedReuse(const EarlierRuns& earlier, std::unique_ptr<Task> task, const Job& job,
                           const ordered_json& settings)
    : earlier_(earlier), task_(std::move(task)), keys_(settings, job.method.temperature > 0) {}

std::vector<AnswerKey> PlannedReuse::keys(const Record& record, const RecordParts&, bool together) {
  return keys_.of(record, make_ready(*task_, {&record, 1}).front().parts, together);
}

bool PlannedReuse::knows(const AnswerKey& key) {
  if (earlier_.has(key)) return true;
  const std::lock_guard lock(mutex_);
  return planned_.contains(key);
}

void PlannedReuse::add(const AnswerKey& key, const Answer&) {
  if (earlier_.has(key)) return;
  const std::lock_guard lock(mutex_);
  planned_.insert(key);
}

}  // namespace sheaf
