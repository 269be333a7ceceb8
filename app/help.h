#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace sheaf {

/// Lets the program and the commands that are added later show their help as help.cc lays it out.
void set_up_help(CLI::App& app);

/// What is wrong with the arguments and what would be right, in a line.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& arguments);

}  // namespace sheaf
