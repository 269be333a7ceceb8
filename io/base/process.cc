#include "io/base/process.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

/// The path of this process in the hierarchy of control groups whose line of /proc/self/cgroup has `field`:
/// "0::/user.slice" (version 2) or "4:cpu,cpuacct:/docker/1f" (version 1).
std::string group_path(const std::string& root, const std::string& field) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find("," + field + ",") != std::string::npos) return line.substr(second + 1);
  }
  return "/";
}

double smaller_limit(double a, double b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

/// The smallest limit of a group and all groups above it. A container may see its own group as the root.
template <class Read>
double smallest_limit(const std::string& mount, std::string path, Read&& read) {
  double limit = read(mount);
  for (; path.size() > 1; path.resize(path.find_last_of('/')))
    limit = smaller_limit(limit, read(mount + path));
  return limit;
}

/// "max 100000" or "200000 100000": microseconds in each period.
double limit_of_version_2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

double limit_of_version_1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

int UsableCores::threads() const {
  return limit > 0 ? std::clamp(static_cast<int>(std::lround(limit)), 1, cores) : cores;
}

UsableCores usable_cores(const std::string& root) {
  UsableCores usable;
  usable.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::string mount = root + "/sys/fs/cgroup";
  usable.limit = smaller_limit(smallest_limit(mount, group_path(root, ""), limit_of_version_2),
                               smallest_limit(mount + "/cpu", group_path(root, "cpu"), limit_of_version_1));
  return usable;
}

std::string processor_name() {
  std::map<std::string, std::string> facts;  // of the first processor
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const size_t colon = line.find(": "); colon != std::string::npos)
      facts.try_emplace(line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1), line.substr(colon + 2));
  if (const auto name = facts.find("model name"); name != facts.end()) return name->second;
  // Arm says numbers only.
  const std::string part = facts["CPU implementer"] + " " + facts["CPU part"];
  static const std::map<std::string, std::string> known = {{"0x41 0xd0c", "Neoverse-N1"},
                                                           {"0x41 0xd40", "Neoverse-V1"},
                                                           {"0x41 0xd49", "Neoverse-N2"},
                                                           {"0x41 0xd4f", "Neoverse-V2"}};
  if (const auto name = known.find(part); name != known.end()) return name->second;
  return part == " " ? "" : "Arm processor " + part;
}

std::string processor_and_cores() {
  return fmt::format("{}, {} cores", processor_name(), std::thread::hardware_concurrency());
}

ProcessUse process_use() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_nivcsw};
}

bool disturbed(const ProcessUse& before, const ProcessUse& after, double seconds, int threads) {
  // A second and thread. A quiet machine has up to 35 by the process's own threads, one with as many others
  // 250.
  constexpr double kMost = 80;
  return static_cast<double>(after.interruptions - before.interruptions) > kMost * seconds * threads;
}

double process_seconds() {
  // proc(5): field 22 is the start in clock ticks after boot; the name in field 2 may hold anything but ends
  // at the last bracket.
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) fail("/proc/self/stat cannot be read");
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double process_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace sheaf
