#pragma once
#include <array>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace sheaf {

/// An option or operand of a command, as help, completion scripts and the man page need it.
struct ArgumentFacts {
  std::vector<std::string> names;      ///< "-q", "--quiet"; empty: an operand
  std::vector<std::string> old_names;  ///< spellings of earlier versions, which are read but not shown
  std::string value;                   ///< what stands for its value: "FILE", "N", "a|b"; empty: a flag
  std::string wanted;                  ///< rule for its value: "a whole number from 0 to 4096"; empty: none
  std::vector<std::string> choices;
  bool path = false;  ///< its value is a file or folder
  bool required = false;
  bool repeated = false;
  int least = 1;     ///< values that it needs
  std::string help;  ///< one line

  std::vector<std::string> all_names() const;
  /// "-q, --quiet", "--limit N", "JOB" or "[OUTPUT]".
  std::string usage() const;
};

struct CommandFacts {
  std::string name;  ///< empty: the program itself
  std::string help;  ///< one line
  std::vector<ArgumentFacts> options, operands;
};

struct ExitCode {
  int code;
  const char* meaning;
};

/// What the help and the man page say; core/base/error.h and the commands give them.
constexpr std::array<ExitCode, 6> kExitCodes = {{{0, "success"},
                                                 {1, "finished with rejected records"},
                                                 {2, "wrong usage, configuration or input"},
                                                 {3, "fatal: the machine or the program failed"},
                                                 {75, "failed for now (device, disk or store): try again"},
                                                 {130, "interrupted: rerun the same command to resume"}}};

/// What the program does, and its commands to begin with.
constexpr const char* kAbout =
    "Get many answers out of each prompt. sheaf reads a corpus, packs documents and questions into shared "
    "prompts, decodes all answers in parallel and writes one structured row per record.";
struct FirstCommand {
  const char *line, *about;
};
constexpr std::array<FirstCommand, 3> kFirstCommands = {
    {{"sheaf plan configs/demo.yaml", "show what a job would compute, without running it"},
     {"sheaf run configs/demo.yaml", "run it: rows, rejects and a report go to its output folder"},
     {"sheaf verify configs/demo.yaml", "compare the method's answers with one prompt per question"}}};

/// Command lines to copy, for the help and the man page of a command.
std::vector<std::string> examples_of(const std::string& command);

CommandFacts describe_command(const CLI::App& app);

/// The program's own options and then every command. An argument takes a path unless its type says otherwise:
/// a number, or a choice such as {bash,zsh}, or a name that was set with type_name().
std::vector<CommandFacts> describe_commands(const CLI::App& app);

/// Names of commands, the program itself left out.
std::vector<std::string> command_names(const std::vector<CommandFacts>& commands);

/// Lets the program and the commands that are added later show their help as help.cc lays it out.
void set_up_help(CLI::App& app);

/// What is wrong with the arguments and what would be right, in a line.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& arguments);

/// What a key of a job file means and takes; of a section, or of all ("") a list of keys.
std::string job_help(const std::string& path);

}  // namespace sheaf
