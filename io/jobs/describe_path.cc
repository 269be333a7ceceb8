#include "io/jobs/describe_path.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"
#include "io/corpus/describe_corpus.h"
#include "io/model/gguf.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& folder, std::initializer_list<const char*> names) {
  return fs::is_directory(folder) &&
         std::ranges::any_of(names, [&](const char* name) { return fs::exists(folder / name); });
}

}  // namespace

nlohmann::ordered_json describe_path(const std::string& path) {
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
    if (!model && !tokenizer) {
      std::vector<nlohmann::json> sample;
      about["corpus"] = describe_corpus(path, format, &sample);
      const JobProposal proposal = propose_job(path, format, about["corpus"], sample);
      about["corpus"]["proposed"] = {{"job", proposal.job}, {"schema", proposal.schema}};
    }
  }
  if (model) about["model"] = describe_model(path);
  if (tokenizer) about["tokenizer"] = describe_tokenizer(path);
  return about;
}

}  // namespace sheaf
