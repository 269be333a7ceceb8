#include "io/base/processor_name.h"

#include <fmt/format.h>
#include <fstream>
#include <map>
#include <thread>

namespace sheaf {

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

}  // namespace sheaf
