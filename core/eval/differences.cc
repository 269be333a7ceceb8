#include "core/eval/differences.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/report/report_html.h"
#include "core/report/svg_plot.h"
#include "core/text/printable.h"
#include "core/text/utf8.h"
#include "core/text/wrap.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr const char* kCut = "…";

/// "right ✓", "f1 66.7": a share of the whole, or a mark for all or nothing of it.
std::string score_text(const std::string& name, double value) {
  if (value == 1) return name + " ✓";
  if (value == 0) return name + " ✗";
  return fmt::format("{} {:.3g}", name, 100 * value);
}

std::string scores_text(const Difference::Side& side) {
  std::vector<std::string> scores;
  for (const auto& [name, value] : side.scores) scores.push_back(score_text(name, value));
  return fmt::format("{}", fmt::join(scores, ", "));
}

std::string labelled(const std::string& label, const std::string& text, size_t columns) {
  return wrap_beside(label, printable_text(text), 12, columns);
}

std::string references_text(const Difference& difference) {
  if (!difference.references) return "(not known)";
  return difference.references->empty() ? "(none: no answer is right)"
                                        : fmt::format("{}", fmt::join(*difference.references, " | "));
}

std::string side_html(const std::string& method, const Difference::Side& side) {
  std::string scores;
  for (const auto& [name, value] : side.scores)
    scores += fmt::format("{}<span class=\"{}\">{}</span>", scores.empty() ? "" : ", ",
                          value == 1   ? "good"
                          : value == 0 ? "bad"
                                       : "soft",
                          escaped(score_text(name, value)));
  return fmt::format("<div><h3>{}</h3><p>{}</p><p>{}</p></div>", escaped(method), escaped(side.answer),
                     scores);
}

}  // namespace

std::string excerpt(const std::string& text, const std::vector<std::string>& wanted, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t begin = 0;
  for (const std::string& each : wanted) {
    const size_t at = each.empty() ? std::string::npos : text.find(each);
    if (at == std::string::npos) continue;
    const size_t before = bytes > each.size() ? (bytes - each.size()) / 2 : 0;
    begin = std::min(at - std::min(at, before), text.size() - bytes);
    break;
  }
  size_t end = begin + bytes;
  while (begin < text.size() && inside_character(text[begin])) ++begin;
  while (end < text.size() && inside_character(text[end])) --end;
  return (begin > 0 ? kCut : "") + text.substr(begin, end - begin) + (end < text.size() ? kCut : "");
}

std::string differences_text(const DifferencePair& pair, size_t columns) {
  std::string text =
      printable_line(fmt::format("{}, {}: {} and {} differ in {} of {}", pair.model, pair.dataset, pair.first,
                                 pair.second, pair.differing, pair.compared)) +
      "\n";
  for (const Difference& each : pair.shown) {
    text += "\n" + labelled("id", each.id, columns);
    text += labelled("context", each.context, columns);
    text += labelled("question", each.question, columns);
    text += labelled("references", references_text(each), columns);
    const size_t half = columns > 60 ? (columns - 3) / 2 : columns;
    const auto side = [&](const std::string& method, const Difference::Side& of) {
      std::vector<std::string> lines = wrap_lines(printable_line(method + ": " + of.answer), half);
      if (!of.scores.empty()) lines.push_back(scores_text(of));
      return lines;
    };
    std::vector<std::string> left = side(pair.first, each.first), right = side(pair.second, each.second);
    if (half == columns) {
      for (const auto* lines : {&left, &right})
        for (const std::string& line : *lines) text += line + "\n";
      continue;
    }
    left.resize(std::max(left.size(), right.size()));
    right.resize(left.size());
    for (size_t i = 0; i < left.size(); ++i) text += fmt::format("{:<{}} | {}\n", left[i], half, right[i]);
  }
  return text;
}

ordered_json differences_json(const DifferencePair& pair) {
  ordered_json json{{"model", pair.model},           {"dataset", pair.dataset},
                    {"first", pair.first},           {"second", pair.second},
                    {"compared", pair.compared},     {"differing", pair.differing},
                    {"shown", ordered_json::array()}};
  const auto side = [](const Difference::Side& of) {
    ordered_json scores = ordered_json::object();
    for (const auto& [name, value] : of.scores) scores[name] = value;
    return ordered_json{{"answer", of.answer}, {"scores", std::move(scores)}};
  };
  for (const Difference& each : pair.shown)
    json["shown"].push_back(
        {{"id", each.id},
         {"context", each.context},
         {"question", each.question},
         {"references", each.references ? ordered_json(*each.references) : ordered_json()},
         {"first", side(each.first)},
         {"second", side(each.second)}});
  return json;
}

std::string differences_html(const std::string& name, const std::vector<DifferencePair>& pairs) {
  std::string body = "<h1>" + escaped(name) + ": where methods differ</h1>\n";
  for (const DifferencePair& pair : pairs) {
    body += fmt::format("<h2>{}, {}: {} and {}</h2>\n<p>{} of {} answers differ{}.</p>\n",
                        escaped(pair.model), escaped(pair.dataset), escaped(pair.first), escaped(pair.second),
                        pair.differing, pair.compared,
                        static_cast<size_t>(pair.differing) > pair.shown.size()
                            ? fmt::format("; the first {} are shown", pair.shown.size())
                            : "");
    for (const Difference& each : pair.shown) {
      body += fmt::format(
          "<section><h2>{}</h2><p class=\"soft\">{} · {}</p>\n<p>Accepted: {}</p>\n<div "
          "class=\"beside\">{}{}</div>",
          escaped(each.question), escaped(each.id), escaped(each.context), escaped(references_text(each)),
          side_html(pair.first, each.first), side_html(pair.second, each.second));
      body += "</section>\n";
    }
  }
  if (pairs.empty()) body += "<p>There is only one method.</p>\n";
  return html_page(name + ": differences", body);
}

}  // namespace sheaf
