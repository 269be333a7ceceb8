#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace sheaf {

/// Keeps the text that a target is about to read in the file that SHEAF_FUZZ_INPUT names, so that a crash
/// leaves it behind.
inline const std::string& keep_input(const std::string& text) {
  static const char* const path = std::getenv("SHEAF_FUZZ_INPUT");
  if (path) std::ofstream(path, std::ios::binary) << text;
  return text;
}

/// Texts that were trouble once: the files of tests/findings/TARGET.
inline std::vector<std::string> past_findings(const std::string& target) {
  std::vector<std::string> texts;
  const std::filesystem::path folder = std::filesystem::path("tests/findings") / target;
  if (!std::filesystem::is_directory(folder)) return texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

}  // namespace sheaf
