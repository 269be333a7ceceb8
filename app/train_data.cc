#include "app/job_options.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/jobs/train_data_job.h"

namespace sheaf {
namespace {

struct TrainDataOptions : JobOptions {
  TrainDataSettings settings;
};

void print(const TrainDataOptions& options, const TrainDataEnd& end) {
  if (!end.notice.empty()) print_note(end.notice);
  for (const std::string& reject : end.rejects) print_line(reject, Stream::err);
  if (const int64_t more = end.rejected - std::ssize(end.rejects); more > 0)
    print_line(fmt::format("… and {} more", more), Stream::err);
  if (options.json)
    return print_json({{"path", options.settings.to},
                       {"records", end.records},
                       {"prompts", end.prompts},
                       {"tokens", end.tokens},
                       {"answers", end.answers},
                       {"answer_tokens", end.answer_tokens},
                       {"without_gold", end.without_gold},
                       {"repeated", end.repeated},
                       {"unreadable", end.unreadable},
                       {"rejects", end.rejected}});
  if (options.quiet) return;
  print_line(fmt::format("{} in {}, {} to learn, {} of {} tokens in {}", counted(end.records, "record"),
                         counted(end.prompts, "prompt"), counted(end.answers, "answer"), end.answer_tokens,
                         end.tokens, options.settings.to));
  if (end.without_gold > 0)
    print_line(fmt::format("{} left out: no right answer is known", counted(end.without_gold, "record")));
  if (end.repeated > 0)
    print_line(fmt::format("{} left out: an earlier record has the id, such as \"{}\"",
                           counted(end.repeated, "record"), shorten_text(end.first_repeated, 60)));
  if (end.unreadable > 0)
    print_line(
        fmt::format("{} left out: the gold value does not fit the attribute's type, or it is a span that the "
                    "text does not hold",
                    counted(end.unreadable, "value")));
}

int train_data(const TrainDataOptions& options) {
  stop_in_order();
  if (!options.settings.gold.empty() && !options.settings.rows.empty())
    refuse("--gold and --rows both say where right answers are; give one of them");
  if (options.settings.gold.empty() && options.settings.gold_format != "auto")
    refuse("--gold-format says what --gold is; give --gold too");
  OpenedJob opened(options.read());
  for (const std::string& notice : opened.notices()) print_note(notice);
  const TrainDataEnd end = write_train_data(opened, options.settings);
  if (!end.finished) return 130;
  print(options, end);
  return end.rejected == 0 ? 0 : 1;
}

}  // namespace

void add_train_data_command(Program& program) {
  auto options = std::make_shared<TrainDataOptions>();
  TrainDataSettings& settings = options->settings;
  add_command(program, "train-data",
              "Write a job's prompts with their right answers as training data: the tokens, positions and "
              "attention patterns that decoding uses (train/README.md)",
              {options->arguments(),
               {"OUT", settings.to, "The Parquet file to write", kRequired},
               {"--gold", settings.gold, "Where the right answers are (default: in the job's corpus)"},
               {"--gold-format", settings.gold_format, "What --gold is: a dataset's name, sheaf, or auto",
                value_name("NAME"), kWithDefault},
               {"--rows", settings.rows, "Use the rows of this run folder or rows file as right answers"},
               {"--unmentioned-absent", settings.unmentioned_absent,
                "extract: train null for attributes that the gold does not name (default: leave them out)"}},
              [options] { return train_data(*options); });
}

}  // namespace sheaf
