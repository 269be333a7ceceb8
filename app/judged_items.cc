#include <map>

#include "app/metric_items.h"
#include "core/error.h"
#include "core/metrics/judge.h"
#include "io/json_line.h"
#include "io/line_reader.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::string category_of(const json& row) {
  const std::vector<std::string> texts = answer_texts(row.value("category", json()));
  return texts.empty() ? "" : texts[0];
}

}  // namespace

std::vector<MetricItem> read_judged_items(const std::string& path) {
  std::vector<MetricItem> items;
  LineReader lines(path);
  while (const auto line = lines.next()) {
    const std::string place = fmt::format("{}:{}", path, line->number);
    if (!line->damage.empty()) refuse("{}: cannot be read: {}", place, line->damage);
    if (line->text.find_first_not_of(" \t\r") == std::string_view::npos && !line->too_long) continue;
    try {
      const json row = parse_json_line(line->text, [](const std::string&) { return true; });
      std::map<std::string, std::string> judgements;
      if (const json reply = row.value("reply", json()); reply.is_string()) {
        judgements = read_judgements(reply.get_ref<const std::string&>());
      } else if (const json given = row.value("judgements", json()); given.is_object()) {
        judgements = read_judgements("<result>" + given.dump());
      } else {
        throw std::string("has neither \"judgements\" {attribute: word} nor the judge's \"reply\"");
      }
      const std::string id = id_text(row.value("id", json()));
      if (id.empty()) throw std::string("has no \"id\"");
      for (const auto& [attribute, word] : judgements)
        items.push_back(
            {id + "/" + attribute, id, category_of(row), attribute, std::vector<std::string>{word}, {}});
    } catch (const std::string& reason) {
      refuse("{}: {}", place, reason);
    }
  }
  if (items.empty()) refuse("{}: holds no judgements {{\"id\", \"judgements\": {{attribute: word}}}}", path);
  return items;
}

}  // namespace sheaf
