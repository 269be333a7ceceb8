#include "core/metrics/preference.h"

#include <fmt/format.h>

#include "core/metrics/metrics.h"
#include "core/text/table.h"

namespace sheaf {

double Preference::p_value() const {
  return coin_p_value(first, second);
}

nlohmann::ordered_json preference_json(const Preference& said, const std::string& first,
                                       const std::string& second) {
  return {{"first", first},     {"second", second},        {"judged", said.judged()},
          {"wins", said.first}, {"ties", said.ties()},     {"losses", said.second},
          {"both", said.both},  {"neither", said.neither}, {"p_value", said.p_value()}};
}

std::string preference_text(const Preference& said, const std::string& first, const std::string& second) {
  const auto row = [&](const std::string& name, int64_t count) {
    return TextTable::Row{
        name, std::to_string(count),
        said.judged() == 0
            ? "–"
            : fmt::format("{:.1f} %", 100 * static_cast<double>(count) / static_cast<double>(said.judged()))};
  };
  const TextTable table{{{"verdict", "items", "share"},
                         row(first + " is better", said.first),
                         row(second + " is better", said.second),
                         row("both are right", said.both),
                         row("neither is right", said.neither)},
                        {false, true, true}};
  const double p = said.p_value();
  return table.text() + fmt::format("\n{} wins, {} ties and {} losses of {}: {} (sign test, exact)\n",
                                    said.first, said.ties(), said.second, first,
                                    p < 0.0001 ? "p < 0.0001" : fmt::format("p = {:.4f}", p));
}

}  // namespace sheaf
