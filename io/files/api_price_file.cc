#include "io/files/api_price_file.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/yaml_reader.h"
#include "io/files/hardware_file.h"

namespace sheaf {
namespace {

constexpr Range<double> kDollars{0, 1e6}, kShare{0, 1};

ApiPrice read_price(const YamlNode::Entry& entry) {
  ApiPrice price;
  price.name = price.title = entry.key;
  YamlMap map(entry.value, entry.key);
  map.text("title", price.title);
  map.number("usd_per_million_input", price.input, kDollars);
  map.number("usd_per_million_output", price.output, kDollars);
  map.number("batch", price.batch, kShare);
  map.text("as_of", price.as_of);
  map.text("source", price.source);
  for (const char* key : {"usd_per_million_input", "usd_per_million_output", "as_of", "source"})
    map.require(key);
  map.finish();
  return price;
}

}  // namespace

std::vector<ApiPrice> read_api_prices(const std::string& path, const std::string& names) {
  YamlMap map(read_yaml(path, "a list of API prices"), "");
  const YamlPtr list = map.node("apis");
  map.require("apis");
  map.finish();
  if (list->kind != YamlNode::Kind::map || list->entries.empty())
    refuse("{}: apis must be a map of models, not {}", list->place.text(), list->describe());
  std::vector<ApiPrice> all;
  std::vector<std::string> known;
  for (const YamlNode::Entry& entry : list->entries) {
    all.push_back(read_price(entry));
    known.push_back(entry.key);
  }
  if (names == "all") return all;
  std::vector<ApiPrice> chosen;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    const auto found = std::ranges::find(all, name, &ApiPrice::name);
    if (found == all.end())
      refuse("--api: {} has no price of \"{}\"{}", path, shorten_text(name, 60),
             suggest_spelling(name, known));
    chosen.push_back(*found);
  }
  if (chosen.empty()) refuse("--api: name a model of {}, or all", path);
  return chosen;
}

std::string find_api_prices() {
  const std::filesystem::path path =
      std::filesystem::path(find_hardware_file()).parent_path() / "api-prices.yaml";
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return path.string();
  refuse("{} is missing; give a list of API prices with --api-file", path.string());
}

}  // namespace sheaf
