#include "io/base/json_line.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/utf8.h"

namespace sheaf {

nlohmann::json parse_json_line(std::string_view line, const std::function<bool(const std::string&)>& keep) {
  if (const size_t good = valid_prefix(line); good < line.size())
    throw BadText(fmt::format("not valid UTF-8 at byte {}", good + 1));
  std::string trouble;
  nlohmann::json row = read_json(line, {.values = 1'000'000, .keep = keep}, &trouble);
  if (!trouble.empty()) throw BadText(trouble);
  if (!row.is_object()) throw BadText("not a JSON object");
  return row;
}

}  // namespace sheaf
