#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/tokenizer/read_tokenizer.h"
#include "io/base/foreign_files.h"
#include "io/base/json_file.h"
#include "io/base/mapped_file.h"
#include "io/model/gguf.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostBytes = 64 << 20;  // of a file beside a tokenizer

std::string text_beside(const fs::path& path, const char* name) {
  const fs::path file = path.parent_path() / name;
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  const auto mapped = MappedFile::open(file.string());
  if (mapped->text().size() > kMostBytes)
    refuse("{}: the file has more than {} MB", file.string(), kMostBytes >> 20);
  return std::string(mapped->text());
}

json object_beside(const fs::path& path, const char* name, const std::string& text) {
  const std::string source = (path.parent_path() / name).string();
  json object = parse_json(text, source, 32);
  if (!object.is_object()) refuse("{}: this is not a JSON object", source);
  return object;
}

// The Jinja text beside a tokenizer: chat_template.jinja, or chat_template in tokenizer_config.json (a
// string, or a list of named ones).
std::string chat_template_beside(const fs::path& path, const std::string& config_text) {
  if (std::string text = text_beside(path, "chat_template.jinja"); !text.empty()) return text;
  if (config_text.empty()) return {};
  const json config = object_beside(path, "tokenizer_config.json", config_text);
  if (!config.contains("chat_template")) return {};
  const json& chat = config["chat_template"];
  if (chat.is_string()) return chat.get<std::string>();
  if (!chat.is_array()) return {};
  for (const json& named : chat)
    if (named.is_object() && named.value("name", json()) == "default" &&
        named.value("template", json()).is_string())
      return named["template"].get<std::string>();
  return {};
}

// generation_config.json lists what ends an answer of this model.
void read_end_tokens(const fs::path& path, Tokenizer& tokenizer) {
  const std::string text = text_beside(path, "generation_config.json");
  if (text.empty()) return;
  const json config = object_beside(path, "generation_config.json", text);
  if (!config.contains("eos_token_id")) return;
  const json& ids = config["eos_token_id"];
  for (const json& id : ids.is_array() ? ids : json::array({ids})) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= tokenizer.vocab_size())
      continue;
    const auto token = id.get<TokenId>();
    if (std::ranges::find(tokenizer.end_tokens, token) == tokenizer.end_tokens.end())
      tokenizer.end_tokens.push_back(token);
  }
}

LoadedTokenizer load_file(const fs::path& path) {
  const std::string name = path.string();
  const auto file = MappedFile::open(name);
  const std::string_view text = file->text();
  LoadedTokenizer out;
  if (text.starts_with("GGUF")) {
    const GgufFile gguf = GgufFile::open(name);
    out.tokenizer = read_gguf_tokenizer(gguf);
    out.chat_template = gguf.string("tokenizer.chat_template", "");
    return out;
  }
  const std::string config = text_beside(path, "tokenizer_config.json");
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (text.empty()) refuse("{}: the file is empty", name);
  if (first != std::string_view::npos && text[first] == '{') {
    out.tokenizer = read_tokenizer_json(text, config, name);
  } else if (looks_like_tiktoken(text)) {
    out.tokenizer = read_tiktoken(text, name);
  } else if (looks_like_sentencepiece(text)) {
    out.tokenizer = read_sentencepiece(text, name);
  } else {
    refuse(
        "{}: this is not a supported tokenizer (supported: a GGUF file, tokenizer.json, SentencePiece .model "
        "or "
        "tiktoken rank file)",
        name);
  }
  out.chat_template = chat_template_beside(path, config);
  read_end_tokens(path, *out.tokenizer);
  return out;
}

}  // namespace

LoadedTokenizer load_tokenizer(const std::string& path) {
  std::error_code error;
  const fs::path given(path);
  if (!fs::exists(given, error)) refuse("{}", describe_missing(path));
  if (!fs::is_directory(given, error)) {
    // A weights file has its tokenizer beside it.
    if (given.extension() == ".safetensors")
      return load_tokenizer(given.has_parent_path() ? given.parent_path().string() : ".");
    return load_file(given);
  }
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tekken.json", "tiktoken.model"}) {
    if (fs::is_regular_file(given / name, error)) {
      if (std::string_view(name) == "tekken.json")
        refuse("{}: tekken.json is not supported; get the model's tokenizer.json", (given / name).string());
      return load_file(given / name);
    }
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(given, error))
    if (const auto extension = entry.path().extension();
        extension == ".gguf" || extension == ".model" || extension == ".tiktoken")
      found.push_back(entry.path());
  if (found.size() == 1) return load_file(found[0]);
  if (found.empty())
    refuse(
        "{}: this folder has no tokenizer (tokenizer.json, tokenizer.model, *.gguf, *.model or *.tiktoken)",
        path);
  std::ranges::sort(found);
  refuse("{}: this folder has several tokenizers; name one of them, for example {}", path, found[0].string());
}

}  // namespace sheaf
