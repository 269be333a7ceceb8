#pragma once
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace sheaf {

struct Program {
  CLI::App& app;
  int exit_code = 0;
};

/// A property of an argument besides its name, variable and help.
using Trait = std::function<void(CLI::Option&)>;

/// The command does not work without it.
inline const Trait kRequired = [](CLI::Option& option) { option.required(); };
/// Help shows its default.
inline const Trait kWithDefault = [](CLI::Option& option) { option.capture_default_str(); };
/// One value each time that it is given.
inline const Trait kRepeatable = [](CLI::Option& option) { option.allow_extra_args(false); };
/// Its values stand in one word, with commas between them.
inline const Trait kInCommas = [](CLI::Option& option) { option.delimiter(','); };
/// The word that stands for its value in help: "FOLDER".
Trait value_name(const std::string& word);
Trait works_with(const std::string& other);     ///< only with the other argument, which was added before
Trait works_without(const std::string& other);  ///< not beside the other argument, which was added before

// Checks of a value. CLI11's own let "nan" through and say little. The description says what is wanted
// (ArgumentFacts::wanted).

Trait checked(const CLI::Validator& check);
/// One of the words; its description, "{a,b}", is where completion finds them.
Trait one_of(const std::vector<std::string>& words);
Trait number_from(double least, double most);
/// What to say of a text that is not `wanted`; `both`: with both ends of its range, for large numbers.
std::string not_whole(const std::string& text, const std::string& wanted, const std::string& both);

/// A whole number of the option's own type.
template <class Whole>
Trait whole_from(Whole least, Whole most = std::numeric_limits<Whole>::max()) {
  const std::string both = fmt::format("a whole number from {} to {}", least, most);
  const std::string wanted = most < INT32_MAX ? both : fmt::format("a whole number of at least {}", least);
  return checked({[=](std::string& text) {
                    Whole value{};
                    // CLI11 reads -1 as the largest unsigned number.
                    const bool wrapped = std::is_unsigned_v<Whole> && text.starts_with('-');
                    const bool read = !wrapped && CLI::detail::lexical_cast(text, value);
                    return read && value >= least && value <= most ? "" : not_whole(text, wanted, both);
                  },
                  wanted});
}

/// A line of a command's table of arguments.
struct Argument {
  /// `names`: "-o,--out" or "RUN". `value` gets what the user gives; a bool makes the argument a flag.
  template <class Value>
  Argument(const char* names, Value& value, const std::string& help, const Trait& first = {},
           const Trait& second = {}, const Trait& third = {})
      : add_to([=, &value](CLI::App& command) {
          CLI::Option* option = nullptr;
          if constexpr (std::is_same_v<Value, bool>)
            option = command.add_flag(names, value, help);
          else
            option = command.add_option(names, value, help);
          for (const Trait& trait : {first, second, third})
            if (trait) trait(*option);
        }) {}
  /// Lines that several commands have.
  explicit Argument(const std::vector<Argument>& group)
      : add_to([=](CLI::App& command) {
          for (const Argument& each : group) each.add_to(command);
        }) {}

  std::function<void(CLI::App& command)> add_to;
};

/// Calls `run`. 0 where it gives no exit code.
template <class Run>
int exit_code_of(const Run& run) {
  if constexpr (std::is_void_v<decltype(run())>) {
    run();
    return 0;
  } else {
    return run();
  }
}

/// Adds a command. `run` is called once its arguments are read, and gives the exit code where it can end well
/// with another one than 0; it throws sheaf::Error where the command cannot continue.
template <class Run>
CLI::App& add_command(Program& program, const std::string& name, const std::string& help,
                      const std::vector<Argument>& arguments, const Run& run) {
  CLI::App& command = *program.app.add_subcommand(name, help);
  for (const Argument& each : arguments) each.add_to(command);
  command.callback([&exit_code = program.exit_code, run] { exit_code = exit_code_of(run); });
  return command;
}

/// Each adds one command.
void add_run_command(Program& program);
void add_prefill_command(Program& program);
void add_store_command(Program& program);
void add_merge_command(Program& program);
void add_plan_command(Program& program);
void add_verify_command(Program& program);
void add_verify_run_command(Program& program);
void add_discover_command(Program& program);
void add_export_command(Program& program);
void add_import_command(Program& program);
void add_train_data_command(Program& program);
void add_convert_command(Program& program);
void add_inspect_command(Program& program);
void add_tokenize_command(Program& program);
void add_bench_command(Program& program);
void add_estimate_command(Program& program);
void add_report_command(Program& program);
void add_status_command(Program& program);
void add_show_command(Program& program);
void add_review_command(Program& program);
void add_score_command(Program& program);
void add_calibrate_command(Program& program);
void add_eval_command(Program& program);
void add_doctor_command(Program& program);
void add_get_model_command(Program& program);
void add_completion_command(Program& program);
void add_man_command(Program& program);

}  // namespace sheaf
