#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"
#include "io/base/mapped_file.h"
#include "io/corpus/describe_corpus.h"
#include "io/corpus/propose_job.h"
#include "io/model/gguf.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct InspectOptions {
  std::string path;
  bool json = false;
};

bool starts_with_gguf(const std::string& path) {
  return read_beginning(path, 4) == "GGUF";
}

bool has_tokenizer_file(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer.tiktoken", "qwen.tiktoken"}) {
    if (fs::exists(folder / name)) return true;
  }
  return false;
}

ordered_json inspect(const std::string& path) {
  ordered_json about{{"path", path}};
  if (!fs::is_directory(path)) check_readable(path);
  if (fs::is_directory(path) && (fs::exists(fs::path(path) / "config.json") || has_tokenizer_file(path))) {
    if (fs::exists(fs::path(path) / "config.json")) about["model"] = describe_model(path);
    if (has_tokenizer_file(path)) about["tokenizer"] = describe_tokenizer(path);
  } else if (fs::is_regular_file(path) && starts_with_gguf(path)) {
    const GgufFile file = GgufFile::open(path);
    if (!file.tensors().empty()) about["model"] = describe_model(path);
    if (file.has("tokenizer.ggml.model")) about["tokenizer"] = describe_tokenizer(path);
    if (!about.contains("model") && !about.contains("tokenizer"))
      refuse("{}: the file has neither tensors nor a tokenizer", path);
  } else if (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json")) {
    about["model"] = describe_model(path);
  } else if (const std::string format = wanted_format(path);
             format.empty() || path.ends_with(".model") || path.ends_with(".tiktoken")) {
    about["tokenizer"] = describe_tokenizer(path);
  } else {
    std::vector<nlohmann::json> sample;
    about["corpus"] = describe_corpus(path, format, &sample);
    const JobProposal proposal = propose_job(path, format, about["corpus"], sample);
    about["corpus"]["proposed"] = {{"job", proposal.job}, {"schema", proposal.schema}};
  }
  return about;
}

std::string bytes_text(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e3) return fmt::format("{} B", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.2f} GB", value / 1e9);
}

std::string count_text(int64_t count) {
  const auto value = static_cast<double>(count);
  if (value < 1e6) return fmt::format("{}", count);
  return value < 1e9 ? fmt::format("{:.1f} M", value / 1e6) : fmt::format("{:.2f} G", value / 1e9);
}

void line(const char* label, const std::string& text) {
  print_line(fmt::format("  {:<11} {}", label, text));
}

int64_t whole(const ordered_json& about, const char* key) {
  return about[key].get<int64_t>();
}

void print_model(const ordered_json& about) {
  line("model",
       fmt::format("{}: {} layers, hidden {}, MLP {}, {} heads on {} key/value heads of {}, vocabulary {}{}",
                   about["family"].get<std::string>(), whole(about, "layers"), whole(about, "hidden"),
                   whole(about, "ffn"), whole(about, "heads"), whole(about, "kv_heads"),
                   whole(about, "head_dim"), whole(about, "vocab"),
                   about["tied_output"].get<bool>() ? ", tied output" : ""));
  std::string types;
  int64_t bytes = 0;
  for (const auto& type : about["tensor_types"]) {
    bytes += whole(type, "bytes");
    types += fmt::format("{}{} {} ({})", types.empty() ? "" : ", ", whole(type, "tensors"),
                         type["type"].get<std::string>(), bytes_text(whole(type, "bytes")));
  }
  line("parameters", fmt::format("{}, {} in the file: {}", count_text(whole(about, "parameters")),
                                 bytes_text(bytes), types));
  line("context", fmt::format("{} tokens; keys and values take {} per token in fp32", whole(about, "context"),
                              bytes_text(whole(about, "kv_bytes_per_token"))));
  line("memory", fmt::format("{} as fp32", bytes_text(whole(about, "fp32_bytes"))));
}

std::string token_text(const ordered_json& token) {
  if (token.is_null()) return "none";
  return fmt::format("{} {}", whole(token, "id"), shown(token["text"].get<std::string>()));
}

std::string token_list(const ordered_json& tokens) {
  std::string text;
  for (const auto& token : tokens) text += (text.empty() ? "" : ", ") + token_text(token);
  return text.empty() ? "none" : text;
}

void print_tokenizer(const ordered_json& about) {
  line("tokenizer", about["kind"].get<std::string>());
  line("begin, end", fmt::format("{}{}; {}", token_text(about["bos"]),
                                 about["starts_with_bos"].get<bool>() ? " (starts every prompt)" : "",
                                 token_list(about["end_tokens"])));
  const auto more = whole(about, "specials") - static_cast<int64_t>(about["first_specials"].size());
  line("specials", token_list(about["first_specials"]) + (more > 0 ? fmt::format(" and {} more", more) : ""));
  line("chat", fmt::format("{}: {}", about["chat_template"].get<std::string>(),
                           about["chat_template_why"].get<std::string>()));
}

void print_corpus(const ordered_json& about) {
  line("corpus",
       fmt::format("{} in {} {} {}", counted(whole(about, "records"), "record"), about["files"].dump(),
                   about["format"].get<std::string>(), plural("file", whole(about, "files"))));
  if (about.contains("damage")) line("damaged", about["damage"].get<std::string>());
  if (about.contains("unreadable")) {
    const ordered_json& unreadable = about["unreadable"];
    line("unreadable",
         fmt::format("{} would be rejected; the first: {}", counted(whole(unreadable, "records"), "record"),
                     unreadable["first"].get<std::string>()));
  }
  for (const auto& column : about["columns"]) {
    const std::string name = column["name"].get<std::string>();
    std::string first = "-";
    if (about["first"].is_object() && about["first"].contains(name)) {
      first = about["first"][name].dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    }
    print_line(fmt::format("    {:<20} {:<12} {}", name, column["type"].get<std::string>(), first));
  }
}

void print_proposal(const ordered_json& proposed) {
  const auto print_file = [&](const char* key, const char* words) {
    const auto text = proposed[key].get<std::string>();
    if (text.empty()) return;
    print_line("");
    print_line(fmt::format("# {}", words));
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      print_line(text.substr(at, end - at));
    }
  };
  print_file("job", "A first job: add model and output (docs/job.md).");
  print_file("schema", "Its schema.yaml:");
}

void print(const ordered_json& about) {
  print_line(about["path"].get<std::string>());
  if (about.contains("model")) print_model(about["model"]);
  if (about.contains("tokenizer")) print_tokenizer(about["tokenizer"]);
  if (about.contains("corpus")) {
    print_corpus(about["corpus"]);
    print_proposal(about["corpus"]["proposed"]);
  }
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      app.add_subcommand("inspect", "Describe a model, tokenizer or corpus, and propose a job for it");
  command
      ->add_option("PATH", options->path,
                   "A GGUF file, model folder, tokenizer file, corpus (JSON lines, CSV, Parquet)")
      ->required();
  command->add_flag("--json", options->json, "Print one JSON object instead");
  command->callback([options] {
    const ordered_json about = inspect(options->path);
    options->json ? print_json(about) : print(about);
  });
}

}  // namespace sheaf
