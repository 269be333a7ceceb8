#include "io/base/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/mistake_list.h"
#include "core/text/spelling.h"
#include "io/base/paths.h"

namespace sheaf {
namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A plain scalar is a number when all of it reads as one; "inf" and "nan" are words.
std::optional<double> as_number(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted) return std::nullopt;
  const auto value = parse_number<double>(node.text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

template <class Integer>
std::optional<Integer> as_integer(const YamlNode& node) {
  return as_number(node) ? parse_number<Integer>(node.text) : std::nullopt;
}

std::optional<bool> as_boolean(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted) return std::nullopt;
  if (node.text == "true" || node.text == "True" || node.text == "TRUE") return true;
  if (node.text == "false" || node.text == "False" || node.text == "FALSE") return false;
  return std::nullopt;
}

/// The value of a node that is `wanted`.
template <class Value>
Value need(const YamlNode& node, std::string_view name, std::optional<Value> value, std::string_view wanted) {
  if (!value) refuse("{}: {} must be {}, not {}", node.place.text(), name, wanted, node.describe());
  return *value;
}

template <class Number>
void check_range(const YamlNode& node, std::string_view name, Number value, Range<Number> range) {
  if (value >= range.least && value <= range.most) return;
  if (value < range.least)
    refuse("{}: {} must be at least {}, not {}", node.place.text(), name, range.least, value);
  refuse("{}: {} must be at most {}, not {}", node.place.text(), name, range.most, value);
}

}  // namespace

std::string YamlPlace::text() const {
  if (!source) return "?";
  return line > 0 ? fmt::format("{}:{}", *source, line) : *source;
}

bool YamlNode::is_text() const {
  return kind == Kind::scalar && !as_number(*this) && !as_boolean(*this);
}

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::scalar:
      break;
  }
  if (as_number(*this)) return "the number " + shorten_text(text, 40);
  if (as_boolean(*this)) return text;
  return fmt::format("\"{}\"", shorten_text(text, 60));
}

std::string yaml_scalar(const YamlNode& node, std::string_view name) {
  if (node.kind != YamlNode::Kind::scalar)
    refuse("{}: {} must be text, not {}", node.place.text(), name, node.describe());
  return node.text;
}

std::string yaml_text(const YamlNode& node, std::string_view name) {
  if (as_number(node) || as_boolean(node))
    refuse("{}: {} must be text, not {}; put it in quotes if it is text", node.place.text(), name,
           node.describe());
  return yaml_scalar(node, name);
}

std::string yaml_path(const YamlNode& node, std::string_view name) {
  const std::string written = yaml_text(node, name);
  const std::string folder = node.place.line > 0 ? folder_of_file(*node.place.source) : std::string();
  return resolve_path(written, folder, fmt::format("{}: {}", node.place.text(), name));
}

YamlPtr option_text(const std::string& source, const std::string& text) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::scalar;
  node->quoted = true;
  node->place.source = std::make_shared<const std::string>(source);
  node->text = text;
  return node;
}

YamlMap::YamlMap(YamlPtr node, std::string name) : node_(std::move(node)), name_(std::move(name)) {
  if (node_->kind != YamlNode::Kind::map && node_->kind != YamlNode::Kind::null)
    refuse("{}: {} must be a map of keys and values, not {}", where(), name_.empty() ? "the file" : name_,
           node_->describe());
}

const YamlNode::Entry* YamlMap::find(std::string_view key) const {
  for (const YamlNode::Entry& entry : node_->entries)
    if (entry.key == key) return &entry;
  for (const auto& [now, old] : old_)
    if (now == key) return find(old);
  return nullptr;
}

void YamlMap::accept_old(std::string_view key, std::string_view old) {
  const YamlNode::Entry *now = find(key), *before = find(old);
  known_.emplace_back(key);
  known_.emplace_back(old);
  if (now && before)
    refuse("{}: {} is the old name of {}, which is also given; remove one", before->place.text(), path(old),
           path(key));
  old_.emplace_back(key, old);
}

bool YamlMap::has(std::string_view key) const {
  const YamlNode::Entry* entry = find(key);
  return entry && entry->value->kind != YamlNode::Kind::null;
}

bool YamlMap::is_null(std::string_view key) const {
  const YamlNode::Entry* entry = find(key);
  return entry && entry->value->kind == YamlNode::Kind::null;
}

const YamlNode* YamlMap::take(std::string_view key) {
  known_.emplace_back(key);
  return has(key) ? find(key)->value.get() : nullptr;
}

YamlPtr YamlMap::node(std::string_view key) {
  return take(key) ? find(key)->value : nullptr;
}

YamlMap YamlMap::map(std::string_view key) {
  if (YamlPtr found = node(key)) return YamlMap(std::move(found), path(key));
  auto empty = std::make_shared<YamlNode>();
  const YamlNode::Entry* entry = find(key);
  empty->place = entry ? entry->place : node_->place;
  return YamlMap(std::move(empty), path(key));
}

YamlMap YamlMap::map_or(std::string_view key, std::string_view shorthand) {
  const YamlPtr given = node(key);
  if (!given || given->kind != YamlNode::Kind::scalar) return map(key);
  auto made = std::make_shared<YamlNode>();
  made->kind = YamlNode::Kind::map;
  made->place = given->place;
  made->entries.push_back({std::string(shorthand), find(key)->place, given});
  YamlMap short_form(std::move(made), path(key));
  short_form.shorthand_ = shorthand;
  return short_form;
}

std::string YamlMap::where(std::string_view key) const {
  const YamlNode::Entry* entry = find(key);
  return (entry ? entry->place : node_->place).text();
}

std::string YamlMap::path(std::string_view key) const {
  if (!shorthand_.empty() && key == shorthand_) return name_;
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

void YamlMap::text(std::string_view key, std::string& target) {
  if (const YamlNode* value = take(key)) target = yaml_text(*value, path(key));
}

void YamlMap::file_path(std::string_view key, std::string& target) {
  if (const YamlNode* value = take(key)) target = yaml_path(*value, path(key));
}

void YamlMap::choice(std::string_view key, std::string& target, const std::vector<std::string>& allowed) {
  const YamlNode* value = take(key);
  if (!value) return;
  std::string word = yaml_text(*value, path(key));
  if (std::find(allowed.begin(), allowed.end(), word) == allowed.end())
    refuse("{}: {} cannot be \"{}\"{}", value->place.text(), path(key), shorten_text(word, 60),
           suggest_spelling(word, allowed));
  target = std::move(word);
}

void YamlMap::text_list(std::string_view key, std::vector<std::string>& target) {
  const YamlNode* value = take(key);
  if (!value) return;
  target.clear();
  if (value->kind != YamlNode::Kind::list) {
    target.push_back(yaml_text(*value, path(key)));
    return;
  }
  if (value->items.empty()) refuse("{}: {} is an empty list", value->place.text(), path(key));
  for (const YamlPtr& item : value->items) target.push_back(yaml_text(*item, path(key)));
}

void YamlMap::boolean(std::string_view key, bool& target) {
  if (const YamlNode* value = take(key))
    target = need(*value, path(key), as_boolean(*value), "true or false");
}

void YamlMap::integer(std::string_view key, int64_t& target, Range<int64_t> range) {
  const YamlNode* value = take(key);
  if (!value) return;
  const int64_t parsed = need(*value, path(key), as_integer<int64_t>(*value), "a whole number");
  check_range(*value, path(key), parsed, range);
  target = parsed;
}

void YamlMap::integer(std::string_view key, int32_t& target, Range<int64_t> range) {
  int64_t wide = target;
  range.most = std::min<int64_t>(range.most, std::numeric_limits<int32_t>::max());
  integer(key, wide, range);
  target = static_cast<int32_t>(wide);
}

void YamlMap::integer(std::string_view key, uint64_t& target) {
  if (const YamlNode* value = take(key))
    target = need(*value, path(key), as_integer<uint64_t>(*value),
                  fmt::format("a whole number from 0 to {}", std::numeric_limits<uint64_t>::max()));
}

void YamlMap::number(std::string_view key, double& target, Range<double> range) {
  const YamlNode* value = take(key);
  if (!value) return;
  const double parsed = need(*value, path(key), as_number(*value), "a number");
  check_range(*value, path(key), parsed, range);
  target = parsed;
}

void YamlMap::number(std::string_view key, float& target, Range<double> range) {
  double wide = target;
  number(key, wide, range);
  target = static_cast<float>(wide);
}

void YamlMap::finish() const {
  MistakeList found;
  std::vector<std::string> meant;
  for (const YamlNode::Entry& entry : node_->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    meant.push_back(nearest_spelling(entry.key, known_));
    found.add(fmt::format("{}: unknown key \"{}\"{}", entry.place.text(), shorten_text(entry.key, 60),
                          suggest_spelling(entry.key, known_)));
  }
  for (const std::string& key : required_)
    // A misspelt key is not missing too.
    if (!has(key) && std::find(meant.begin(), meant.end(), key) == meant.end())
      found.add(fmt::format("{}: the key \"{}\" {}", where(key), path(key),
                            find(key) ? "is empty; give it a value" : "is missing; add it"));
  found.finish();
}

}  // namespace sheaf
