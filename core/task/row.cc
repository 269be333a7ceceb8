#include "core/task/row.h"

#include <algorithm>
#include <array>
#include <limits>

namespace sheaf {

bool is_row_key(std::string_view name) {
  static constexpr std::array<std::string_view, 20> kKeys = {
      "id",         "category",     "values",     "notes",           "logprobs",      "raw",    "spans",
      "confidence", "null_margins", "answer",     "answers",         "option",        "note",   "finish",
      "logprob",    "parts",        "cut_tokens", "document_tokens", "answer_tokens", "seconds"};
  return std::ranges::find(kKeys, name) != kKeys.end();
}

const char* finish_name(Finish finish) {
  return finish == Finish::length ? "length" : finish == Finish::error ? "error" : "stop";
}

bool is_found(const RowValue& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return !list->empty();
  return !std::holds_alternative<std::nullptr_t>(value);
}

RowValue row_number(const nlohmann::json& number) {
  if (number.is_number_float()) return number.get<double>();
  constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (number.is_number_unsigned() && number.get<uint64_t>() > most) return number.get<uint64_t>();
  return number.get<int64_t>();
}

}  // namespace sheaf
