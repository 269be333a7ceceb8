#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/model/model.h"
#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// Opens a model: a GGUF file, a safetensors file beside its config.json, or a folder with config.json and
/// *.safetensors. `adapter` is a PEFT folder or empty.
Model load_model(const std::string& path, const std::string& adapter = {});

struct LoadedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string chat_template;  ///< the model's own Jinja text, to be looked at only; may be empty
};

/// Opens the tokenizer of a model: a GGUF file (a vocabulary is enough), tokenizer.json, a SentencePiece
/// .model, a tiktoken rank file, or a folder with one of them.
LoadedTokenizer load_tokenizer(const std::string& path);

/// A model in a few fields: family, sizes, tensor types, context, memory.
nlohmann::ordered_json describe_model(const std::string& path);

/// A tokenizer in a few fields: kind, vocabulary, special tokens, chat template.
nlohmann::ordered_json describe_tokenizer(const std::string& path);

}  // namespace sheaf
