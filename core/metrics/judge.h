#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

/// What the judge of LLM-F1 (Hyper-Parallel Decoding, appendix E) is asked: which of five each value is.
/// `attributes`: names with their descriptions, which may be empty. `extracted`: names with their values;
/// nothing: null.
std::string judge_prompt(const std::vector<std::pair<std::string, std::string>>& attributes,
                         std::string_view product,
                         const std::vector<std::pair<std::string, std::optional<std::string>>>& extracted);

/// The judgements in a judge's reply: the JSON object in its last <result> tags. Throws BadText
/// if there is none, or a word is not correct, correct null, incorrect, missing or hallucination.
std::map<std::string, std::string> read_judgements(std::string_view reply);

}  // namespace sheaf
