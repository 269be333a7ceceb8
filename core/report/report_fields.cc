#include "core/report/report_fields.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/text/format.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace report_table {
namespace {

using Json = nlohmann::ordered_json;
using Kind = ReportField::Kind;
using Adds = ReportField::Adds;
using Better = ReportField::Better;
using Figure = std::optional<double>;

double at(const Json& report, const char* pointer) {
  return report.at(Json::json_pointer(pointer)).get<double>();
}

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

double ratio(const Json& report, const char* a, const char* b) {
  return ratio(at(report, a), at(report, b));
}

/// A text that is known when the program is compiled.
template <size_t Size>
struct Path {
  char text[Size];
  // NOLINTNEXTLINE(google-explicit-constructor): a literal becomes a template's argument by conversion only
  constexpr Path(const char (&path)[Size]) { std::copy_n(path, Size, text); }
};

template <Path At>
Figure figure_at(const Json& report) {
  return at(report, At.text);
}

template <Path A, Path B>
Figure of_two(const Json& report) {
  return ratio(report, A.text, B.text);
}

/// Engines work side by side: seconds are those of one, on average.
double of_one(const Report& run, double seconds) {
  return seconds / std::max<double>(1, static_cast<double>(run.engines.size()));
}

double decode_seconds(const Report& run) {
  return of_one(run, run.engine.step_seconds + run.engine.draft_seconds);
}

/// What the reused answers would have cost at this run's own price of an answer.
Figure usd_saved(const Json& report) {
  const double reused = report.value("reused", 0.0);
  return reused > 0 ? Figure(ratio(report, "/cost/usd", "/answers") * reused) : std::nullopt;
}

Figure predicted_ratio(const Json& report) {
  if (report.value("predicted", Json()).is_null()) return std::nullopt;
  return ratio(report, "/predicted/decode_seconds", "/predicted/measured_seconds");
}

/// Of all attributes or questions asked for, those that were found.
Figure found_share(const Json& report) {
  double asked = at(report, "/questions/asked"), found = at(report, "/questions/answered");
  for (const Json& category : report.at("values"))
    for (const Json& attribute : category.at("attributes")) {
      asked += attribute.at("asked").get<double>();
      found += attribute.at("found").get<double>();
    }
  return ratio(found, asked);
}

std::string dollars_text(double usd) {
  return fmt::format("${:.4f}", usd);
}

using Fields = std::vector<ReportField>;
using OfRun = Json (*)(const Report&);
using Made = Figure (*)(const Json&);

ReportField text(std::string_view path, OfRun of_run, std::string_view title = {}, Adds adds = Adds::last) {
  return {.path = path, .kind = Kind::text, .adds = adds, .of_run = of_run, .title = title};
}

/// Only some runs, or later versions of sheaf, have it; surely those that have `with`.
ReportField later(ReportField field, std::string_view with = {}) {
  field.always = false;
  field.with = with;
  return field;
}

ReportField count(std::string_view path, OfRun of_run, std::string_view title = {},
                  Better better = Better::neither) {
  return {.path = path, .of_run = of_run, .title = title, .better = better};
}

ReportField seconds(std::string_view path, OfRun of_run, std::string_view title = {},
                    Better better = Better::neither) {
  return {.path = path,
          .kind = Kind::number,
          .of_run = of_run,
          .title = title,
          .show = time_text,
          .better = better};
}

ReportField number(std::string_view path, Adds adds, OfRun of_run, std::string_view title = {},
                   std::string (*show)(double) = nullptr) {
  return {.path = path, .kind = Kind::number, .adds = adds, .of_run = of_run, .title = title, .show = show};
}

ReportField rate(std::string_view path, Made made, std::string_view title = {},
                 std::string (*show)(double) = nullptr, Better better = Better::neither) {
  return {.path = path,
          .kind = Kind::number,
          .adds = Adds::derived,
          .made = made,
          .title = title,
          .show = show,
          .better = better};
}

using R = Report;
using E = EngineStats;
using P = PipelineStats;

template <auto... Path>
Json of(const R& run) {
  return (run.*....*Path);
}

template <auto Member>
Json clean(const R& run) {
  return valid_utf8(run.*Member);
}

template <auto Member>
Json engine(const R& run) {
  return run.engine.*Member;
}

/// Seconds of one engine.
template <auto Member>
Json each(const R& run) {
  return of_one(run, run.engine.*Member);
}

/// Of runs with a draft model.
template <auto Member>
Json drafted(const R& run) {
  return run.engine.has_draft ? Json(+(run.engine.*Member)) : Json();  // whether is 0 or 1
}

/// Of runs with a store of keys and values.
template <auto Member>
Json stored(const R& run) {
  return run.store ? Json((*run.store).*Member) : Json();
}

/// Of runs that propose tokens.
template <auto Member>
Json proposed(const R& run) {
  return run.engine.proposed_tokens > 0 ? Json(run.engine.*Member) : Json();
}

/// Of runs that search for the likeliest spans.
template <auto Member>
Json searched(const R& run) {
  return run.engine.searched_answers > 0 ? Json(run.engine.*Member) : Json();
}

/// Of runs whose backends counted what experts take.
template <auto Member>
Json routed(const R& run) {
  const Routing routing = run.routing();
  return routing.passes > 0 ? Json(routing.*Member) : Json();
}

Json other_seconds(const R& run) {
  return std::max(0.0, run.total_seconds - run.open_seconds - decode_seconds(run));
}

Json kv_peak_mb(const R& run) {
  return static_cast<double>(int64_t{run.engine.peak_pages} * run.page_size * run.kv_bytes_per_token) / 1e6;
}

Json predicted(const R& run) {
  return run.predicted_seconds ? Json(of_one(run, *run.predicted_seconds)) : Json();
}

Json measured(const R& run) {
  return run.predicted_seconds ? Json(of_one(run, run.engine.step_seconds + run.engine.host_seconds))
                               : Json();
}

/// Tokens of an expert of a layer in a step, by what of them is summed under `Path`.
template <Path At>
Figure tokens_of_expert(const Json& report) {
  if (!counts_experts(report)) return std::nullopt;
  return ratio(report, At.text, "/experts/passes");
}

Figure mean_tokens_of_expert(const Json& report) {
  if (!counts_experts(report)) return std::nullopt;
  return ratio(at(report, "/experts/tokens"), at(report, "/experts/passes") * at(report, "/experts/count"));
}

Figure busiest_over_mean(const Json& report) {
  if (!counts_experts(report)) return std::nullopt;
  return ratio(at(report, "/experts/busiest_tokens") * at(report, "/experts/count"),
               at(report, "/experts/tokens"));
}

Figure idle_share(const Json& report) {
  if (!counts_experts(report)) return std::nullopt;
  return ratio(at(report, "/experts/idle"), at(report, "/experts/passes") * at(report, "/experts/count"));
}

Figure rows_per_second(const Json& report) {
  return ratio(static_cast<double>(counted_rows(report)),
               at(report, "/seconds/total") - at(report, "/seconds/open"));
}

Figure usd_per_1000_rows(const Json& report) {
  return ratio(at(report, "/cost/usd"), static_cast<double>(counted_rows(report))) * 1000;
}

Figure stalled(const Json& report) {
  return ratio(at(report, "/stall/idle_seconds"),
               at(report, "/seconds/decode") + at(report, "/stall/host_seconds"));
}

Fields make_fields() {
  using S = KvStoreUse;
  return {
      later(text("/date", of<&R::date>, "date", Adds::first), "/settings"),
      later(text(
                "/sheaf", [](const R&) -> Json { return SHEAF_VERSION; }, "sheaf"),
            "/settings"),
      text("/job", clean<&R::job>, "job"),
      later(text("/corpus/path", clean<&R::corpus>, "corpus"), "/settings"),
      later({.path = "/corpus/limit", .adds = Adds::last, .of_run = of<&R::limit>}, "/settings"),
      later(text("/corpus/sha256", of<&R::corpus_sha256>), "/settings"),
      text("/model", clean<&R::model>, "model"),
      text("/method", of<&R::method>, "method"),
      text("/backend", clean<&R::backend>, "backend"),
      later(text("/chat", clean<&R::chat>)),

      count("/sessions", [](const R&) -> Json { return 1; }),
      count("/rows_uncounted", [](const R&) -> Json { return 0; }),
      count("/rejects_uncounted", [](const R&) -> Json { return 0; }),
      count("/rows", of<&R::pipeline, &P::records>, "rows"),
      count("/rejects", of<&R::pipeline, &P::rejects>, "rejects"),
      count("/answers", of<&R::pipeline, &P::answers>),
      later(count("/reused", of<&R::pipeline, &P::reused>)),
      later(count("/trusted", of<&R::pipeline, &P::trusted>)),
      rate("/rows_per_second", rows_per_second, "rows a second", nullptr, Better::more),

      seconds("/seconds/total", of<&R::total_seconds>, "total time", Better::less),
      seconds("/seconds/open", of<&R::open_seconds>, "  open"),
      seconds("/seconds/read", of<&R::pipeline, &P::read_seconds>, "  read"),
      seconds("/seconds/plan", of<&R::pipeline, &P::plan_seconds>, "  plan"),
      seconds(
          "/seconds/decode", [](const R& run) -> Json { return decode_seconds(run); }, "  decode"),
      seconds("/seconds/write", of<&R::pipeline, &P::emit_seconds>, "  write"),
      seconds("/seconds/other", other_seconds),
      later(seconds("/seconds/draft", drafted<&E::draft_seconds>), "/draft"),
      rate("/stall/share", stalled, "stalled", percent_text, Better::less),
      seconds("/stall/idle_seconds", each<&E::idle_seconds>),
      seconds("/stall/host_seconds", each<&E::host_seconds>),
      seconds("/stall/waited_seconds", each<&E::waited_seconds>),

      count(
          "/tokens/computed", [](const R& run) -> Json { return run.engine.tokens(); }, "tokens computed",
          Better::less),
      count("/tokens/prefill", engine<&E::prefill_tokens>),
      count("/tokens/decode", engine<&E::decode_tokens>),
      count("/tokens/one_prompt_per_question", engine<&E::alone_tokens>),
      {.path = "/tokens/saved",
       .kind = Kind::whole,
       .of_run = [](const R& run) -> Json { return run.engine.alone_tokens - run.engine.tokens(); },
       .title = "  saved by sharing"},
      count("/tokens/answers", engine<&E::answer_tokens>),
      later(count("/tokens/proposed", proposed<&E::proposed_tokens>), "/tokens/accepted"),
      later(count("/tokens/accepted", proposed<&E::accepted_tokens>), "/tokens/proposed"),
      later(count("/search/answers", searched<&E::searched_answers>), "/search"),
      later(count("/search/tokens", searched<&E::searched_tokens>), "/search"),
      later(count("/search/cut", searched<&E::cut_searches>), "/search"),
      later(count("/tokens/draft", drafted<&E::draft_tokens>), "/draft"),
      later(count("/draft/prompts_too_long", drafted<&E::undrafted_prompts>), "/draft"),
      later(count("/draft/out_of_memory", drafted<&E::draft_failed>), "/draft"),
      later(count("/draft/not_finite", drafted<&E::draft_unsound>)),

      count("/steps", engine<&E::steps>, "steps"),
      count("/split_steps", engine<&E::split_steps>),
      rate("/tokens_per_step", of_two<"/tokens/computed", "/steps">, "  tokens per step"),
      rate("/answer_tokens_per_step", of_two<"/tokens/answers", "/steps">),
      rate("", figure_at<"/per_step/slots/mean">, "  answers per step"),
      rate("", figure_at<"/value_tokens/mean">, "tokens per value"),
      rate("", found_share, "values found", percent_text),
      rate("", figure_at<"/endings/length">, "cut answers"),
      number("/kv_peak_mb", Adds::most, kv_peak_mb, "keys and values, MB"),

      later({.path = "/experts/count", .adds = Adds::first, .of_run = routed<&Routing::experts>}, "/experts"),
      later(count("/experts/passes", routed<&Routing::passes>), "/experts"),
      later(count("/experts/tokens", routed<&Routing::tokens>), "/experts"),
      later(count("/experts/least_tokens", routed<&Routing::least_tokens>), "/experts"),
      later(count("/experts/busiest_tokens", routed<&Routing::busiest_tokens>), "/experts"),
      later(count("/experts/idle", routed<&Routing::idle>), "/experts"),
      later(rate("/experts/mean_per_step", mean_tokens_of_expert, "tokens per expert and step"), "/experts"),
      later(rate("/experts/least_per_step", tokens_of_expert<"/experts/least_tokens">, "  of the least used"),
            "/experts"),
      later(rate("/experts/busiest_over_mean", busiest_over_mean, "  busiest over mean"), "/experts"),
      later(rate("/experts/idle_share", idle_share, "  experts without a token", percent_text), "/experts"),

      later(count("/kv_store/read_tokens",
                  [](const R& run) { return run.store ? Json(run.engine.read_tokens) : Json(); }),
            "/kv_store"),
      later(count("/kv_store/kept_tokens", stored<&S::kept_tokens>), "/kv_store"),
      later(count("/kv_store/dearer_tokens", stored<&S::dearer_tokens>), "/kv_store"),
      later(count("/kv_store/unkept_tokens", stored<&S::unkept_tokens>), "/kv_store"),
      later(count("/kv_store/disk_bytes", stored<&S::disk_bytes>), "/kv_store"),
      later(count("/kv_store/kept_bytes", stored<&S::kept_bytes>), "/kv_store"),
      later(count("/kv_store/damaged_files", stored<&S::damaged>), "/kv_store"),
      later(seconds("/kv_store/disk_seconds", stored<&S::disk_seconds>), "/kv_store"),

      number("/cost/usd_per_hour", Adds::last, of<&R::usd_per_hour>),
      {.path = "/cost/devices", .adds = Adds::last, .of_run = of<&R::devices>},
      number(
          "/cost/usd", Adds::sum,
          [](const R& run) -> Json { return run.usd_per_hour * run.devices * run.total_seconds / 3600; },
          "cost", dollars_text),
      rate("/cost/usd_per_1000_rows", usd_per_1000_rows, "  per 1,000 rows", dollars_text, Better::less),
      later(rate("/cost/usd_saved", usd_saved)),

      later(seconds("/predicted/decode_seconds", predicted), "/predicted"),
      later(seconds("/predicted/measured_seconds", measured), "/predicted"),
      later(rate("/predicted/ratio", predicted_ratio), "/predicted"),
      later(number("/predicted/error", Adds::most,
                   [](const R& run) { return run.predicted_seconds ? Json(run.predicted_error) : Json(); })),
  };
}

using Members = std::vector<ReportMember>;

ReportMember list_of(std::string key, Members entries, bool is_always = true) {
  return {std::move(key), Kind::list, Adds::sum, is_always, std::move(entries)};
}

ReportLists make_lists() {
  const Members common{{"value", Kind::text}, {"rows"}};
  const Members attributes{{"name", Kind::text},
                           {"asked"},
                           {"found"},
                           {"noted"},
                           {"cut", Kind::count, Adds::sum, false},
                           {"literal", Kind::count, Adds::sum, false},
                           list_of("common", common, false)};
  const Members sample_values{{"name", Kind::text}, {"note", Kind::text}, {"value", Kind::text_or_null}};
  return {
      .engines = list_of("engines",
                         {{"name", Kind::text},
                          {"answers"},
                          {"tokens"},
                          {"steps"},
                          {"decode_seconds", Kind::number},
                          {"idle_seconds", Kind::number},
                          {"failed", Kind::text, Adds::last, false}},
                         false),
      .values = list_of("values", {{"category", Kind::text}, {"rows"}, list_of("attributes", attributes)}),
      .sample = list_of("sample",
                        {{"id", Kind::text},
                         {"category", Kind::text},
                         {"text", Kind::text},
                         list_of("values", sample_values)},
                        false),
      .reject_reasons = list_of("reject_reasons", {{"kind", Kind::text},
                                                   {"example", Kind::text, Adds::first},
                                                   {"place", Kind::text, Adds::first, false},
                                                   {"records"}}),
  };
}

}  // namespace
}  // namespace report_table

std::optional<double> ReportField::value(const nlohmann::ordered_json& report) const {
  if (path.empty()) return made(report);
  const auto place = pointer();
  if (!report.contains(place) || !report.at(place).is_number()) return std::nullopt;
  return report.at(place).get<double>();
}

std::span<const ReportField> report_fields() {
  static const std::vector<ReportField> fields = report_table::make_fields();
  return fields;
}

const ReportLists& report_lists() {
  static const ReportLists lists = report_table::make_lists();
  return lists;
}

}  // namespace sheaf
