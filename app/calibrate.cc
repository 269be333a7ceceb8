#include "io/eval/calibrate.h"

#include "app/commands.h"
#include "app/terminal.h"
#include "io/base/named_output.h"

namespace sheaf {
namespace {

struct CalibrateCommand {
  CalibrateSettings settings;
  std::string out = "calibration.json";
};

void calibrate(const CalibrateCommand& command) {
  const NamedOutput file(command.out, {command.settings.run, command.settings.gold});
  const CalibrateResult result = calibrate_confidence(command.settings);
  file.write(confidence_file_text(result.scales));
  for (const std::string& notice : result.notices) print_line(notice, Stream::err);
  print_text(calibrate_text(command.settings, result, command.out));
}

}  // namespace

void add_calibrate_command(Program& program) {
  auto options = std::make_shared<CalibrateCommand>();
  CalibrateSettings& settings = options->settings;
  add_command(
      program, "calibrate", "Fit the confidence of a run to gold answers, and choose its null bias",
      {{"RUN", settings.run,
        "The folder of a finished run with output.confidence: true and no output.calibration", kRequired,
        value_name("FOLDER")},
       {"--gold", settings.gold, "Gold answers, as `sheaf score` reads them; rows without one are left out",
        kRequired},
       {"-o,--out", options->out, "Where to write the calibration, for output.calibration", kWithDefault},
       {"--metric", settings.metric,
        "The metric that judges each answer right or wrong (see `sheaf score --help`)", value_name("NAME"),
        kWithDefault},
       {"--gold-format", settings.gold_format, "The dataset of --gold, if it is not recognized",
        value_name("NAME"), kWithDefault},
       {"--unmentioned-absent", settings.unmentioned_absent,
        "attributes: attributes that the gold does not name are absent, so a value for one is wrong"},
       {"--precision", settings.precision,
        "Also choose the confidence from which on at least this share of the values is right, for task.trust "
        "of "
        "another job",
        number_from(0.5, 0.9999)},
       {"--risk", settings.risk, "The probability that the promise of --precision does not hold",
        kWithDefault, number_from(1e-6, 0.5), works_with("--precision")}},
      [options] { calibrate(*options); })
      .footer("docs/confidence.md says what is computed.");
}

}  // namespace sheaf
