#include "core/estimate/estimate_head.h"

#include <fmt/ranges.h>

#include "core/report/svg_plot.h"
#include "core/text/format.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

constexpr int32_t kOldPrices = 6;  // months

std::string tile(const std::string& value, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(value), escaped(what));
}

std::string date_text(const std::chrono::year_month_day& date) {
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

/// A tile for what is cheapest and one for what is fastest, where prices and several choices are known.
std::string choice_tiles(const std::vector<SweepRow>& rows) {
  std::string out;
  for (const SweepRow& row : rows) {
    if (!row.estimate || (row.mark.empty() && rows.size() > 1)) continue;
    const std::string on = fmt::format("{}", fmt::join(row.values, ", "));
    const std::string time = time_text(row.estimate->total_seconds());
    const std::string mark = row.mark.empty() ? "" : row.mark + ": ";
    out += row.estimate->price ? tile(money_range(*row.estimate, row.estimate->usd_per_hour()),
                                      fmt::format("{}{}, {}", mark, on, time))
                               : tile(time, mark + on);
  }
  return out;
}

}  // namespace

std::string EstimateHead::prices_name() const {
  return fmt::format("list prices of {}", hardware->prices_as_of);
}

std::string EstimateHead::prices_text() const {
  const int32_t months = price_months();
  const std::string age =
      months < 1 ? "this month's" : fmt::format("{} month{} old", months, months == 1 ? "" : "s");
  return fmt::format("{}, {}", prices_name(), age);
}

std::string EstimateHead::warning() const {
  if (price_months() <= kOldPrices) return "";
  return fmt::format("the list prices are {} months old; give your own with --set cost.usd_per_hour=PRICE",
                     price_months());
}

std::string EstimateHead::text() const {
  std::string out;
  if (!model.empty()) out += fmt::format("model   {}\n", printable_line(model));
  return out + fmt::format("rows    {}\nprices  {}\n\n", number_text(static_cast<double>(rows)),
                           printable_line(prices_name()));
}

std::string EstimateHead::html(const std::vector<SweepRow>& sweep) const {
  std::string out =
      fmt::format("<h1>What {} would take and cost</h1>\n", job.empty() ? "this work" : escaped(job));
  out += fmt::format("<p class=\"soft\">Estimated on {} by sheaf {} · {}</p>\n", date_text(today),
                     SHEAF_VERSION, escaped(prices_text()));
  if (!warning().empty()) out += "<p><b class=\"bad\">" + escaped("Warning: " + warning()) + "</b></p>\n";
  out += "<div class=\"tiles\">\n" + tile(number_text(static_cast<double>(rows)), "rows");
  if (!model.empty()) out += tile(model.substr(model.rfind('/') + 1), "model");
  return out + choice_tiles(sweep) + "</div>\n";
}

}  // namespace sheaf
