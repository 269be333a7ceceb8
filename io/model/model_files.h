#pragma once
#include <memory>
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

}  // namespace sheaf
