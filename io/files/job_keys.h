#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/mistake_list.h"
#include "core/job/job.h"
#include "io/base/yaml_reader.h"

namespace sheaf {

/// What a changed value of a key changes.
enum class Decides : uint8_t {
  nothing,  ///< time, places and costs: a run is resumed
  rows,     ///< which records are read, and what becomes of answers: another run
  answers,  ///< answers too: those of earlier runs cannot be reused
  file,     ///< what its file holds; the fingerprint has the file's digest in place of its path
};

/// An enum of a job by its words.
struct WordMember {
  std::vector<std::string> (*words)();
  std::string_view (*get)(const Job& job);
  void (*set)(Job& job, std::string_view word);
};

template <class Value>
using MemberOf = Value& (*)(Job& job);

/// Where a job holds the value of a key; std::monostate: elsewhere (io/files/estimate_section.h).
using JobMember = std::variant<std::monostate, MemberOf<bool>, MemberOf<int32_t>, MemberOf<int64_t>,
                               MemberOf<uint64_t>, MemberOf<float>, MemberOf<double>, MemberOf<std::string>,
                               MemberOf<std::vector<std::string>>, WordMember>;

/// What a key takes besides the type of its member.
struct Takes {
  Range<int64_t> whole = {INT64_MIN, INT64_MAX};
  Range<double> real = {-1e300, 1e300};
  std::string_view word = {};  ///< stands for `word_means`; empty: none
  double word_means = 0;
  std::vector<std::string> (*words)() = nullptr;  ///< of a text; null: any text
  bool path = false;                              ///< of a file or folder
  bool required = false;
  std::string_view old = {};                                 ///< the name of the key in earlier versions
  bool own_reader = false;                                   ///< job_file.cc reads it in a way of its own
  std::string_view text = {};                                ///< for people, where the rest does not say it
  nlohmann::ordered_json (*told)(const Job& job) = nullptr;  ///< by fingerprints; null: its value
};

/// What a job must be for a key to mean something.
struct Scope {
  std::string_view text;  ///< "task.kind extract"
  bool (*holds)(const Job& job);
};

/// A key of job files. Everything that lists, reads, checks, explains or compares keys goes by job_keys().
struct JobKey {
  std::string path;  ///< "method.documents", "engine.kv_store.gb"
  JobMember member;
  Takes takes;
  Decides decides;
  std::string_view help;  ///< one line
  std::vector<Scope> scopes = {};

  std::string_view section() const { return std::string_view(path).substr(0, path.rfind('.')); }
  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  /// Values that can be offered; empty: none are known, or too many.
  std::vector<std::string> words() const;
  /// What it takes, for people: "0 to 100".
  std::string type() const;
  /// Its value in a job as a file would have it; null where `member` is std::monostate.
  nlohmann::ordered_json value(const Job& job) const;
};

std::span<const JobKey> job_keys();  // job_table.cc
/// Null where there is none; `path` is "method.documents".
const JobKey* find_job_key(std::string_view path);

/// Gives a job whose task is known the defaults of the task: its method and the format of its corpus.
void follow_task(Job& job);  // job_table.cc

/// Reads the keys of a section into a job, but for those with an own reader, and requires the required ones.
void read_keys(std::string_view section, YamlMap& map, Job& job, MistakeList& found);
/// Finds keys that were given and mean nothing in this job.
void check_scopes(std::string_view section, const YamlMap& map, const Job& job, MistakeList& found);

/// {section: {key: value}} of the keys that decide at least as much.
nlohmann::ordered_json job_settings(const Job& job, Decides least);

}  // namespace sheaf
