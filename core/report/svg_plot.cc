#include "core/report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/text/format.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

constexpr double kWidth = 360, kHeight = 170;
constexpr double kLeft = 46, kRight = 350, kTop = 12, kBottom = 146;

std::string open_svg(const std::string& title, double width, double height) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title>", width, height,
                     escaped(title));
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `value`.
double round_up(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 2.5, 5.0}) {
    if (step * power >= value * (1 - 1e-9)) return step * power;
  }
  return 10 * power;
}

struct Axis {
  double step, end;
};

Axis value_axis(double largest) {
  const double step = round_up(largest / 4);
  return {step, step * std::max(1.0, std::ceil(largest / step - 1e-9))};
}

double y_of(double value, const Axis& axis) {
  return kBottom - value / axis.end * (kBottom - kTop);
}

std::string value_lines(const Axis& axis) {
  std::string out;
  for (int i = 0; i * axis.step <= axis.end * (1 + 1e-9); ++i) {
    const double y = y_of(i * axis.step, axis);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
        kLeft, y, kRight, y, kLeft - 5, y + 3.5, number_text(i * axis.step));
  }
  return out;
}

std::string x_label(double x, const std::string& text, const char* anchor = "middle") {
  return fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>", x,
                     kBottom + 15, anchor, escaped(text));
}

/// Round numbers of one unit.
std::string time_axis(double end, double scale) {
  struct Unit {
    const char* name;
    double seconds, least;  // of the axis
  };
  constexpr Unit kUnits[] = {
      {"days", 86400, 2 * 86400}, {"h", 3600, 2 * 3600}, {"min", 60, 2 * 60}, {"s", 1, 0}};
  const Unit& unit = *std::ranges::find_if(kUnits, [&](const Unit& each) { return end >= each.least; });
  const double step = round_up(end / unit.seconds / 4);
  std::string out;
  for (int i = 0; i * step * unit.seconds <= end * (1 + 1e-9); ++i) {
    const bool last = (i + 1) * step * unit.seconds > end * (1 + 1e-9);
    out += x_label(kLeft + i * step * unit.seconds * scale,
                   number_text(i * step) + (last ? std::string(" ") + unit.name : ""));
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string out;
  for (const char c : text) {
    const auto entity = std::ranges::find(kEntities, c, &std::pair<char, std::string_view>::first);
    if (entity != std::end(kEntities))
      out += entity->second;
    else  // control characters have no place in XML, however they are written
      out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
  }
  return out;
}

std::string line_plot(const std::string& title, const std::vector<double>& values, double end, double x_end,
                      double y_end) {
  const Axis axis = value_axis(y_end);
  std::string out = open_svg(title, kWidth, kHeight) + value_lines(axis);
  const double scale = x_end > 0 ? (kRight - kLeft) / x_end : 0;
  // A point stands for the time from its start to its end, so it is drawn as a step.
  const double width = scale * end / static_cast<double>(std::max<size_t>(values.size(), 1));
  std::string line;
  double x = kLeft;
  for (const double value : values) {
    line += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x, y_of(value, axis), x + width, y_of(value, axis));
    x += width;
  }
  if (!line.empty()) {
    out += fmt::format("<polygon class=\"area\" points=\"{},{} {}{:.1f},{}\"/>", kLeft, kBottom, line, x,
                       kBottom);
    out += fmt::format("<polyline class=\"line\" points=\"{}\"/>", line);
  }
  return out + time_axis(x_end, scale) + "</svg>";
}

std::string column_plot(const std::string& title, const std::vector<double>& counts, double bin_width) {
  const double largest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  Axis axis = value_axis(largest);
  if (axis.step < 10) axis.step = std::ceil(axis.step);  // counts are whole
  axis.end = axis.step * std::max(1.0, std::ceil(largest / axis.step));
  std::string out = open_svg(title, kWidth, kHeight) + value_lines(axis);
  const auto columns = static_cast<double>(std::max<size_t>(counts.size(), 1));
  const double width = (kRight - kLeft) / columns;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!(counts[i] > 0)) continue;
    const double y = std::min(y_of(counts[i], axis), kBottom - 0.8);  // one among a million is still seen
    const double from = static_cast<double>(i) * bin_width;
    out += fmt::format(
        "<rect class=\"c0\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"><title>{}{}: "
        "{}</title></rect>",
        kLeft + static_cast<double>(i) * width + width * 0.06, y, width * 0.88, kBottom - y,
        number_text(from), bin_width > 1 ? "–" + number_text(from + bin_width - 1) : "",
        number_text(counts[i]));
  }
  // Labels under a column's middle where a column is one number, under its left edge where it is several.
  const auto every = static_cast<size_t>(std::ceil(std::max(1.0, round_up(columns / 7))));
  for (size_t i = 0; i < std::max<size_t>(counts.size(), 1); i += every) {
    const auto column = static_cast<double>(i);
    out += x_label(kLeft + (column + (bin_width > 1 ? 0 : 0.5)) * width, number_text(column * bin_width));
  }
  return out + "</svg>";
}

std::string lines_plot(const std::string& title, const std::vector<std::string>& places,
                       const std::vector<PlotLine>& lines) {
  constexpr size_t kColours = 7;
  constexpr double kLegend = 14;  // a line of it
  double largest = 0;
  for (const PlotLine& line : lines)
    for (const double value : line.values)
      if (std::isfinite(value)) largest = std::max(largest, value);
  const Axis axis = value_axis(largest);
  const double height = kHeight + kLegend * static_cast<double>(lines.size());
  std::string out = open_svg(title, kWidth, height) + value_lines(axis);
  const auto steps = static_cast<double>(std::max<size_t>(places.size(), 2) - 1);
  const auto x_of = [&](size_t i) {
    return kLeft + 8 + (kRight - kLeft - 16) * static_cast<double>(i) / steps;
  };
  for (size_t i = 0; i < places.size(); ++i) out += x_label(x_of(i), places[i]);
  for (size_t l = 0; l < lines.size(); ++l) {
    std::string points;
    for (size_t i = 0; i < lines[l].values.size(); ++i) {
      const double value = lines[l].values[i];
      if (!std::isfinite(value)) continue;
      points += fmt::format("{:.1f},{:.1f} ", x_of(i), y_of(value, axis));
      out += fmt::format("<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"/>", l % kColours,
                         x_of(i), y_of(value, axis));
    }
    out += fmt::format("<polyline class=\"line\" style=\"stroke: var(--c{})\" points=\"{}\"/>", l % kColours,
                       points);
    const double y = kHeight + kLegend * static_cast<double>(l);
    out += fmt::format(
        "<rect class=\"c{}\" x=\"{}\" y=\"{:.1f}\" width=\"9\" height=\"9\"/>"
        "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\">{}</text>",
        l % kColours, kLeft, y, kLeft + 14, y + 8, escaped(lines[l].name));
  }
  return out + "</svg>";
}

std::string bars_plot(const std::string& title, const std::vector<PlotPart>& parts) {
  constexpr double kBar = 20, kName = 118, kValue = 52, kLetters = 19;
  const double height = kBar * static_cast<double>(parts.size());
  double largest = 0;
  for (const PlotPart& part : parts) largest = std::max(largest, part.value);
  std::string out = open_svg(title, kWidth, height);
  for (size_t i = 0; i < parts.size(); ++i) {
    const double y = kBar * static_cast<double>(i);
    const double width = largest > 0 ? parts[i].value / largest * (kWidth - kName - kValue) : 0;
    const std::string name = shorten_text(parts[i].name, static_cast<size_t>(kLetters));
    out += fmt::format(
        "<text class=\"tick\" x=\"0\" y=\"{:.1f}\">{}<title>{}</title></text>"
        "<rect class=\"c0\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
        y + 14, escaped(name), escaped(parts[i].name), kName, y + 4, width, kBar - 8, kName + width + 5,
        y + 14, number_text(parts[i].value));
  }
  return out + "</svg>";
}

std::string stacked_bar(const std::string& title, const std::vector<PlotPart>& parts, double whole) {
  constexpr double height = 26;
  std::string out = open_svg(title, kWidth, height);
  out += fmt::format("<rect class=\"track\" x=\"0\" y=\"0\" width=\"{}\" height=\"{}\" rx=\"3\"/>", kWidth,
                     height);
  double x = 0;
  for (size_t i = 0; i < parts.size() && whole > 0; ++i) {
    const double width = std::min(kWidth - x, std::max(0.0, parts[i].value) / whole * kWidth);
    if (width > 0.05)
      out += fmt::format(
          "<rect class=\"c{}\" x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"{}\"><title>{}</title></rect>",
          i % 8, x, width, height, escaped(parts[i].name));
    x += width;
  }
  return out + "</svg>";
}

std::string share_bar(double part, double whole) {
  const double width = whole > 0 ? std::clamp(part / whole, 0.0, 1.0) * 100 : 0;
  return fmt::format(
      "<svg class=\"share\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
      "<rect class=\"track\" width=\"100\" height=\"8\"/><rect class=\"c0\" width=\"{:.2f}\" "
      "height=\"8\"/></svg>",
      width);
}

}  // namespace sheaf
