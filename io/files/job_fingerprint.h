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

/// Everything that decides what the rows of a job are: its settings (job_keys.h says which), its files, the
/// kind of device and the version of the program.
nlohmann::ordered_json job_fingerprint(const Job& job, bool gpu, const Shard& shard);

/// The part of a fingerprint that decides answers, whatever the records and questions are.
nlohmann::ordered_json answer_settings(const Job& job, const nlohmann::ordered_json& fingerprint);
/// The settings that decide answers, for a job whose fingerprint was not made: skips the corpus files.
nlohmann::ordered_json answer_settings(const Job& job, bool gpu);

/// The files of a model or an adapter that decide what it does: weights, configuration and tokenizer.
std::vector<std::string> find_model_files(const std::string& path);

/// The part of a fingerprint that tells the model and its adapter: every byte of their files.
nlohmann::ordered_json model_fingerprint(const Job::ModelPart& model);

/// Which settings ("method.documents") differ from those of a job that sets nothing.
std::vector<std::string> changed_settings(const nlohmann::ordered_json& settings);

/// The part of a fingerprint that tells the corpus: its files, by their names below their common_folder(), so
/// that every working directory gives the same one.
nlohmann::ordered_json corpus_fingerprint(const Job::Input& input);

/// Sizes and sums of the files in corpus_fingerprint(), whatever they are called and whenever they were
/// changed.
std::vector<nlohmann::ordered_json> corpus_contents(const nlohmann::ordered_json& corpus);

}  // namespace sheaf
