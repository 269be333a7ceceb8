#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <limits>
#include <map>

#include "core/estimate/sweep.h"
#include "core/report/report_html.h"
#include "core/report/svg_plot.h"
#include "core/text/format.h"
#include "core/text/printable.h"
#include "core/text/table.h"

namespace sheaf {
namespace {

/// A table's cells, the heads first.
using Cells = std::vector<std::vector<std::string>>;

/// What a column says of an estimate.
struct Column {
  const char* head;
  std::string (*text)(const Estimate& each);
  bool (*wanted)(const Estimate& each);  ///< the column is there where one row wants it
};

bool always(const Estimate&) {
  return true;
}

const Column kColumns[] = {
    {"time", [](const Estimate& each) { return time_text(each.total_seconds()); }, always},
    {"rows/s", [](const Estimate& each) { return number_text(each.rows_per_second()); }, always},
    {"answers/s", [](const Estimate& each) { return number_text(each.answers_per_second()); }, always},
    {"$ per 1,000 rows",
     [](const Estimate& each) { return each.price ? money_text(each.per_thousand(each.usd())) : "–"; },
     always},
    {"$ for all",
     [](const Estimate& each) { return each.price ? money_range(each, each.usd_per_hour()) : "–"; }, always},
    {"$ at the job's price",
     [](const Estimate& each) {
       return each.job_usd_per_hour > 0 ? money_range(each, each.job_usd_per_hour) : "–";
     },
     [](const Estimate& each) { return each.job_usd_per_hour > 0; }},
    {"records too long", [](const Estimate& each) { return number_text(static_cast<double>(each.refused)); },
     [](const Estimate& each) { return each.refused > 0; }},
};

Cells cells(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  Cells table(1 + rows.size());
  for (const SweepAxis& axis : axes) table[0].push_back(axis.key);
  for (size_t r = 0; r < rows.size(); ++r) table[r + 1] = rows[r].values;
  for (const Column& column : kColumns) {
    if (std::ranges::none_of(
            rows, [&](const SweepRow& row) { return row.estimate && column.wanted(*row.estimate); }))
      continue;
    table[0].emplace_back(column.head);
    for (size_t r = 0; r < rows.size(); ++r)
      table[r + 1].push_back(rows[r].estimate ? column.text(*rows[r].estimate) : "–");
  }
  return table;
}

double fastest(const std::vector<SweepRow>& rows) {
  double most = 0;
  for (const SweepRow& row : rows)
    if (row.estimate) most = std::max(most, row.estimate->rows_per_second());
  return most;
}

/// Speed over an axis of numbers, a line for each combination of the others; a bar for each row where there
/// is none.
std::string plot(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  const auto is_numbers = [](const SweepAxis& axis) {
    return axis.values.size() > 1 && axis.key != "hardware" && axis.key != "model" && axis.key != "method";
  };
  const auto found = std::ranges::find_if(axes, is_numbers);
  if (found == axes.end()) {
    std::vector<PlotPart> bars;
    for (const SweepRow& row : rows)
      if (row.estimate)
        bars.push_back({fmt::format("{}", fmt::join(row.values, ", ")), row.estimate->rows_per_second()});
    return fmt::format("<section style=\"max-width: 30rem\"><h2>Rows per second</h2>{}</section>\n",
                       bars_plot("rows per second", bars));
  }
  const auto along = static_cast<size_t>(found - axes.begin());
  const SweepAxis& axis = *found;
  std::vector<PlotLine> lines;
  for (const SweepRow& row : rows) {
    std::string name;
    for (size_t i = 0; i < axes.size(); ++i)
      if (i != along) name += (name.empty() ? "" : ", ") + row.values[i];
    auto line = std::ranges::find(lines, name, &PlotLine::name);
    if (line == lines.end())
      line = lines.insert(
          line, {name, std::vector<double>(axis.values.size(), std::numeric_limits<double>::quiet_NaN())});
    const auto place =
        static_cast<size_t>(std::ranges::find(axis.values, row.values[along]) - axis.values.begin());
    if (row.estimate) line->values[place] = row.estimate->rows_per_second();
  }
  const std::string title = "Rows per second by " + axis.key;
  return fmt::format("<section style=\"max-width: 40rem\"><h2>{}</h2>{}</section>\n", escaped(title),
                     lines_plot(title, axis.values, lines));
}

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

std::string sweep_text(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows) {
  TextTable table{cells(axes, rows), std::vector<bool>(axes.size(), false)};
  table.right.resize(table.rows[0].size(), true);
  table.rows[0].emplace_back("speed");
  const double most = fastest(rows);
  for (size_t r = 0; r < rows.size(); ++r) {
    const SweepRow& row = rows[r];
    std::string speed;
    if (row.estimate)
      speed.assign(
          static_cast<size_t>(std::max(1.0, std::round(20 * row.estimate->rows_per_second() / most))), '#');
    if (!row.mark.empty()) speed += " <- " + row.mark;
    table.rows[r + 1].push_back(speed + row.problem);
  }
  return table.text();
}

std::string sweep_html(const EstimateHead& head, const std::vector<SweepAxis>& axes,
                       const std::vector<SweepRow>& rows, const std::vector<std::string>& notes) {
  const Cells table = cells(axes, rows);
  std::string body = head.html(rows);
  body += "<section><div class=\"scroll\"><table>\n";
  for (size_t r = 0; r < table.size(); ++r) {
    body += "<tr>";
    const char* cell = r == 0 ? "th" : "td";
    for (size_t i = 0; i < table[r].size(); ++i)
      body += fmt::format("<{}{}>{}</{}>", cell, i < axes.size() ? "" : " class=\"n\"", escaped(table[r][i]),
                          cell);
    if (r == 0) {
      body += "<th></th>";
    } else {
      body += "<td class=\"words note\">" + escaped(rows[r - 1].mark + rows[r - 1].problem) + "</td>";
    }
    body += "</tr>\n";
  }
  body += "</table></div></section>\n" + plot(axes, rows);
  for (const std::string& note : notes) body += "<p class=\"soft\">" + escaped(note) + "</p>\n";
  return html_page("sheaf estimate", body);
}

namespace {

/// "$1.86 for AWS g6e.xlarge".
std::string short_price(const Price& price, int32_t devices) {
  const Instance& instance = *price.instance;
  const int32_t rented = price.instances * instance.devices;
  return fmt::format("${:.2f} for {}{}{}", price.rented_usd_per_hour, instance.name,
                     price.instances > 1 ? fmt::format(" × {}", price.instances) : "",
                     price.share()      ? fmt::format(", only all {} devices together", instance.devices)
                     : rented > devices ? fmt::format(" with {} devices", rented)
                                        : "");
}

}  // namespace

std::vector<std::string> sweep_notes(std::vector<std::string> notes, const std::vector<SweepRow>& rows,
                                     double job_usd_per_hour) {
  std::map<std::string, std::vector<std::string>> said;  // names by what is said of them
  const auto add = [&](const std::string& text, const std::string& name) {
    std::vector<std::string>& names = said[text];
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  std::vector<std::string> prices;
  double sampling = 0;
  for (const SweepRow& row : rows) {
    if (!row.estimate) continue;
    const Hardware& hardware = *row.asked.hardware;
    add(fmt::format("{}, {}", band_text(row.estimate->device_error), error_text(hardware, row.asked.config)),
        hardware.name);
    if (row.estimate->price) {
      std::string price = hardware.name + " " + short_price(*row.estimate->price, row.asked.cost.devices);
      if (std::ranges::find(prices, price) == prices.end()) prices.push_back(std::move(price));
    }
    sampling = std::max(sampling, row.estimate->sampling_error);
  }
  if (!prices.empty()) notes.push_back(fmt::format("rented by the hour: {}", fmt::join(prices, "; ")));
  for (const auto& [text, names] : said) notes.push_back(fmt::format("{}: {}", fmt::join(names, ", "), text));
  if (sampling > 0)
    notes.push_back(fmt::format("the sample adds an error of at most {}", band_text(sampling)));
  if (job_usd_per_hour > 0 && rows[0].asked.cost.usd_per_hour == 0)
    notes.push_back(fmt::format(
        "the job's own price, ${:.2f} an hour, is left out; set cost.hardware to the device it is for",
        job_usd_per_hour));
  return notes;
}

nlohmann::ordered_json sweep_json(const std::vector<SweepRow>& rows, const std::vector<std::string>& notes) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const SweepRow& row : rows) {
    nlohmann::ordered_json json;
    if (row.estimate) {
      json = estimate_json(row.asked, *row.estimate);
    } else {
      json = case_json(row.asked, row.asked.engine.tokens_per_step);
      json.update({{"devices", row.asked.cost.devices}, {"problem", row.problem}});
    }
    if (!row.mark.empty()) json["mark"] = row.mark;
    all.push_back(std::move(json));
  }
  return {{"cases", all}, {"notes", notes}};
}

}  // namespace sheaf
