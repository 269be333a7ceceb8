#include "io/eval/evaluation.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/report/report.h"
#include "core/text/format.h"
#include "core/text/json_reader.h"
#include "core/text/spelling.h"
#include "io/base/file_layer.h"
#include "io/jobs/run_job.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr const char* kTableFiles[] = {"table.md", "table.csv", "table.json", "table.html",
                                       "differences.html"};
constexpr double kBetweenNotes = 15;      // seconds
constexpr double kTellingShare = 0.02;    // of a cell, whose pace is that of the rest
constexpr size_t kShownDifferences = 50;  // of a pair, in differences.html

std::string name_of(const Eval& eval, const EvalCell& cell) {
  return fmt::format("{}, {}, {}", eval.models[cell.model].name, eval.datasets[cell.dataset].name,
                     eval.methods[cell.method].label);
}

}  // namespace

EvalEnd Evaluation::run() {
  check_ours();
  files_.make_folder(eval_.output);
  const auto lock = files_.lock(eval_.output);
  if (settings_.restart) remove_table();
  look_ahead();
  if (stopped()) return interrupted_end();
  int exit_code = 0;
  for (size_t c = 0; c < cells_.size(); ++c) {
    const auto left = seconds_left(c);
    listener_.heading(fmt::format(
        "[{}/{}] {}{}", c + 1, cells_.size(), name_of(eval_, cells_[c]),
        left.value_or(0) > 0 ? fmt::format("; about {} left for all", duration_text(*left)) : ""));
    if (cells_[c].lengths) {
      ordered_json timed = time_cell(c);
      if (timed.is_null()) return interrupted_end();
      reports_.push_back(std::move(timed));
      continue;
    }
    RunSettings settings;
    settings.restart = settings_.restart;
    settings.allow_empty = true;  // the table shows it
    const auto begun = Clock::now();
    RunEnd end = run_job(cells_[c].job, settings, listener_);
    if (!end.was_finished) runs_.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    if (end.exit_code == 130)
      return {130, fmt::format("{}; {} of {} are finished", end.interrupted, reports_.size(),
                               counted(std::ssize(cells_), "cell"))};
    exit_code = std::max(exit_code, end.exit_code);
    if (!end.report.is_object())
      refuse("{}/report.json is missing; use --restart to run everything again", cells_[c].job.output.path);
    reports_.push_back(std::move(end.report));
  }
  if (std::optional<EvalEnd> end = judge_runs()) return *std::move(end);
  make_table();
  write_table();
  return {exit_code, {}};
}

EvalEnd Evaluation::interrupted_end() const {
  return {130, fmt::format("interrupted; {} of {} are finished and kept; rerun the same command to resume",
                           reports_.size(), counted(std::ssize(cells_), "cell"))};
}

/// Says what is to come, before anything is computed: how long each cell takes, and which cannot be measured.
void Evaluation::look_ahead() {
  expected_.resize(cells_.size());
  double seconds = 0, error = 0;
  bool unknown = false, any = false;
  for (size_t c = 0; c < cells_.size() && !stopped(); ++c) {
    const EvalCell& cell = cells_[c];
    if (!cell.lengths || (!settings_.restart && measured_before(cell.job, *cell.lengths).is_object()))
      continue;
    LengthsForecast& each = expected_[c] = lengths_.forecast(cell.job, *cell.lengths);
    any = true;
    std::string text;
    if (!each.trouble.empty())
      text = fmt::format("cannot be measured here: {}", each.trouble);
    else if (each.seconds() > 0)
      text = fmt::format("about {}", duration_text(each.seconds()));
    else
      text = "time not known";
    if (each.gb > 0) text += fmt::format(", {:.1f} GB", each.gb);
    if (leaves_out(each)) text += fmt::format("; left out (--max-cell-hours {:g})", settings_.max_cell_hours);
    listener_.note(fmt::format("{}: {}", name_of(eval_, cell), text));
    if (!each.trouble.empty() || leaves_out(each)) continue;
    seconds += each.seconds();
    error = std::max(error, each.error);
    unknown = unknown || each.seconds() == 0;
  }
  if (any && seconds > 0)
    listener_.note(fmt::format(
        "about {} in all{} (±{:.0f} % where the device's profile is right); finished cells "
        "are kept, and the same command resumes",
        duration_text(seconds), unknown ? ", without those whose time is not known" : "", 100 * error));
}

bool Evaluation::leaves_out(const LengthsForecast& cell) const {
  return settings_.max_cell_hours > 0 && cell.seconds() > 3600 * settings_.max_cell_hours;
}

ordered_json Evaluation::time_cell(size_t cell) {
  const LengthsForecast& expected = expected_[cell];
  if (expected.trouble.empty() && leaves_out(expected))
    return {{"measured", true},
            {"not_measured", fmt::format("it would take about {}, more than --max-cell-hours {:g}",
                                         duration_text(expected.seconds()), settings_.max_cell_hours)}};
  const auto begun = Clock::now();
  Clock::time_point told = begun;
  std::optional<std::pair<Clock::time_point, double>>
      first;  // when the weights were there, and the share then
  const auto since = [](Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  };
  const auto tell = [&](double share) {
    if (!first) first = {Clock::now(), share};
    if (since(told) < kBetweenNotes) return;
    told = Clock::now();
    // Too little of it says nothing about the rest.
    std::optional<double> left;
    if (const double done = share - first->second; done >= kTellingShare)
      left = since(first->first) / done * (1 - share);
    else if (expected.seconds() > 0)
      left = expected.seconds() * (1 - share);
    const auto after = seconds_left(cell + 1);
    listener_.note(
        fmt::format("[{}/{}] {:.0f} %{}{}", cell + 1, cells_.size(), std::floor(100 * share),
                    left ? fmt::format(", about {} left", duration_text(*left)) : "",
                    left && after ? fmt::format(", {} for all", duration_text(*left + *after)) : ""));
  };
  ordered_json timed =
      lengths_.time(cells_[cell].job, *cells_[cell].lengths, settings_.restart, expected, tell);
  if (expected.seconds() > 0) {
    expected_done_ += expected.seconds();
    took_ += since(begun);
  }
  return timed;
}

/// Seconds for the cells from `cell` on: a measurement takes its forecast at the pace of the finished
/// measurements, a run the mean of the finished runs. Nothing as long as neither pace is known.
std::optional<double> Evaluation::seconds_left(size_t cell) const {
  double timed = 0, ran = 0;
  for (size_t c = cell; c < cells_.size(); ++c) {
    const LengthsForecast& each = expected_[c];
    if (!cells_[c].lengths) {
      if (!settings_.restart && file_size(cells_[c].job.output.path + "/_SUCCESS")) continue;
      if (runs_.empty()) return std::nullopt;
      ran += std::accumulate(runs_.begin(), runs_.end(), 0.0) / static_cast<double>(runs_.size());
    } else if (each.runs > 0 && each.trouble.empty() && !leaves_out(each)) {
      if (each.seconds() <= 0) return std::nullopt;
      timed += each.seconds();
    }
  }
  return ran + timed * (expected_done_ > 0 ? took_ / expected_done_ : 1);
}

std::vector<DifferencePair> Evaluation::differences(const std::string& first, const std::string& second,
                                                    size_t count) {
  for (const EvalCell& cell : cells_)
    if (cell.lengths)
      refuse(
          "--differences: {} has made-up records, which have no answers; choose another dataset with "
          "--dataset",
          eval_.datasets[cell.dataset].name);
  const std::string* labels[] = {&first, &second};
  std::vector<DifferencePair> pairs;
  for (size_t begin = 0; begin < cells_.size(); begin = group_end(begin)) {
    const EvalCell* sides[] = {nullptr, nullptr};
    for (size_t c = begin; c < group_end(begin); ++c)
      for (size_t s = 0; s < 2; ++s)
        if (eval_.methods[cells_[c].method].label == *labels[s]) sides[s] = &cells_[c];
    if (sides[0] == nullptr || sides[1] == nullptr) continue;  // one skips the dataset
    std::optional<ScoredCell> runs[2];
    for (size_t s = 0; s < 2; ++s) {
      if (!file_size(sides[s]->job.output.path + "/_SUCCESS"))
        refuse("{} is not finished; run it first: sheaf eval {}", sides[s]->job.output.path, eval_.file);
      runs[s] = score_cell(eval_.datasets[sides[s]->dataset], *sides[s], gold_);
      if (!runs[s]) refuse("{} has no rows to compare, only rejects", sides[s]->job.output.path);
    }
    pairs.push_back(
        find_differences(eval_, *sides[0], *runs[0], *sides[1], *runs[1], asked(*sides[0]), count));
  }
  if (pairs.empty()) refuse("--differences: no dataset is run with both {} and {}", first, second);
  return pairs;
}

/// The cells of one model and dataset stand side by side.
size_t Evaluation::group_end(size_t begin) const {
  size_t end = begin;
  while (end < cells_.size() && cells_[end].model == cells_[begin].model &&
         cells_[end].dataset == cells_[begin].dataset)
    ++end;
  return end;
}

const AskedItems& Evaluation::asked(const EvalCell& cell) {
  const auto found = asked_.find(cell.dataset);
  return found != asked_.end() ? found->second : asked_[cell.dataset] = read_asked(cell.job);
}

/// An end where it was interrupted.
std::optional<EvalEnd> Evaluation::judge_runs() {
  for (size_t c = 0; c < cells_.size(); ++c) {
    const Eval::Dataset& dataset = eval_.datasets[cells_[c].dataset];
    if (dataset.judge.empty() || !has_rows(reports_[c])) continue;
    listener_.heading("judging " + name_of(eval_, cells_[c]));
    JudgedRun judged =
        judge_run(files_, dataset.judge, cells_[c], asked(cells_[c]), settings_.restart, listener_);
    if (!judged.judgements) return EvalEnd{130, judged.interrupted};
    judgements_[c] = *judged.judgements;
  }
  return std::nullopt;
}

void Evaluation::make_table() {
  table_.name = eval_.name;
  table_.baseline = eval_.baseline;
  table_.paper = eval_.paper;
  table_.differences = std::ranges::any_of(cells_, [](const EvalCell& cell) { return !cell.lengths; });
  for (size_t begin = 0; begin < cells_.size(); begin = group_end(begin)) add_group(begin, group_end(begin));
  set_rates(table_);
  add_notes();
}

void Evaluation::add_group(size_t begin, size_t end) {
  if (cells_[begin].lengths) {
    for (size_t c = begin; c < end; ++c) table_.rows.push_back(timed_row(eval_, cells_[c], reports_[c]));
    return;
  }
  std::vector<std::optional<ScoredCell>> runs;
  size_t base = end;
  for (size_t c = begin; c < end; ++c) {
    runs.push_back(score_cell(eval_.datasets[cells_[c].dataset], cells_[c], gold_));
    if (eval_.methods[cells_[c].method].label == eval_.baseline && runs.back()) base = c;
  }
  for (size_t c = begin; c < end; ++c) {
    const std::optional<ScoredCell>& run = runs[c - begin];
    const ScoredCell* baseline = base == end || base == c ? nullptr : &*runs[base - begin];
    table_.rows.push_back(eval_row(eval_, cells_[c], reports_[c], run, baseline));
    if (const auto judged = judgements_.find(c); judged != judgements_.end())
      table_.rows.back().own.llm_f1 = judged->second.llm_f1;
    if (run && settings_.log_samples) write_samples(files_, cells_[c], *run, asked(cells_[c]));
    if (run && baseline != nullptr)
      pairs_.push_back(find_differences(eval_, cells_[base], *baseline, cells_[c], *run, asked(cells_[c]),
                                        kShownDifferences));
  }
}

void Evaluation::add_notes() {
  auto& notes = table_.notes;
  if (table_.differences)
    notes.push_back(fmt::format(
        "n: questions or rows. Quality: from 0 to 100. 95 %: its interval. p: paired test of its difference "
        "from {}. EM %: answers equal to those of {}.",
        eval_.baseline, eval_.baseline));
  std::set<std::string> counts, decoding;
  size_t timed = 0;
  for (const EvalCell& cell : cells_) {
    if (!cell.lengths) continue;
    ++timed;
    counts.insert(cell.lengths->count == "tokens" ? "tokens of answers" : cell.lengths->count);
    if (cell.lengths->decoding_only) decoding.insert(eval_.datasets[cell.dataset].name);
  }
  if (timed > 0)
    notes.push_back(fmt::format(
        "The records are made up, with given lengths, and only timed{}. n, throughput and $/1k count {}.",
        std::ranges::any_of(reports_,
                            [](const auto& report) { return report.value("weights", "") == "random"; })
            ? ", with random weights"
            : "",
        fmt::join(counts, " or ")));
  if (!decoding.empty() && std::ranges::all_of(cells_, [](const EvalCell& cell) {
        return cell.lengths && cell.lengths->decoding_only;
      }))
    notes.emplace_back("Decoding only: the time for answers of one token is subtracted.");
  else if (!decoding.empty())
    notes.push_back(fmt::format("Decoding only (the time for answers of one token is subtracted): {}.",
                                fmt::join(decoding, ", ")));
  std::set<std::string> prices;
  for (const EvalRow& row : table_.rows)
    if (row.own.usd_per_1k) prices.insert(fmt::format("${:.2f}", row.usd_per_hour));
  if (!prices.empty()) notes.push_back(fmt::format("Prices: {} an hour.", fmt::join(prices, ", ")));
  std::set<std::string> backends;
  for (const ordered_json& report : reports_)
    if (report.contains("backend")) backends.insert(report.at("backend").get<std::string>());
  if (!backends.empty()) notes.push_back(fmt::format("Measured on {}.", fmt::join(backends, "; ")));
  for (size_t c = 0; c < cells_.size(); ++c)
    if (reports_[c].contains("not_measured"))
      notes.push_back(fmt::format("{}: not measured: {}.", name_of(eval_, cells_[c]),
                                  reports_[c].at("not_measured").get<std::string>()));
  for (const Eval::Model& model : eval_.models)
    if (model.replaced) notes.push_back(fmt::format("{} was replaced by {}.", model.name, model.path));
  std::map<int64_t, std::set<std::string>> limits;
  for (const EvalCell& cell : cells_)
    if (const Eval::Dataset& dataset = eval_.datasets[cell.dataset]; cell.job.input.limit > 0)
      if (!cell.lengths || cell.lengths->documents < dataset.lengths->documents)
        limits[cell.job.input.limit].insert(dataset.name);
  for (const auto& [limit, names] : limits)
    notes.push_back(
        fmt::format("At most the first {} of {}.", counted(limit, "record"), fmt::join(names, ", ")));
  for (size_t c = 0; c < cells_.size(); ++c) {
    const EvalRow& row = table_.rows[c];
    if (row.rejects > 0 || row.missing > 0)
      notes.push_back(
          fmt::format("{}: rejected records: {}; items without a prediction, scored as wrong: {}.",
                      name_of(eval_, cells_[c]), row.rejects, row.missing));
    if (row.unknown > 0)
      notes.push_back(
          fmt::format("{}: the gold answers cover only a part: {} of {} {} have none and are not scored.",
                      name_of(eval_, cells_[c]), row.unknown, row.count, row.unit));
    if (!row.unreadable.empty()) notes.push_back(row.unreadable + ".");
    if (const auto judged = judgements_.find(c); judged != judgements_.end() && judged->second.unread > 0)
      notes.push_back(fmt::format(
          "{}: the judge's reply could not be read for {} of {} documents; LLM-F1 counts the rest.",
          name_of(eval_, cells_[c]), judged->second.unread, judged->second.asked));
  }
  if (!eval_.paper.empty()) notes.push_back(fmt::format("paper: {}.", eval_.paper));
}

/// A mistaken output must not cost somebody else's tables. Where an evaluation was begun, its lock is there.
void Evaluation::check_ours() const {
  if (file_size(eval_.output + "/.lock")) return;
  const auto text = read_whole(eval_.output + "/table.json");
  const ordered_json table = read_json<ordered_json>(text.value_or("{}"));
  if (table.is_object() && table.contains("rows") && table.contains("name")) return;
  for (const char* name : kTableFiles)
    if (file_size(eval_.output + "/" + name))
      refuse("{}: the folder contains {}, but no evaluation; choose another one with --output", eval_.output,
             name);
}

/// What it says is of runs that are about to go.
void Evaluation::remove_table() const {
  std::vector<FileText> gone;
  for (const char* name : kTableFiles) gone.push_back({name, std::nullopt});
  write_together(files_, eval_.output, gone);
}

void Evaluation::write_table() const {
  const ordered_json json = eval_json(table_);
  std::optional<std::string> differences;
  if (table_.differences) differences = differences_html(eval_.name, pairs_);
  write_together(files_, eval_.output,
                 {{"table.md", eval_markdown(table_)},
                  {"table.csv", eval_csv(table_)},
                  {"table.json", json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"},
                  {"table.html", eval_html(table_)},
                  {"differences.html", std::move(differences)}});
}

}  // namespace sheaf
