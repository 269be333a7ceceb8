#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// The dataset that a file or folder is by its look; empty: it is none that sheaf reads, or is broken.
std::string recognize_dataset(const std::string& path);

/// A public dataset in the figures of IPPD's table 1: {"format", "contexts", "questions",
/// "questions_per_context", "unanswerable", "broken": {"records", "first"}, "tokens": {"model",
/// "instruction", "context", "question", "answer"}}. Contexts are different ones; tokens are means of what
/// prompts hold, as the usual job of the dataset words them for `model` (empty: none are counted). Of an
/// extract dataset there are only its records, of one whose passages are a collection of their own only its
/// questions. Options and answers count with their questions; a question without an answer has "null".
nlohmann::ordered_json describe_dataset(const std::string& format, const std::string& path,
                                        const std::string& model);

/// The sections `input`, `task` and `method` of a job for it. `schema`: of an extract dataset.
std::string propose_dataset_job(const std::string& format, const std::string& path,
                                const std::string& schema);

}  // namespace sheaf
