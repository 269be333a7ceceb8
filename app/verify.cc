#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/job_options.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/plan/pipeline.h"
#include "core/task/value.h"
#include "io/jobs/workbench.h"

namespace sheaf {
namespace {

constexpr size_t kShown = 5;  // differences printed

struct DecodedItem {
  Item item;
  std::vector<Answer> answers;
};

struct Decoded {
  std::map<std::pair<std::string, int64_t>, DecodedItem> items;  // by file and row
  int64_t rejects = 0;
  bool finished = false;
};

Decoded decode(Workbench& bench, const Job& job, const Builder& builder, bool quiet, const char* what) {
  const auto backend = bench.backend();
  Engine engine(*backend, bench.stop_rules(), bench.engine_options(*backend));
  const auto task = bench.task(job);
  Planner planner(builder, bench.limits(engine));
  const auto corpus = bench.corpus();
  Pipeline pipeline(*corpus, *task, planner, engine, job.engine.window);
  Progress progress(quiet, std::nullopt);
  engine.on_step = [&](const EngineStats&) {
    progress.update(pipeline.stats().decoded, pipeline.stats().rejects, 0);
  };
  Decoded decoded;
  decoded.finished = pipeline.run(
      [&](const Item& item, const Outcome& outcome) {
        decoded.items.emplace(std::pair(item.place.file, item.place.row), DecodedItem{item, outcome.answers});
      },
      [&](const Reject&) { ++decoded.rejects; });
  progress.close();
  if (!quiet && decoded.finished)
    print_line(fmt::format("{}: {} answers, {} tokens computed in {:.1f} s", what, engine.stats().answers,
                           engine.stats().rows(), engine.stats().step_seconds),
               Stream::err);
  return decoded;
}

std::string question_name(const Workbench& bench, const Item& item, size_t question, size_t answers) {
  if (bench.job().task.kind == TaskKind::ask) return item.questions[question].text;
  if (bench.job().task.kind == TaskKind::chat) return item.dialog.turns.back();
  const Category* category = bench.schema().find(item.category);
  return answers == category->attributes.size() ? category->attributes[question].name : "the whole object";
}

int verify(const JobOptions& options) {
  stop_in_order();
  Job sample = options.read();
  if (options.limit == 0 && (sample.input.limit == 0 || sample.input.limit > 20)) sample.input.limit = 20;
  Workbench bench(sample);
  if (!take_input(bench)) return 130;
  const bool quiet = options.quiet || options.json;

  // Joint documents stand in the text of the prompt, so the prompt for one question alone is worded without
  // them.
  Job alone = bench.job();
  alone.method.stacking = Stacking::isolated;
  const Decoded packed =
      decode(bench, bench.job(), make_builder(bench.job().method), quiet, bench.job().method.name.c_str());
  if (!packed.finished) return 130;
  const std::string what(find_method(alone.method.name).baseline);
  const Decoded separate = decode(bench, alone, make_separate_builder(alone.method), quiet, what.c_str());
  if (!separate.finished) return 130;

  int64_t items = 0, answers = 0, same = 0;
  nlohmann::ordered_json differences = nlohmann::ordered_json::array();
  for (const auto& [place, one] : packed.items) {
    const auto other = separate.items.find(place);
    if (other == separate.items.end()) continue;  // counted among the rejects of the separate prompts
    ++items;
    for (size_t q = 0; q < one.answers.size(); ++q) {
      ++answers;
      const Answer &a = one.answers[q], &b = other->second.answers[q];
      if (a.tokens == b.tokens && a.ending == b.ending) {
        ++same;
      } else if (differences.size() < kShown) {
        differences.push_back({{"id", one.item.id},
                               {"question", question_name(bench, one.item, q, one.answers.size())},
                               {"method", valid_utf8(bench.tokenizer().decode(a.tokens))},
                               {"alone", valid_utf8(bench.tokenizer().decode(b.tokens))}});
      }
    }
  }
  const int64_t rejects = std::max(packed.rejects, separate.rejects);
  if (answers == 0)
    refuse("nothing to compare: no answer was decoded both ways ({} rows rejected); `sheaf run` says why",
           rejects);
  const double match = static_cast<double>(same) / static_cast<double>(answers);
  if (options.json) {
    print_json({{"items", items},
                {"answers", answers},
                {"exact_match", match},
                {"rejects", rejects},
                {"differences", differences}});
  } else {
    print_line(fmt::format("{} items, {} answers, exact match {:.4f}{}", items, answers, match,
                           rejects > 0 ? fmt::format(", {} rows rejected", rejects) : ""));
    for (const auto& difference : differences) {
      print_line(fmt::format("  {} {}", difference["id"].dump(), difference["question"].get<std::string>()));
      print_line("    method " + difference["method"].dump());
      print_line("    alone  " + difference["alone"].dump());
    }
  }
  return rejects > 0 ? 1 : 0;
}

}  // namespace

void add_verify_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("verify",
                                     "Decode the first rows (20 unless --limit says otherwise) both ways, as "
                                     "the job's method does and one prompt\n"
                                     "per question, and count the answers that are the same token for token");
  auto options = std::make_shared<JobOptions>();
  options->add_to(*command);
  command->callback([options, &exit_code] { exit_code = verify(*options); });
}

}  // namespace sheaf
