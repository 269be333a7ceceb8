#include "app/job_options.h"

#include "app/terminal.h"

namespace sheaf {

Argument set_option(std::vector<std::string>& overrides, const std::string& help) {
  return {"--set", overrides, help, kRepeatable, value_name("KEY=VALUE")};
}

Argument device_option(std::string& device) {
  return {"--device", device,
          "Where to compute (engine.device); several engines: cuda:all, cuda:0,2 or cpu:2",
          value_name("{auto,cpu,cuda,cuda:N}")};
}

Argument seed_option(uint64_t& seed, const std::string& help) {
  return {"--seed", seed, help, whole_from<uint64_t>(0), kWithDefault};
}

Argument place_options(RunPlaces& places) {
  return Argument({{"--input", places.input,
                    "Where the run's corpus is now, if it was moved or came from standard input"},
                   {"--schema", places.schema, "Where the run's schema is now, if it was moved"}});
}

Argument reuse_options(ReuseWish& wish) {
  return Argument(
      {{"--reuse", wish.runs,
        "Take answers from this finished run where nothing that decides them has changed (output.reuse): a "
        "folder, a URI, or latest:out/{date} for the newest finished run that matches (may be repeated)",
        kRepeatable, value_name("FOLDER")},
       {"--reuse-if-exists", wish.if_exists,
        "Continue where a run of --reuse does not exist, as on the first night (otherwise exit code 2)"}});
}

Argument JobOptions::arguments() {
  return Argument(
      {{"JOB", path, "The job file (YAML; docs/job.md explains every key)", kRequired},
       set_option(overrides, "Override a key of the job: --set method.documents=4 (may be repeated)"),
       {"--limit", limit, "Read at most N records of the corpus (0: as the job says)",
        whole_from<int64_t>(0, int64_t{1} << 53)},
       {"--threads", threads, "Threads to use (0: every core)", whole_from(0, 4096)},
       device_option(device),
       {"--reproducible", reproducible,
        "Make answers independent, to the bit, of the batch and of how prompts are packed "
        "(engine.reproducible)"},
       {"--json", json, "Print the result as JSON on standard output"},
       {"--quiet,-q", quiet, "Print neither progress nor the report"}});
}

Job JobOptions::read(JobReading reading) const {
  for (JobChange& change : set_options(overrides)) reading.changes.push_back(std::move(change));
  if (!device.empty())
    for (JobChange& change :
         set_options({fmt::format("engine.device={}", device_text(parse_device(device, "--device")))}))
      reading.changes.push_back(std::move(change));
  Job job = read_job_as(path, reading);
  if (limit > 0) job.input.limit = limit;
  if (reproducible) job.engine.reproducible = true;
  if (threads >= 0) job.engine.threads = threads;
  return job;
}

bool take_input(OpenedJob& opened) {
  for (const std::string& notice : opened.notices()) print_note(notice);
  if (opened.take_input()) return true;
  print_note("interrupted while reading standard input");
  return false;
}

}  // namespace sheaf
