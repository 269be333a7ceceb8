#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sheaf {

/// An option or operand of a command, as help, completion scripts and the man page need it.
struct ArgumentFacts {
  std::vector<std::string> names;  ///< "-q", "--quiet"; empty: an operand
  std::string value;               ///< what stands for its value: "FILE", "N", "a|b"; empty: a flag
  std::string wanted;              ///< of its value, where there is a rule: "a whole number from 0 to 4096"
  std::vector<std::string> choices;
  bool path = false;  ///< its value is a file or folder
  bool required = false;
  bool repeated = false;
  int least = 1;     ///< values that it needs
  std::string help;  ///< one line

  /// "-q, --quiet", "--limit N", "JOB" or "[OUTPUT]".
  std::string usage() const;
};

struct CommandFacts {
  std::string name;  ///< empty: the program itself
  std::string help;  ///< one line
  std::vector<ArgumentFacts> arguments;

  std::vector<ArgumentFacts> options() const;
  std::vector<ArgumentFacts> operands() const;
};

CommandFacts describe_command(const CLI::App& app);

/// The program's own options and then every command. An argument takes a path unless its type says otherwise:
/// a number, or a choice such as {bash,zsh}, or a name that was set with type_name().
std::vector<CommandFacts> describe_commands(const CLI::App& app);

/// The names of those that are not the program itself.
std::vector<std::string> command_names(const std::vector<CommandFacts>& commands);

}  // namespace sheaf
