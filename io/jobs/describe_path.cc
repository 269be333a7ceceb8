#include "io/jobs/describe_path.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/text/utf8.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"
#include "io/base/named_output.h"
#include "io/base/paths.h"
#include "io/base/program_file.h"
#include "io/base/store_uri.h"
#include "io/corpus/column_facts.h"
#include "io/corpus/describe_corpus.h"
#include "io/datasets/dataset.h"
#include "io/jobs/describe_dataset.h"
#include "io/model/gguf.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& folder, std::initializer_list<const char*> names) {
  return fs::is_directory(folder) &&
         std::ranges::any_of(names, [&](const char* name) { return fs::exists(folder / name); });
}

/// A file that comes with sheaf: in a clone of the repository, or where it is installed; empty: neither.
std::string find_shipped(const std::string& in_clone, const std::string& installed) {
  std::error_code ignored;
  if (fs::is_regular_file(in_clone, ignored)) return in_clone;
  const std::string above = find_above_program(in_clone);
  return above.empty() ? find_installed_file(installed) : above;
}

/// Where the files of a proposed job are, as the job says it.
class ProposedPlaces {
 public:
  explicit ProposedPlaces(const InspectSettings& settings) : settings_(settings) {
    std::error_code ignored;
    const fs::path folder = fs::absolute(settings.write, ignored).parent_path();
    elsewhere_ = !settings.write.empty() && !fs::equivalent(folder, fs::current_path(ignored), ignored);
    const std::string stem = fs::path(settings.write).stem().string();
    if (!settings.write.empty() && stem != "job") schema_ = stem + "-schema.yaml";
  }

  const std::string& schema() const { return schema_; }
  std::string schema_path() const { return (fs::path(settings_.write).parent_path() / schema_).string(); }

  /// Paths of a job are relative to its folder.
  std::string from_job(const std::string& path) const {
    std::error_code ignored;
    return elsewhere_ && !is_uri(path) ? fs::absolute(path, ignored).string() : path;
  }

  std::string model_section(bool extracts) const {
    const std::string shipped = find_shipped("build/models/smollm2.gguf", "models/smollm2.gguf");
    std::string model = settings_.model.empty() ? shipped : settings_.model;
    if (model.empty())
      return "model:\n  path: MODEL.gguf  # the default model is not here; name a GGUF file or a folder\n";
    std::string text = fmt::format("model:\n  path: {}\n", yaml_word(from_job(model)));
    // The adapter fits the default model only.
    const std::string adapter = find_shipped("configs/adapters/smollm2-extract/adapter_config.json",
                                             "configs/adapters/smollm2-extract/adapter_config.json");
    std::error_code ignored;
    if (extracts && !adapter.empty() && fs::equivalent(model, shipped, ignored))
      text += fmt::format("  adapter: {}\n", yaml_word(from_job(fs::path(adapter).parent_path().string())));
    return text;
  }

  std::string output_section() const {
    std::string name = fs::path(settings_.path).stem().stem().string();
    if (name.empty() || !std::ranges::all_of(name, [](char c) { return is_name(c); })) name = "run";
    return fmt::format("\noutput:\n  path: out/{}\n", yaml_word(name));
  }

 private:
  static bool is_name(char c) {
    const char low = small_letter(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }

  const InspectSettings& settings_;
  std::string schema_ = "schema.yaml";
  bool elsewhere_ = false;  ///< the job is not written where the user stands
};

/// The sections that the corpus does not tell.
std::string whole_job(const JobProposal& proposal, const ProposedPlaces& places) {
  if (proposal.job.empty()) return {};
  const bool extracts = !proposal.schema.empty();
  std::string text = places.model_section(extracts) + "\n" + proposal.job;
  if (const size_t at = text.find("schema: schema.yaml"); extracts && at != std::string::npos)
    text.replace(at, std::string_view("schema: schema.yaml").size(), "schema: " + yaml_word(places.schema()));
  if (extracts) text += "\nmethod:\n  name: hpd\n";
  return text + places.output_section();
}

void check_is_new(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) refuse("--write: {} exists; name another job file, or remove it", path);
}

/// Returns the files.
std::vector<std::string> write_proposal(const std::string& job, const std::string& schema,
                                        const std::string& job_path, const ProposedPlaces& places) {
  if (job.empty())
    refuse(
        "--write: no column of the corpus holds text, numbers or lists, so no job can be proposed; name "
        "another corpus");
  if (!job_path.ends_with(".yaml") && !job_path.ends_with(".yml"))
    refuse("--write: {} must end in .yaml", job_path);
  std::vector<std::string> files = {job_path};
  if (!schema.empty()) files.push_back(places.schema_path());
  for (const std::string& file : files) check_is_new(file);
  // The schema first, so that there is no job without one.
  if (!schema.empty()) NamedOutput(files.back()).write(schema);
  NamedOutput(job_path).write(job);
  return files;
}

/// A public dataset, and a job for it.
void add_dataset(const std::string& format, const InspectSettings& settings, nlohmann::ordered_json& about) {
  about["dataset"] = describe_dataset(format, settings.path, settings.model);
  const ProposedPlaces places(settings);
  const bool extracts = find_dataset_format(format)->task == TaskKind::extract;
  std::string schema;
  if (extracts) {
    const std::string shipped = "configs/schemas/" + format + ".yaml";
    schema = find_shipped(shipped, shipped);
  }
  const std::string job = places.model_section(extracts) + "\n" +
                          propose_dataset_job(format, places.from_job(settings.path),
                                              schema.empty() ? schema : places.from_job(schema)) +
                          places.output_section();
  about["dataset"]["proposed"] = {{"job", job}};
  if (settings.write.empty()) return;
  if (extracts && schema.empty())
    refuse("--write: the schema for {} is not here; write one (docs/job.md), and a job that names it",
           format);
  about["wrote"] = write_proposal(job, {}, settings.write, places);
}

}  // namespace

nlohmann::ordered_json describe_path(const InspectSettings& settings) {
  const std::string& path = settings.path;
  nlohmann::ordered_json about{{"path", path}};
  if (!fs::is_directory(path)) check_readable(path);
  bool model = has_file(path, {"config.json"});
  bool tokenizer =
      has_file(path, {"tokenizer.json", "tokenizer.model", "tokenizer.tiktoken", "qwen.tiktoken"});
  if (fs::is_regular_file(path) && read_beginning(path, 4) == "GGUF") {
    const GgufFile file = GgufFile::open(path);
    model = !file.tensors().empty();
    tokenizer = file.has("tokenizer.ggml.model");
    if (!model && !tokenizer) refuse("{}: the file has neither tensors nor a tokenizer", path);
  } else if (!model && !tokenizer) {
    model = path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json");
    const std::string format = model ? "" : wanted_format(path);
    tokenizer = !model && (format.empty() || path.ends_with(".model") || path.ends_with(".tiktoken"));
    const std::string dataset = model ? "" : recognize_dataset(path);
    if (!dataset.empty()) {
      tokenizer = false;
      add_dataset(dataset, settings, about);
    } else if (!model && !tokenizer) {
      std::vector<nlohmann::json> sample;
      about["corpus"] = describe_corpus(path, format, &sample);
      const ProposedPlaces places(settings);
      const JobProposal proposal = propose_job(places.from_job(path), format, about["corpus"], sample);
      const std::string job = whole_job(proposal, places);
      about["corpus"]["proposed"] = {{"job", job}, {"schema", proposal.schema}};
      if (!settings.write.empty())
        about["wrote"] = write_proposal(job, proposal.schema, settings.write, places);
    }
  }
  if (!settings.write.empty() && !about.contains("corpus") && !about.contains("dataset"))
    refuse("--write: {} is a model or a tokenizer; name a corpus to write a job for it", path);
  if (model) about["model"] = describe_model(path);
  if (tokenizer) about["tokenizer"] = describe_tokenizer(path);
  return about;
}

}  // namespace sheaf
