#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands.h"
#include "app/terminal.h"
#include "io/jobs/describe_path.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct InspectOptions : InspectSettings {
  bool json = false;
};

void print_file(const std::string& text, const std::string& words) {
  if (!text.empty()) print_text("\n# " + words + "\n" + text);
}

void print(const ordered_json& about) {
  print_line(about["path"].get<std::string>());
  print_text(description_text(about));
  const bool dataset = about.contains("dataset");
  if (!about.contains("corpus") && !dataset) return;
  const ordered_json& proposed = about[dataset ? "dataset" : "corpus"]["proposed"];
  if (about.contains("wrote")) {
    const std::vector<std::string> files = about["wrote"];
    print_line(fmt::format("wrote {}; look at {} before you run it: sheaf run {}", fmt::join(files, " and "),
                           files.size() > 1 ? "them" : "it", files.front()));
    return;
  }
  print_file(proposed["job"], "A first job (--write job.yaml writes it):");
  if (proposed.contains("schema")) print_file(proposed["schema"], "Its schema.yaml:");
}

}  // namespace

void add_inspect_command(Program& program) {
  auto options = std::make_shared<InspectOptions>();
  add_command(
      program, "inspect", "Describe a model, tokenizer, corpus or public dataset, and propose a job for it",
      {{"PATH", options->path,
        "A GGUF file, model folder, tokenizer file, corpus (JSON lines, CSV, Parquet) or public dataset",
        kRequired},
       {"--model", options->model,
        "The model of the proposed job (default: the one that comes with sheaf), and to count a dataset's "
        "tokens by"},
       {"--write", options->write,
        "Write the proposed job to this .yaml file and its schema to a file next to it. Choose a new name: "
        "sheaf does not overwrite files",
        value_name("JOB.yaml")},
       {"--json", options->json, "Print one JSON object instead"}},
      [options] {
        const ordered_json about = describe_path(*options);
        options->json ? print_json(about) : print(about);
      });
}

}  // namespace sheaf
