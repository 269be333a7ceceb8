#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/eval/eval_file.h"

namespace sheaf {
namespace {

constexpr Range<double> kNotNegative{0, std::numeric_limits<double>::max()};

void read_figure(YamlMap& map, const char* key, std::optional<double>& target, EvalDigits& digits) {
  double value = 0;
  map.number(key, value, kNotNegative);
  if (!map.has(key)) return;
  target = value;
  const std::string& written = map.node(key)->text;
  const size_t point = written.find('.');
  if (written.find_first_of("eE") == std::string::npos)
    digits[key] = point == std::string::npos ? 0 : static_cast<int>(written.size() - point) - 1;
}

}  // namespace

void read_paper(YamlMap map, Eval& eval) {
  map.text("table", eval.paper);
  const YamlPtr rows = map.node("rows"), scales = map.node("scale");
  for (const char* key : {"table", "rows"}) map.require(key);
  map.finish();
  std::map<std::string, double> scale;
  if (scales) {
    YamlMap by_dataset(scales, map.path("scale"));
    for (const Eval::Dataset& dataset : eval.datasets)
      if (by_dataset.has(dataset.name))
        by_dataset.number(dataset.name, scale[dataset.name], kNotNegative);
      else
        by_dataset.node(dataset.name);
    by_dataset.finish();
  }
  if (rows->kind != YamlNode::Kind::list)
    refuse("{}: paper.rows must be a list, not {}", rows->place.text(), rows->describe());
  for (const YamlPtr& node : rows->items) {
    YamlMap row(node, "paper.rows");
    Eval::PaperRow figures;
    row.text("model", figures.model);
    row.text("dataset", figures.dataset);
    row.text("method", figures.method);
    for (const EvalFigure& each : eval_figures())
      read_figure(row, each.name, figures.figures.*each.figure, figures.digits);
    for (const char* key : {"model", "dataset", "method"}) row.require(key);
    row.finish();
    const auto check = [&](const char* key, const std::string& name, const std::vector<std::string>& known) {
      check_known(fmt::format("{}: {} \"{}\" is not in this evaluation", row.where(key), row.path(key),
                              shorten_text(name, 60)),
                  name, known);
    };
    check("model", figures.model, names_of(eval.models, &Eval::Model::name));
    check("dataset", figures.dataset, names_of(eval.datasets, &Eval::Dataset::name));
    check("method", figures.method, names_of(eval.methods, &Eval::Method::label));
    for (const Eval::PaperRow& other : eval.paper_rows)
      if (other.model == figures.model && other.dataset == figures.dataset && other.method == figures.method)
        refuse("{}: the paper's figures for {}, {}, {} appear twice; keep one", row.where(), figures.model,
               figures.dataset, figures.method);
    if (const auto found = scale.find(figures.dataset); found != scale.end() && figures.figures.quality) {
      *figures.figures.quality *= found->second;
      const int moved = static_cast<int>(std::lround(std::log10(found->second)));
      if (const auto digits = figures.digits.find("quality"); digits != figures.digits.end())
        digits->second = std::max(0, digits->second - moved);
    }
    eval.paper_rows.push_back(std::move(figures));
  }
}

}  // namespace sheaf
