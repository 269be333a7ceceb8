#include "io/machine/machine.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include "io/base/paths.h"
#include "io/base/process.h"
#include "io/base/program_file.h"
#include "io/machine/backend_kinds.h"
#include "io/machine/default_model.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr double kGB = 1e9;

/// The number in a control group's file; -1 where there is none or no limit.
int64_t group_limit(const char* path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

/// "MemAvailable" of /proc/meminfo in bytes; 0 where it is not said.
int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    int64_t kilobytes = 0;
    file >> kilobytes;
    std::getline(file, unit);
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

MachineFact examine_cores() {
  const UsableCores usable = usable_cores();
  MachineFact fact{
      "cores", fmt::format("{} available to this process", usable.cores), "", {{"cores", usable.cores}}};
  if (usable.limit > 0) {
    fact.details["limit"] = usable.limit;
    fact.text += fmt::format(", limited to {:.1f} cores' time by the control group", usable.limit);
  }
  fact.details["threads"] = usable.threads();
  if (usable.threads() < usable.cores)
    fact.text += fmt::format("; runs use {} thread{}", usable.threads(), usable.threads() == 1 ? "" : "s");
  return fact;
}

MachineFact examine_memory() {
  const int64_t total = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE),
                available = available_memory();
  MachineFact fact{"memory",
                   fmt::format("{:.1f} GB, {:.1f} GB available", static_cast<double>(total) / kGB,
                               static_cast<double>(available) / kGB),
                   "",
                   {{"bytes", total}, {"available_bytes", available}}};
  int64_t least = available;
  if (const int64_t limit = group_limit("/sys/fs/cgroup/memory.max"); limit > 0) {
    fact.details["limit_bytes"] = limit;
    fact.text += fmt::format(", limited to {:.1f} GB by the control group", static_cast<double>(limit) / kGB);
    least = std::min(least, limit);
  }
  if (least < int64_t{2} << 30)
    fact.fix =
        "less than 2 GB: use a small model, and set engine.kv_memory_gb in the job so that keys and values "
        "fit";
  return fact;
}

/// The folder itself or the nearest one above it that is there: a run makes its output folder.
fs::path nearest_folder(const std::string& folder) {
  std::error_code ignored;
  fs::path path = fs::absolute(folder.empty() ? "." : folder, ignored).lexically_normal();
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

MachineFact examine_disk(const std::string& output) {
  const fs::path folder = nearest_folder(output);
  std::error_code error;
  const std::string shown = output == "."               ? "the current folder"
                            : fs::exists(output, error) ? output
                                                        : fmt::format("{} (for {}, which does not exist yet)",
                                                                      folder.string(), output);
  const fs::space_info space = fs::space(folder, error);
  if (error)
    return {"disk", fmt::format("the free space in {} cannot be read: {}", shown, error.message()), "", {}};
  const auto available = static_cast<double>(space.available);
  const bool writable = fs::is_directory(folder, error) && access(folder.c_str(), W_OK) == 0;
  MachineFact fact{"disk",
                   fmt::format("{:.1f} GB free in {}", available / kGB, shown),
                   "",
                   {{"folder", output}, {"free_bytes", space.available}, {"writable", writable}}};
  if (available < kGB) fact.fix = "less than 1 GB: set output.path of your jobs to a larger disk";
  if (!writable)
    fact.fix = fmt::format("{} is not writable; set output.path of your jobs to a folder that is", shown);
  return fact;
}

MachineFact examine_default_model() {
  const DefaultModel model = find_default_model();
  return {"default model",
          model.there ? model.path : "not found",
          model.there ? "" : "the demo needs it: run `sheaf get-model`, or set model.path to your own model",
          {{"path", model.path}, {"present", model.there}}};
}

MachineFact examine_jobs() {
  const char* demo = "configs/demo.yaml";
  const std::string installed = find_installed_file(demo),
                    found = installed.empty() ? find_above_program(demo) : installed;
  if (found.empty()) return {"jobs", "the shipped ones are not here", "", {}};
  const std::string folder = fs::path(found).parent_path().string();
  return {"jobs", folder, "", {{"folder", folder}}};
}

}  // namespace

std::string version_text() {
  return fmt::format("sheaf {}\n{}", SHEAF_VERSION, cuda_part_text());
}

std::vector<MachineFact> examine_machine(const std::string& output) {
  std::vector<MachineFact> facts = {{"program", version_text(), "", {{"version", SHEAF_VERSION}}}};
  if (const size_t end = facts[0].text.find('\n'); end != std::string::npos)
    facts[0].text.replace(end, 1, "; ");
  const auto add_kind = [&](Device::Kind kind) {
    std::ranges::move(backend_kind(kind).examine(), std::back_inserter(facts));
  };
  add_kind(Device::Kind::cpu);
  facts.push_back(examine_cores());
  facts.push_back(examine_memory());
  facts.push_back(examine_disk(output));
  add_kind(Device::Kind::cuda);
  facts.push_back(examine_libraries());
  facts.push_back(examine_default_model());
  facts.push_back(examine_jobs());
  return facts;
}

}  // namespace sheaf
