#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

/// A tokenizer.json, its two big tables kept out of the JSON tree.
struct TokenizerJson {
  nlohmann::json rest;                                      ///< everything but model.vocab and model.merges
  std::vector<std::pair<std::string, int64_t>> vocabulary;  ///< model.vocab
  std::vector<std::string> merges;                          ///< model.merges: left, right, left, right, ...
  bool has_vocabulary = false;
};

/// Reads the file in one pass without a tree for the tables (an 11 MB file in 0.2 s, where read_json
/// takes 1 s and 45 MB more).
/// Refuses bad JSON, tables of the wrong types and nesting deeper than any real file has.
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& source);

}  // namespace sheaf
