#include "core/report/report_html.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/report/report_fields.h"
#include "core/report/report_style.h"
#include "core/report/svg_plot.h"
#include "core/text/format.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownPoints = 75;
constexpr size_t kShownCategories = 100;
constexpr double kMuchRepeated = 0.5;  // a share of the values that one value should not have

double number(const ordered_json& object, const char* key) {
  return object.at(key).get<double>();
}

std::string text(const ordered_json& object, const char* key) {
  return object.at(key).get<std::string>();
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.{}f} %", 100 * part / whole, part == whole || part == 0 ? 0 : 1) : "-";
}

std::string tile(const std::string& value, const std::string& what, bool bad = false) {
  return fmt::format("<div class=\"tile{}\"><b>{}</b><span>{}</span></div>\n", bad ? " bad" : "",
                     escaped(value), escaped(what));
}

std::string section(const char* title, const std::string& body, const char* kind = "") {
  return fmt::format("<section class=\"{}\"><h2>{}</h2>\n{}</section>\n", kind, escaped(title), body);
}

std::string figure(const std::string& plot, const std::string& caption) {
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", plot, escaped(caption));
}

std::string soft(const std::string& what) {
  return "<p class=\"soft\">" + escaped(what) + "</p>\n";
}

/// A stacked bar and the table that explains its colours.
std::string parts_html(const std::string& title, const std::vector<PlotPart>& parts, double whole,
                       bool seconds) {
  std::string out = "<figure>" + stacked_bar(title, parts, whole) + "</figure>\n<table>";
  for (size_t i = 0; i < parts.size(); ++i)
    out += fmt::format(
        "<tr><td><span class=\"key c{}\"></span>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        i % 8, escaped(parts[i].name), seconds ? time_text(parts[i].value) : number_text(parts[i].value),
        percent(parts[i].value, whole));
  return out + "</table>\n";
}

/// A series as rates a second, in at most kShownPoints points, fewer where the steps are few: rows are
/// completed in bursts, and a rate over one step says little.
std::vector<double> rates(const ordered_json& throughput, const char* key) {
  const auto counts = throughput.at(key).get<std::vector<double>>();
  const double width = number(throughput, "point_seconds"), end = number(throughput, "seconds");
  double steps = 0;
  for (const ordered_json& count : throughput.at("steps")) steps += count.get<double>();
  const size_t shown = std::clamp(static_cast<size_t>(steps / 4), size_t{8}, kShownPoints);
  const size_t merged = std::max<size_t>(1, (counts.size() + shown - 1) / shown);
  std::vector<double> out;
  for (size_t i = 0; i < counts.size(); i += merged) {
    double sum = 0;
    for (size_t j = i; j < std::min(i + merged, counts.size()); ++j) sum += counts[j];
    const double from = static_cast<double>(i) * width, to = from + static_cast<double>(merged) * width;
    // The last point may be cut short; a sliver of one says nothing about a rate.
    const double length = std::min(to, end) - from;
    if (length < 0.5 * (to - from) && !out.empty()) break;
    out.push_back(length > 0 ? sum / length : 0);
  }
  return out;
}

std::string tokens_html(const ordered_json& report) {
  const ordered_json& tokens = report.at("tokens");
  const double alone = number(tokens, "one_prompt_per_question"), computed = number(tokens, "computed");
  const double saved = number(tokens, "saved");
  std::vector<PlotPart> parts = {{"prompt tokens computed", number(tokens, "prefill")},
                                 {"answer tokens computed", number(tokens, "decode")}};
  std::string out = parts_html("tokens computed, compared with one prompt per question", parts,
                               std::max(alone, computed), false);
  out += fmt::format("<p>{} tokens were computed; one prompt per question would need {}: ",
                     number_text(computed), number_text(alone));
  out += saved >= 0 ? fmt::format("<b>{}</b> saved by sharing ({}, {:.1f}×).</p>\n", number_text(saved),
                                  percent(saved, alone), computed > 0 ? alone / computed : 0)
                    : fmt::format("<b>{}</b> more, because every value computes an extra token.</p>\n",
                                  number_text(-saved));
  if (report.contains("search")) {
    const ordered_json& search = report.at("search");
    out += fmt::format("<p>The search for {} spans decoded {} tokens.</p>\n",
                       number_text(number(search, "answers")), number_text(number(search, "tokens")));
  }
  if (tokens.contains("proposed"))
    out +=
        fmt::format("<p>Of the answer tokens, {} were guessed{}; {} of them ({}) were right.</p>\n",
                    number_text(number(tokens, "proposed")), report.contains("draft") ? " by the draft" : "",
                    number_text(number(tokens, "accepted")),
                    percent(number(tokens, "accepted"), number(tokens, "proposed")));
  if (report.contains("kv_store")) {
    const ordered_json& store = report.at("kv_store");
    out += fmt::format(
        "<p>The keys and values of {} tokens came from the store; those of {} went into it.</p>\n",
        number_text(number(store, "read_tokens")), number_text(number(store, "kept_tokens")));
  }
  return out +
         soft(fmt::format("Keys and values took at most {} MB.", number_text(number(report, "kv_peak_mb"))));
}

std::string histogram_html(const ordered_json& histogram, const std::string& title, const std::string& unit) {
  if (number(histogram, "count") == 0) return soft("Nothing was counted.");
  return figure(
      column_plot(title, histogram.at("bins").get<std::vector<double>>(), number(histogram, "bin_width")),
      fmt::format("{}: {} on average, at most {}", unit, number_text(number(histogram, "mean")),
                  number_text(number(histogram, "largest"))));
}

std::string experts_html(const ordered_json& report) {
  const ordered_json& experts = report.at("experts");
  return histogram_html(report.at("per_step").at("expert_tokens"), "experts by tokens in a step",
                        "tokens of an expert in a step") +
         soft(fmt::format(
             "Of the {} experts of a layer, the least used got {} tokens in a step and the busiest "
             "{:.2f} times the mean; {} got none.",
             number_text(number(experts, "count")), number_text(number(experts, "least_per_step")),
             number(experts, "busiest_over_mean"), percent_text(number(experts, "idle_share"))));
}

/// What to know of an attribute beside how often it was found: a value in every row may be none of them.
std::string attribute_facts(const ordered_json& attribute) {
  const double asked = number(attribute, "asked"), found = number(attribute, "found");
  std::vector<std::string> facts;
  if (asked > found) facts.push_back(number_text(asked - found) + " null");
  if (const double cut = attribute.value("cut", 0.0); cut > 0) facts.push_back(number_text(cut) + " cut");
  if (const double noted = number(attribute, "noted"); noted > 0)
    facts.push_back(number_text(noted) + " noted");
  if (found > 0 && attribute.contains("literal"))
    facts.push_back(percent(number(attribute, "literal"), found) + " literally in the document");
  std::string out = escaped(fmt::format("{}", fmt::join(facts, " · ")));
  const ordered_json common = attribute.value("common", ordered_json::array());
  if (found < 2 || common.empty() || number(common[0], "rows") < 2) return out;
  const double rows = number(common[0], "rows");
  const std::string share =
      escaped(fmt::format("{} of the values are “{}”", percent(rows, found), text(common[0], "value")));
  return out + (out.empty() ? "" : " · ") +
         (rows >= kMuchRepeated * found ? "<b class=\"bad\">" + share + "</b>" : share);
}

std::string values_html(const ordered_json& report) {
  const ordered_json& values = report.at("values");
  std::string out = "<div class=\"columns\">";
  size_t shown = 0;
  for (const ordered_json& category : values) {
    if (shown++ == kShownCategories) break;
    out += fmt::format("<div><h3>{} <span class=\"soft\">{} row{}</span></h3><table>",
                       escaped(text(category, "category")), number_text(number(category, "rows")),
                       number(category, "rows") == 1 ? "" : "s");
    for (const ordered_json& attribute : category.at("attributes")) {
      const double asked = number(attribute, "asked"), found = number(attribute, "found");
      out += fmt::format(
          "<tr><td>{}<br/><span class=\"soft\">{}</span></td><td class=\"bar\">{}</td><td class=\"n\">{}</td>"
          "<td class=\"n\">{}</td></tr>\n",
          escaped(text(attribute, "name")), attribute_facts(attribute), share_bar(found, asked),
          number_text(found), percent(found, asked));
    }
    out += "</table></div>\n";
  }
  out += "</div>\n";
  if (values.size() > kShownCategories)
    out += soft(fmt::format("{} more categories are in report.json.", values.size() - kShownCategories));
  return out + soft(
                   "Found: neither null nor an empty list; found is not right. Noted: the model's text did "
                   "not fit the attribute's type or was cut; the row says how. Cut: it reached "
                   "method.max_value_tokens. `sheaf show` prints rows beside their documents.");
}

std::string sample_html(const ordered_json& sample) {
  std::string out = "<table class=\"sample\">";
  for (const ordered_json& row : sample) {
    out += fmt::format("<tr><td><span class=\"soft\">{}</span><br/>{}</td><td>", escaped(text(row, "id")),
                       escaped(text(row, "text")));
    for (const ordered_json& value : row.at("values")) {
      const bool null = value.at("value").is_null();
      out += fmt::format("<span class=\"soft\">{}:</span> {}", escaped(text(value, "name")),
                         null ? "<span class=\"soft\">null</span>" : escaped(text(value, "value")));
      if (!text(value, "note").empty())
        out += " <span class=\"soft\">(" + escaped(text(value, "note")) + ")</span>";
      out += "<br/>";
    }
    out += "</td></tr>\n";
  }
  return out + "</table>\n" + soft("Chosen at random, the same rows in every run over the corpus.");
}

/// "2026-11-16T22:40:05Z" as "2026-11-16 22:40".
std::string date_text(std::string date) {
  date.resize(std::min<size_t>(date.size(), 16));
  std::ranges::replace(date, 'T', ' ');
  return date;
}

using Settings = std::vector<std::pair<std::string, std::string>>;  // name and value

/// What is empty, zero or false is left out.
void add_settings(const std::string& name, const ordered_json& value, Settings& out) {
  if (value.is_object()) {
    for (const auto& [key, each] : value.items())
      add_settings(name.empty() ? key : fmt::format("{}.{}", name, key), each, out);
    return;
  }
  const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
  if (value.empty() || shown.empty() || value == 0 || value == false) return;
  out.emplace_back(name, shown);
}

/// Rows of a table that is folded away.
std::string folded_html(const char* summary, const std::string& rows) {
  return fmt::format(
      "<details><summary>{}</summary><div class=\"columns\"><table>{}</table></div></details>\n", summary,
      rows);
}

/// What the job changed, and folded away what is as by default.
std::string settings_html(const ordered_json& report) {
  Settings all;
  add_settings("", report.at("settings"), all);
  const ordered_json changed = report.value("changed_settings", ordered_json());  // not in earlier reports
  std::string own, usual;
  for (const auto& [name, value] : all)
    (changed.is_null() || std::find(changed.begin(), changed.end(), name) != changed.end() ? own : usual) +=
        fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), escaped(value));
  return "<div class=\"columns\"><table>" + own + "</table></div>\n" +
         (usual.empty() ? "" : folded_html("settings at their defaults", usual));
}

/// Every figure by its name in report.json, folded away.
std::string figures_html(const ordered_json& report) {
  std::string rows;
  for (const ReportField& field : report_fields()) {
    const auto value = field.path.empty() ? std::nullopt : field.value(report);
    if (!value) continue;
    std::string name(field.path.substr(1));
    std::ranges::replace(name, '/', '.');
    rows += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td></tr>\n", name,
                        (field.show ? field.show : number_text)(*value));
  }
  return folded_html("every figure of report.json", rows);
}

std::string questions_html(const ordered_json& questions) {
  const double asked = number(questions, "asked"), answered = number(questions, "answered");
  return parts_html("answers", {{"answered", answered}, {"null", asked - answered}}, asked, false) +
         soft(fmt::format("{} answers have a note in their row.", number_text(number(questions, "noted"))));
}

std::string rejects_html(const ordered_json& report) {
  const double rejects = number(report, "rejects");
  if (rejects == 0) return "<p>No record was rejected.</p>\n";
  std::string out = "<table>";
  for (const ordered_json& reason : report.at("reject_reasons")) {
    const std::string kind = text(reason, "kind"), example = text(reason, "example");
    const double rows = number(reason, "records");
    const bool alone = rows == 1 && !example.empty();
    out += "<tr><td>" + escaped(alone ? example : kind);
    if (!alone && !example.empty() && example != kind)
      out += "<br/><span class=\"soft\">for example: " + escaped(example) + "</span>";
    out += "</td><td class=\"bar\">" + share_bar(rows, rejects) + "</td><td class=\"n\">" +
           number_text(rows) + "</td></tr>\n";
  }
  return out + "</table>\n" + soft("rejects.jsonl says in which file and in which row they are.");
}

std::string cost_html(const ordered_json& report) {
  const ordered_json& cost = report.at("cost");
  if (number(cost, "usd_per_hour") == 0)
    return "<p>The job has no price; set <code>cost.usd_per_hour</code> and <code>cost.devices</code> in "
           "it.</p>\n";
  return fmt::format(
      "<table><tr><td>per 1,000 rows</td><td class=\"n\">${:.4f}</td></tr>\n"
      "<tr><td>this run</td><td class=\"n\">${:.4f}</td></tr>\n"
      "<tr><td>price per hour and device</td><td class=\"n\">${:.2f}</td></tr>\n"
      "<tr><td>devices</td><td class=\"n\">{}</td></tr>\n"
      "<tr><td>time, including opening the model</td><td class=\"n\">{}</td></tr></table>\n",
      number(cost, "usd_per_1000_rows"), number(cost, "usd"), number(cost, "usd_per_hour"),
      number_text(number(cost, "devices")), time_text(number(report.at("seconds"), "total")));
}

std::string endings_text(const ordered_json& endings) {
  std::string out = "Answers ended by";
  const char* comma = " ";
  for (const auto& [name, count] : endings.items()) {
    out += fmt::format("{}{} {}", comma, name, number_text(count.get<double>()));
    comma = ", ";
  }
  return out + ". Those that ended by length were cut.";
}

std::string tiles_html(const ordered_json& report) {
  const double rejects = number(report, "rejects");
  std::string out =
      "<div class=\"tiles\">\n" + tile(number_text(number(report, "rows")), "rows done") +
      tile(number_text(rejects), "records rejected", rejects > 0) +
      tile(number_text(number(report, "rows_per_second")), "rows a second") +
      tile(time_text(number(report.at("seconds"), "total")), "from start to last row") +
      tile(fmt::format("{:.1f} %", 100 * number(report.at("stall"), "share")), "of decoding time stalled");
  if (const double reused = report.value("reused", 0.0); reused > 0)
    out += tile(number_text(reused), "answers reused");
  if (number(report.at("cost"), "usd_per_hour") > 0)
    out += tile(fmt::format("${:.4f}", number(report.at("cost"), "usd_per_1000_rows")), "per 1,000 rows");
  return out + "</div>\n";
}

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body><main>\n{}</main></body></html>\n",
      escaped(title), kReportStyle, body);
}

std::string stages_html(const ordered_json& report) {
  const auto stages = [&](std::initializer_list<const char*> names) {
    std::vector<PlotPart> parts;
    for (const char* stage : names) parts.push_back({stage, number(report.at("seconds"), stage)});
    return parts;
  };
  const double total = number(report.at("seconds"), "total");
  const ordered_json& stall = report.at("stall");
  std::string out = parts_html("seconds by stage", stages({"decode", "open", "other"}), total, true) +
                    "<h3>In parallel with decoding</h3>\n" +
                    parts_html("seconds of other threads", stages({"read", "plan", "write"}), total, true);
  out += fmt::format("<p>The device had no step to run for <b>{}</b>, {:.1f} % of the decode loop.</p>\n",
                     time_text(number(stall, "idle_seconds")), 100 * number(stall, "share"));
  if (const auto predicted = report.value("predicted", ordered_json()); !predicted.is_null())
    out += fmt::format("<p>Decoding took <b>{}</b>; the device's profile predicts {} for these steps.</p>\n",
                       time_text(number(predicted, "measured_seconds")),
                       time_text(number(predicted, "decode_seconds")));
  if (report.contains("engines")) {
    out +=
        "<h3>By device</h3>\n<table><tr><th>device</th><th>answers</th><th>tokens</th><th>decoding</th>"
        "<th>idle</th></tr>\n";
    for (const ordered_json& engine : report.at("engines"))
      out += fmt::format(
          "<tr><td>{}{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
          "class=\"n\">{}</td></tr>\n",
          escaped(engine.at("name").get<std::string>()),
          engine.contains("failed") ? ", <b>failed</b>: " + escaped(engine.at("failed").get<std::string>())
                                    : "",
          number_text(number(engine, "answers")), number_text(number(engine, "tokens")),
          time_text(number(engine, "decode_seconds")), time_text(number(engine, "idle_seconds")));
    out += "</table>\n";
  }
  std::vector<PlotPart> kinds;
  double on_device = 0;
  for (const auto& [kind, seconds] : report.at("device_seconds").items()) {
    kinds.push_back({kind, seconds.get<double>()});
    on_device += kinds.back().value;
  }
  if (!kinds.empty())
    out +=
        "<h3>On the device</h3>\n" + parts_html("device seconds by kind of kernel", kinds, on_device, true);
  return out;
}

void RateAxes::include(const ordered_json& report) {
  const ordered_json& throughput = report.at("throughput");
  seconds = std::max(seconds, number(throughput, "seconds"));
  for (const double rate : rates(throughput, "rows")) rows = std::max(rows, rate);
  for (const double rate : rates(throughput, "tokens")) tokens = std::max(tokens, rate);
}

std::string throughput_html(const ordered_json& report, const RateAxes& axes) {
  const ordered_json& throughput = report.at("throughput");
  const double end = number(throughput, "seconds");
  if (throughput.at("steps").empty()) return soft("No step was run.");
  return figure(
             line_plot("rows per second over time", rates(throughput, "rows"), end, axes.seconds, axes.rows),
             "rows per second") +
         figure(line_plot("tokens per second over time", rates(throughput, "tokens"), end, axes.seconds,
                          axes.tokens),
                "tokens computed per second");
}

std::string report_html(const ordered_json& report) {
  const ordered_json& per_step = report.at("per_step");
  std::string body = "<h1>" + escaped(text(report, "job")) + "</h1>\n" +
                     soft(fmt::format("{} · {} · {}", text(report, "model"), text(report, "method"),
                                      text(report, "backend")));
  if (report.contains("settings"))
    body += soft(fmt::format("{} UTC · sheaf {} · {}", date_text(text(report, "date")), text(report, "sheaf"),
                             text(report.at("corpus"), "path")));
  if (number(report, "sessions") > 1)
    body += "<p>The run was resumed: " + number_text(number(report, "sessions")) +
            " sessions or shards are counted here.</p>\n";
  if (number(report, "rows_uncounted") + number(report, "rejects_uncounted") > 0)
    body += "<p>Answers, tokens, seconds and values of " + number_text(number(report, "rows_uncounted")) +
            " rows and " + number_text(number(report, "rejects_uncounted")) +
            " rejects are missing here: their session was killed before it saved its counts.</p>\n";
  body += tiles_html(report) + "<div class=\"cards\">\n";
  RateAxes axes;
  axes.include(report);
  body += section("Throughput", throughput_html(report, axes));
  body += section("Where the time went", stages_html(report));
  body += section("Tokens computed and saved", tokens_html(report));
  body += section("Cost", cost_html(report));
  body += section(
      "Steps", histogram_html(per_step.at("tokens"), "steps by tokens computed", "tokens computed per step"));
  body +=
      section("Answers decoded together", histogram_html(per_step.at("slots"), "steps by number of answers",
                                                         "answers that got a token in a step"));
  if (counts_experts(report)) body += section("Experts", experts_html(report));
  body += section("Lengths of values",
                  histogram_html(report.at("value_tokens"), "values by length", "tokens per value") +
                      soft(endings_text(report.at("endings"))));
  if (number(report.at("questions"), "asked") > 0)
    body += section("Answers", questions_html(report.at("questions")));
  body += section("Rejects", rejects_html(report));
  body += "</div>\n";
  if (!report.at("values").empty()) body += section("Values found", values_html(report), "long");
  if (const ordered_json sample = report.value("sample", ordered_json::array()); !sample.empty())
    body += section("A sample of rows with their text", sample_html(sample), "long");
  body += section("Figures", figures_html(report), "long");
  if (report.contains("settings")) body += section("Settings", settings_html(report), "long");
  return html_page("sheaf: " + text(report, "job"), body);
}

}  // namespace sheaf
