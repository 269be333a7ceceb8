#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/job/job.h"

namespace sheaf {

/// A part of a corpus: shard `index` of `count`, its records [first, end).
struct Shard {
  int32_t index = 0, count = 1;
  int64_t first = 0, end = 0;
};

/// Everything that decides what the rows of a job are: its settings (not its threads, step size, price or
/// output folder), its files, the kind of device and the version of the program.
nlohmann::ordered_json job_fingerprint(const Job& job, bool gpu, const Shard& shard);

/// The part of it that tells the model and its adapter: their files. `dated`: also when large ones, of which
/// it reads only samples, were changed last.
nlohmann::ordered_json model_fingerprint(const Job::ModelPart& model, bool dated = false);

/// Which of its settings ("method.documents") differ from those of a job that sets nothing.
std::vector<std::string> changed_settings(const nlohmann::ordered_json& settings);

/// The part of it that tells the corpus: its files, by their names below their common_folder(), so that it is
/// the same from every working directory.
nlohmann::ordered_json corpus_fingerprint(const Job::Input& input);

/// Size and SHA-256 of a file. Over 64 MiB the sum is taken over 1 MiB at each end and 64 KiB at 256 places
/// between, and a corpus file (`dated`) also tells when it was changed last.
nlohmann::ordered_json file_fingerprint(const std::string& path, bool dated);

}  // namespace sheaf
