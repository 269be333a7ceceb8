#include "io/base/usable_cores.h"

#include <algorithm>
#include <fstream>
#include <thread>

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
  return limit > 0 ? std::clamp(static_cast<int>(limit + 0.5), 1, cores) : cores;
}

UsableCores usable_cores(const std::string& root) {
  UsableCores usable;
  usable.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::string mount = root + "/sys/fs/cgroup";
  usable.limit = smaller_limit(smallest_limit(mount, group_path(root, ""), limit_of_version_2),
                               smallest_limit(mount + "/cpu", group_path(root, "cpu"), limit_of_version_1));
  return usable;
}

}  // namespace sheaf
