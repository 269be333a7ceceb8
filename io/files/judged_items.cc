#include <map>

#include "core/base/error.h"
#include "core/metrics/judge.h"
#include "io/base/json_file.h"
#include "io/base/line_reader.h"
#include "io/files/metric_items.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::string category_of(const json& row) {
  const std::vector<std::string> texts = answer_texts(row.value("category", json()));
  return texts.empty() ? "" : texts[0];
}

}  // namespace

MetricItems read_judged_items(const std::string& path) {
  MetricItems read;
  LineReader lines(path);
  while (const auto line = lines.next()) {
    const std::string place = fmt::format("{}:{}", path, line->number);
    if (!line->damage.empty()) refuse("{}: the line cannot be read: {}", place, line->damage);
    if (line->text.find_first_not_of(" \t\r") == std::string_view::npos && !line->too_long) continue;
    try {
      const json row = parse_json_line(line->text, [](const std::string&) { return true; });
      const std::string id = id_text(row.value("id", json()));
      if (id.empty()) throw BadText("the line has no \"id\"");
      std::map<std::string, std::string> judgements;
      if (const json reply = row.value("reply", json()); reply.is_string()) {
        try {
          judgements = read_judgements(reply.get_ref<const std::string&>());
        } catch (const BadText&) {
          read.unknown.push_back(id);  // a model's words, not a mistake of the file
        }
      } else if (const json given = row.value("judgements", json()); given.is_object()) {
        judgements = read_judgements("<result>" + given.dump());
      } else {
        throw BadText("the line has neither \"judgements\" {attribute: word} nor the judge's \"reply\"");
      }
      for (const auto& [attribute, word] : judgements)
        read.items.push_back({fmt::format("{}/{}", id, attribute),
                              id,
                              category_of(row),
                              attribute,
                              std::vector<std::string>{word},
                              {}});
    } catch (const BadText& reason) {
      refuse("{}: {}", place, reason.what());
    }
  }
  if (read.items.empty())
    refuse("{}: the file has no judgements {{\"id\", \"judgements\": {{attribute: word}}}}", path);
  return read;
}

}  // namespace sheaf
