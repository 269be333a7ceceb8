#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// Text as it stands in HTML and XML, inside an element or a quoted attribute.
std::string escaped(std::string_view text);

// Plots as inline SVG elements, coloured by the classes that the page's style defines (.c0, .c1, ...). All
// are drawn 360 wide, a phone's width, and grow with what they stand in.

struct PlotPart {
  std::string name;
  double value = 0;
};

/// A line with the area under it, over the seconds from 0 to `end`. The axes go to `x_end` seconds, in one
/// unit, and to `y_end`, so that several plots can be compared.
std::string line_plot(const std::string& title, const std::vector<double>& values, double end, double x_end,
                      double y_end);
/// Columns of equal width; column i starts at i · `bin_width`.
std::string column_plot(const std::string& title, const std::vector<double>& counts, double bin_width);
struct PlotLine {
  std::string name;
  std::vector<double> values;  ///< one a place
};
/// A line for each, over places of equal distance, with their names below; what is not finite is left out.
std::string lines_plot(const std::string& title, const std::vector<std::string>& places,
                       const std::vector<PlotLine>& lines);
/// A bar for each part from one zero on, with its name before and its value behind it.
std::string bars_plot(const std::string& title, const std::vector<PlotPart>& parts);
/// One bar cut into parts, coloured in their order.
std::string stacked_bar(const std::string& title, const std::vector<PlotPart>& parts, double whole);
/// A small bar of one part of a whole.
std::string share_bar(double part, double whole);

}  // namespace sheaf
