#include "core/report/judge_page.h"

#include <fmt/format.h>

#include "core/report/svg_plot.h"
#include "core/task/find_text.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// JSON of the same value that no HTML parser takes for the end of its block, and in which no character hides
/// from who looks at the source.
std::string inside_script(const ordered_json& value) {
  std::string out;
  for (const char c : printable_json(json_text(value)))
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  return out;
}

}  // namespace

std::string json_text(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json record_json(const Record& record) {
  ordered_json columns = ordered_json::array();
  for (const ColumnText& column : columns_of(record))
    columns.push_back(ordered_json::array({column.name, column.text}));
  return {{"id", json_text(record.id)}, {"category", record.category}, {"columns", std::move(columns)}};
}

std::string judge_page_html(const JudgePage& page, const ordered_json& data) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; "
      "style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body>\n{}\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>\n</body></html>\n",
      page.script_sha256, page.style_sha256, escaped(printable_line(page.title)), page.style, page.body,
      inside_script(data), page.script);
}

}  // namespace sheaf
