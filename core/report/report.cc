#include "core/report/report.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/report/report_fields.h"
#include "core/text/format.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

/// A line for each engine where there are several.
ordered_json engines_json(const Report& report) {
  ordered_json lines = ordered_json::array();
  for (const EngineUse& use : report.engines) {
    lines.push_back({{"name", valid_utf8(use.name)},
                     {"answers", use.stats.answers},
                     {"tokens", use.stats.tokens()},
                     {"steps", use.stats.steps},
                     {"decode_seconds", use.stats.step_seconds},
                     {"idle_seconds", use.stats.idle_seconds}});
    if (!use.failed.empty()) lines.back()["failed"] = valid_utf8(use.failed);
  }
  return lines;
}

/// "; the draft computed 3133 tokens in 5.4 s"; nothing where there is none.
std::string draft_text(const ordered_json& report) {
  if (!report.contains("draft")) return "";
  const ordered_json& draft = report.at("draft");
  std::string text = fmt::format("; the draft computed {} in {:.1f} s",
                                 counted(report.at("tokens").at("draft").get<int64_t>(), "token"),
                                 report.at("seconds").at("draft").get<double>());
  if (const auto prompts = draft.at("prompts_too_long").get<int64_t>(); prompts > 0)
    text += fmt::format("; {} too long for its context or memory",
                        prompts == 1 ? "1 prompt was" : fmt::format("{} prompts were", prompts));
  if (draft.at("out_of_memory").get<int64_t>() > 0)
    text += "; it ran out of memory and was left out from then on";
  if (draft.value("not_finite", int64_t{0}) > 0)
    text += "; its logits were not finite and it was left out from then on; use another draft";
  return text;
}

constexpr size_t kReasonsListed = 6, kReasonsInLine = 3;
constexpr size_t kLongestReason = 300;  // bytes

std::string share_text(int64_t rejects, int64_t records) {
  return fmt::format("{} of {} ({:.0f} %)", rejects, counted(records, "record"),
                     100 * static_cast<double>(rejects) / static_cast<double>(std::max<int64_t>(1, records)));
}

/// The most common reasons, each with an example: "9 × the line is not a JSON object (items.jsonl:3)".
std::vector<std::string> common_reasons(const ordered_json& reasons, size_t most) {
  std::vector<std::string> texts;
  for (const ordered_json& reason : reasons) {
    if (texts.size() == most) break;
    const std::string kind = reason.value("kind", ""), example = reason.value("example", ""),
                      place = reason.value("place", "");
    const auto records = reason.value("records", int64_t{0});
    std::string text = example.empty() ? kind : example;
    // What the kind leaves out differs from record to record.
    if (records > 1 && text.starts_with(kind)) text.insert(kind.size(), text == kind ? "" : ", the first");
    texts.push_back(fmt::format("{} × {}{}", records, shorten_text(text, kLongestReason),
                                place.empty() ? "" : " (" + place + ")"));
  }
  return texts;
}

}  // namespace

Routing Report::routing() const {
  Routing all;
  for (const EngineUse& use : engines) all += use.routing;
  return all;
}

ordered_json report_json(const Report& r) {
  ordered_json json = {{"version", kReportVersion}};
  for (const ReportField& field : report_fields()) {
    if (field.of_run) {
      if (ordered_json value = field.of_run(r); !value.is_null()) json[field.pointer()] = std::move(value);
    } else if (field.always && !field.path.empty()) {
      json[field.pointer()] = 0;
    }
  }
  if (!r.predicted_seconds) json["predicted"] = nullptr;
  json["settings"] = r.settings;
  json["changed_settings"] = r.changed_settings;
  auto& device = json["device_seconds"] = ordered_json::object();
  for (const EngineUse& use : r.engines)
    for (const auto& [stage, seconds] : use.device_seconds)
      device[stage_name(stage)] = device.value(stage_name(stage), 0.0) + seconds;
  if (r.engines.size() > 1) json["engines"] = engines_json(r);
  r.statistics.add_to(json);
  if (const Routing routing = r.routing(); routing.passes > 0)
    json["per_step"]["expert_tokens"] = routing.expert_tokens.json();
  set_rates(json);
  return json;
}

void set_rates(ordered_json& report) {
  for (const ReportField& field : report_fields())
    if (field.adds == ReportField::Adds::derived && !field.path.empty())
      if (const auto figure = field.made(report)) report[field.pointer()] = *figure;
}

bool has_rows(const ordered_json& report) {
  return report.at("rows").get<int64_t>() > 0;
}

bool counts_experts(const ordered_json& report) {
  return report.contains(ordered_json::json_pointer("/experts/count"));
}

int64_t counted_rows(const ordered_json& report) {
  return std::max<int64_t>(0, report.at("rows").get<int64_t>() - report.at("rows_uncounted").get<int64_t>());
}

std::string report_text(const ordered_json& report) {
  const auto number = [&](const char* path) {
    return report.at(ordered_json::json_pointer(path)).get<double>();
  };
  const auto whole = [&](const char* path) {
    return report.at(ordered_json::json_pointer(path)).get<int64_t>();
  };
  std::string text = fmt::format("{}, {}, {} in {:.1f} s: {:.2f} rows/s\n", counted(whole("/rows"), "row"),
                                 counted(whole("/answers"), "answer"), counted(whole("/rejects"), "reject"),
                                 number("/seconds/total"), number("/rows_per_second"));
  if (const auto reused = report.value("reused", int64_t{0}); reused > 0) {
    const double saved = report.at("cost").value("usd_saved", 0.0);
    text += fmt::format(
        "  reused   {} already known ({:.1f} % of all){}\n", counted(reused, "answer"),
        100 * ratio(static_cast<double>(reused),
                    static_cast<double>(reused + report.value("trusted", int64_t{0}) + whole("/answers"))),
        saved > 0 ? fmt::format("; saved about ${:.4f}", saved) : "");
  }
  if (const auto trusted = report.value("trusted", int64_t{0}); trusted > 0)
    text += fmt::format(
        "  trusted  {} of another model ({:.1f} % of all)\n", counted(trusted, "answer"),
        100 * ratio(static_cast<double>(trusted),
                    static_cast<double>(trusted + report.value("reused", int64_t{0}) + whole("/answers"))));
  if (whole("/sessions") > 1) text += fmt::format("  sessions {}, all counted here\n", whole("/sessions"));
  if (whole("/rows_uncounted") + whole("/rejects_uncounted") > 0)
    text += fmt::format(
        "  missing  answers, tokens and seconds of {} and {}: their session was killed before it saved "
        "its counts\n",
        counted(whole("/rows_uncounted"), "row"), counted(whole("/rejects_uncounted"), "reject"));
  text +=
      fmt::format("  tokens   {} computed ({} prompt, {} decoded); one prompt per question: {} ({:.1f}x)\n",
                  whole("/tokens/computed"), whole("/tokens/prefill"), whole("/tokens/decode"),
                  whole("/tokens/one_prompt_per_question"),
                  ratio(number("/tokens/one_prompt_per_question"), number("/tokens/computed")));
  if (report.contains("kv_store")) {
    const auto more = [&](const char* path, const char* what) {
      return whole(path) > 0 ? fmt::format(", {} {}", whole(path), what) : "";
    };
    text += fmt::format("  store    {} tokens read ({} from disk), {} kept ({}){}{}\n",
                        whole("/kv_store/read_tokens"), size_text(whole("/kv_store/disk_bytes")),
                        whole("/kv_store/kept_tokens"), size_text(whole("/kv_store/kept_bytes")),
                        more("/kv_store/dearer_tokens", "quicker to compute than to read"),
                        more("/kv_store/unkept_tokens", "not kept"));
  }
  if (report.contains("search"))
    text += fmt::format(
        "  search   {} tokens decoded for {} spans{}\n", whole("/search/tokens"), whole("/search/answers"),
        whole("/search/cut") > 0 ? fmt::format("; the limit of method.search_tokens ended {} of the searches",
                                               whole("/search/cut"))
                                 : "");
  if (const ordered_json& tokens = report.at("tokens");
      tokens.contains("proposed") || tokens.contains("draft")) {
    text += tokens.contains("proposed")
                ? fmt::format("  guessed  {} tokens proposed, {} accepted ({:.1f} %)",
                              whole("/tokens/proposed"), whole("/tokens/accepted"),
                              100 * ratio(number("/tokens/accepted"), number("/tokens/proposed")))
                : "  guessed  nothing";
    text += draft_text(report) + "\n";
  }
  text += fmt::format(
      "  steps    {}, {:.1f} tokens computed and {:.1f} answer tokens per step; keys and values at most "
      "{:.0f} "
      "MB\n",
      whole("/steps"), number("/tokens_per_step"), number("/answer_tokens_per_step"), number("/kv_peak_mb"));
  if (counts_experts(report))
    text += fmt::format(
        "  experts  {:.1f} tokens per expert and step, the least used {:.1f}, the busiest {:.2f} times the "
        "mean; "
        "{:.1f} % without a token\n",
        number("/experts/mean_per_step"), number("/experts/least_per_step"),
        number("/experts/busiest_over_mean"), 100 * number("/experts/idle_share"));
  text += fmt::format(
      "  seconds  open {:.2f}, decode {:.2f}; in parallel read {:.2f}, plan {:.2f}, write {:.2f}; stalled "
      "{:.1f} "
      "%\n",
      number("/seconds/open"), number("/seconds/decode"), number("/seconds/read"), number("/seconds/plan"),
      number("/seconds/write"), 100 * number("/stall/share"));
  if (report.contains("engines")) {
    for (const ordered_json& engine : report.at("engines"))
      text += fmt::format(
          "  engine   {}: {}, {} tokens computed in {:.2f} s of {}{}\n", engine.at("name").get<std::string>(),
          counted(engine.at("answers").get<int64_t>(), "answer"), engine.at("tokens").get<int64_t>(),
          engine.at("decode_seconds").get<double>(), counted(engine.at("steps").get<int64_t>(), "step"),
          engine.contains("failed") ? "; FAILED: " + engine.at("failed").get<std::string>() : "");
  }
  if (const auto predicted = report.value("predicted", ordered_json()); !predicted.is_null()) {
    const double error = predicted.value("error", 0.0);
    text += fmt::format("  expected {:.2f} s of decoding ({}) from the device's profile; it took {:.2f} s\n",
                        number("/predicted/decode_seconds"),
                        error < 1 ? fmt::format("±{:.0f} %", 100 * error)
                                  : fmt::format("within a factor of {:.0f}", 1 + error),
                        number("/predicted/measured_seconds"));
  }
  if (number("/cost/usd_per_hour") > 0)
    text += fmt::format("  cost     ${:.4f} per 1,000 rows at ${:.2f} an hour on {} device{}\n",
                        number("/cost/usd_per_1000_rows"), number("/cost/usd_per_hour"),
                        whole("/cost/devices"), whole("/cost/devices") == 1 ? "" : "s");
  return text;
}

std::string rejects_text(int64_t rejects, int64_t records, const ordered_json& reasons,
                         const std::string& where) {
  if (rejects == 0) return {};
  // One line more tells as much as a line that says so.
  const std::vector<std::string> texts =
      common_reasons(reasons, reasons.size() == kReasonsListed + 1 ? reasons.size() : kReasonsListed);
  std::string out = fmt::format("rejects {}; {}\n", share_text(rejects, records), printable_line(where));
  for (const std::string& text : texts) out += "        " + printable_line(text) + "\n";
  if (reasons.size() > texts.size())
    out += fmt::format("        and {} more\n", reasons.size() - texts.size());
  return out;
}

std::string rejects_warning(int64_t rejects, int64_t records) {
  if (rejects == 0 || 2 * rejects < records) return {};
  return fmt::format("{} were rejected; check that the job reads the corpus as it should",
                     share_text(rejects, records));
}

void check_not_lost(const std::string& corpus, int64_t rejects, int64_t records, const ordered_json& reasons,
                    const std::string& where) {
  if (rejects < records) return;
  if (records == 0)
    refuse("{}: the corpus has no records; check input.path, or add --allow-empty if that is right", corpus);
  refuse("{}: {} rejected: {}{}; fix the corpus or the job, or add --allow-empty", corpus,
         records == 1   ? "its only record was"
         : records == 2 ? "both records were"
                        : fmt::format("all {} records were", records),
         fmt::join(common_reasons(reasons, kReasonsInLine), "; "),
         where.empty() ? "" : "; all are in " + where);
}

}  // namespace sheaf
