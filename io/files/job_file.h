#pragma once
#include <string>
#include <vector>

#include "core/base/mistake_list.h"
#include "core/job/job.h"
#include "core/task/schema.h"
#include "core/tokenizer/chat_template.h"
#include "io/base/yaml_reader.h"
#include "io/files/estimate_section.h"

namespace sheaf {

/// A change to a job. Errors about it begin with the place of its value.
struct JobChange {
  std::string key;  ///< "method.documents"
  YamlPtr value;
};

/// The values of `--set` as changes.
std::vector<JobChange> set_options(const std::vector<std::string>& overrides);

/// Reads a job file (paths in it are relative to its folder), applies `key.path=value` overrides and checks
/// it: unknown keys, wrong types, values out of range and missing files are errors with file, line and the
/// nearest valid key, all that can be found in one go. Without `files` the model and the corpus may be
/// missing, and few-shot examples are not read.
Job read_job(const std::string& path, const std::vector<std::string>& overrides, bool files = true);
/// How a job is read whose parts do not all stand in its file.
struct JobReading {
  std::vector<JobChange> changes = {};
  bool needs_schema = true;                ///< false: task.schema may be missing, and so may its file
  std::shared_ptr<TableInput> table = {};  ///< the records, whatever input.path and input.format say
  bool streams_rows = false;               ///< rows go elsewhere: output.path may be missing
  YamlPtr root = {};                       ///< what the file would hold; null: it is read
};
Job read_job_as(const std::string& path, const JobReading& reading);
/// The parsed file; refuses what people give in place of a job.
YamlPtr read_job_yaml(const std::string& path);
/// A job of which only the sections `model` and `engine` are read, and no others may be there.
Job read_model_sections(const std::string& path, const YamlPtr& root);
/// Reads a job from its parsed file.
Job read_job(const std::string& path, YamlPtr root, const std::vector<JobChange>& changes, bool files);

/// The `estimate` section of a parsed job file, with the overrides; the rest is not looked at.
EstimateWishes read_job_estimate(const YamlPtr& root, const std::vector<std::string>& overrides);

// Parts of the reading.

/// Reads the input section of a job; what needs the task is checked only where it is known. Without `files`
/// the corpus may be missing.
void read_input(YamlMap map, Job& job, bool files, MistakeList& found);  // job_input.cc

/// Reads task.prompt: what is given, with the fields that each part may have.
void read_prompt(YamlMap& task, Job& job, MistakeList& found);  // job_prompt.cc
/// Refuses columns in the words of a document where a document has none, or is cut.
void check_prompt(const Job& job);

/// Ends the instruction with the examples that the input section asks for, as they would stand in the prompt.
void add_examples(Job& job);

/// Refuses a section without a key that `what` needs, with file and line.
void needs(const YamlMap& map, std::string_view key, std::string_view what);

/// Refuses what people give in place of a job file, by its name and first bytes: a folder, a model, a corpus.
/// Says what it is, and which command or key of a job wants it.
void check_is_job(const std::string& path);  // not_a_job.cc

/// Refuses a YAML or JSON file whose keys are of something else: an evaluation, a schema, a model's files.
void check_is_job(const std::string& path, const YamlNode& root);

/// Reads a chat template from a YAML file whose keys are the fields of ChatTemplate. Refuses, with file and
/// line, what cannot be one.
ChatTemplate read_chat_file(const std::string& path);

/// Reads a schema file; errors carry file and line.
Schema read_schema(const std::string& path);
/// The job's schema; numbers and dates have the job's locale where they have none of their own.
Schema read_schema(const Job& job);
/// The word that a schema file has for a type.
std::string_view type_word(ValueType type);

}  // namespace sheaf
