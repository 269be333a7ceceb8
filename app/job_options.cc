#include "app/job_options.h"

#include <CLI/CLI.hpp>

#include "app/option_checks.h"
#include "app/terminal.h"
#include "io/files/job_file.h"
#include "io/jobs/workbench.h"

namespace sheaf {

void JobOptions::add_to(CLI::App& command) {
  command.add_option("JOB", path, "The job file (YAML; docs/job.md explains every key)")->required();
  command
      .add_option("--set", overrides, "Override a key of the job: --set method.documents=4 (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command.add_option("--limit", limit, "Read at most N records of the corpus (0: as the job says)")
      ->check(whole_from<int64_t>(0, int64_t{1} << 53));
  command.add_option("--threads", threads, "Threads to use (0: every core)")->check(whole_from(0, 4096));
  command
      .add_option("--device", device,
                  "Where to compute (engine.device); several engines: cuda:all, cuda:0,2 or cpu:2")
      ->type_name("{auto,cpu,cuda,cuda:N}");
  command.add_flag("--reproducible", reproducible,
                   "Make answers independent, to the bit, of the batch and of how prompts are packed "
                   "(engine.reproducible)");
  command.add_flag("--json", json, "Print the result as JSON on standard output");
  command.add_flag("--quiet,-q", quiet, "Print neither progress nor the report");
}

Job JobOptions::read() const {
  std::vector<std::string> all = overrides;
  if (!device.empty())
    all.push_back(fmt::format("engine.device={}", device_text(parse_device(device, "--device"))));
  Job job = read_job(path, all);
  if (limit > 0) job.input.limit = limit;
  if (reproducible) job.engine.reproducible = true;
  if (threads >= 0) job.engine.threads = threads;
  return job;
}

bool take_input(Workbench& bench) {
  for (const std::string& notice : bench.notices()) print_note(notice);
  if (bench.take_input()) return true;
  print_note("interrupted while reading standard input");
  return false;
}

}  // namespace sheaf
