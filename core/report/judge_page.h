#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/task/record.h"

namespace sheaf {

/// What a page for a person who judges is made of.
struct JudgePage {
  std::string title;
  std::string_view body, script, style;
  std::string_view script_sha256, style_sha256;  ///< base64; the content security policy allows nothing else
};

/// A page that needs nothing but itself. Texts of `data` are never markup: they stand in a block of JSON, and
/// the script shows them as text.
std::string judge_page_html(const JudgePage& page, const nlohmann::ordered_json& data);

/// A value as JSON in a text, because a script's numbers would lose digits.
std::string json_text(const nlohmann::ordered_json& value);

/// {id, category, columns: [[name, text]]}.
nlohmann::ordered_json record_json(const Record& record);

}  // namespace sheaf
