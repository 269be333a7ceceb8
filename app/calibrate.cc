#include "io/eval/calibrate.h"

#include <CLI/CLI.hpp>
#include <memory>

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
  print_text(calibrate_text(result, command.out));
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  auto options = std::make_shared<CalibrateCommand>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Fit the confidence of a run to gold answers, and choose its null bias");
  command
      ->add_option("run", options->settings.run,
                   "The folder of a finished run with output.confidence: true and no output.calibration")
      ->required()
      ->type_name("FOLDER");
  command
      ->add_option("--gold", options->settings.gold,
                   "Gold answers, as `sheaf score` reads them; rows without one are left out")
      ->required();
  command->add_option("-o,--out", options->out, "Where to write the calibration, for output.calibration")
      ->capture_default_str();
  command
      ->add_option("--metric", options->settings.metric,
                   "The metric that judges each answer right or wrong (see `sheaf score --help`)")
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("--gold-format", options->settings.gold_format,
                   "The dataset of --gold, if it is not recognized")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag(
      "--unmentioned-absent", options->settings.unmentioned_absent,
      "attributes: attributes that the gold does not name are absent, so a value for one is wrong");
  command->footer("docs/confidence.md says what is computed.");
  command->callback([options] { calibrate(*options); });
}

}  // namespace sheaf
