#include <algorithm>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/spelling.h"
#include "io/base/mapped_file.h"
#include "io/files/job_file.h"

namespace sheaf {
namespace {

constexpr size_t kMostBytes = 128 << 20;  // of all categories, attributes that they share counted each time
constexpr std::pair<const char*, ValueType> kTypes[] = {
    {"text", ValueType::text},       {"span", ValueType::span},        {"number", ValueType::number},
    {"integer", ValueType::integer}, {"enum", ValueType::enumeration}, {"boolean", ValueType::boolean},
    {"date", ValueType::date},       {"pattern", ValueType::pattern},  {"list", ValueType::list},
    {"object", ValueType::object}};

ValueType read_type(YamlMap& map) {
  std::string word = "text";
  std::vector<std::string> words;
  for (const auto& [name, type] : kTypes) words.emplace_back(name);
  map.choice("type", word, words);
  return std::ranges::find(kTypes, word, [](const auto& each) { return each.first; })->second;
}

std::string checked_name(std::string name, const YamlPlace& place, std::string_view what) {
  if (name.find_first_not_of(" \t\r\n") == std::string::npos)
    refuse("{}: the {} has no name", place.text(), what);
  if (name.size() > 200) refuse("{}: the name of the {} is longer than 200 bytes", place.text(), what);
  return name;
}

void read_options(const YamlPtr& node, Attribute& attribute, const YamlMap& map) {
  const bool is_enum = attribute.type == ValueType::enumeration;
  if (!node) {
    if (attribute.type == ValueType::boolean) attribute.options = {"true", "false"};
    if (is_enum) refuse("{}: enum \"{}\" needs options: a list of its values", map.where(), attribute.name);
    return;
  }
  if (!is_enum)
    refuse("{}: attribute \"{}\" has options but is not an enum; set type: enum or remove them",
           map.where("options"), attribute.name);
  if (node->kind != YamlNode::Kind::list || node->items.empty())
    refuse("{}: the options of \"{}\" must be a list of at least one value, not {}", node->place.text(),
           attribute.name,
           node->items.empty() && node->kind == YamlNode::Kind::list ? "an empty one" : node->describe());
  std::unordered_set<std::string> seen;
  for (const YamlPtr& item : node->items) {
    const std::string option = yaml_scalar(*item, fmt::format("an option of \"{}\"", attribute.name));
    const size_t first = option.find_first_not_of(" \t");
    if (first == std::string::npos)
      refuse("{}: an option of \"{}\" is empty", item->place.text(), attribute.name);
    if (!seen.insert(option.substr(first, option.find_last_not_of(" \t") - first + 1)).second)
      refuse("{}: option \"{}\" of \"{}\" appears twice; remove one", item->place.text(),
             shorten_text(option, 60), attribute.name);
    attribute.options.push_back(option);
  }
}

void read_pattern(YamlMap& map, Attribute& attribute) {
  std::string pattern;
  map.text("pattern", pattern);
  const bool wanted = attribute.type == ValueType::pattern;
  if (pattern.empty() == wanted)
    refuse("{}: attribute \"{}\" has {}", map.where("pattern"), attribute.name,
           wanted ? "the type pattern; add the key pattern, a regular expression"
                  : "a pattern, but another type; set type: pattern or remove it");
  if (!wanted) return;
  try {
    attribute.pattern = std::make_shared<const Pattern>(pattern);
  } catch (const Error& error) {
    refuse("{}: attribute \"{}\": {}", map.where("pattern"), attribute.name, error.what());
  }
}

void read_locale(YamlMap& map, Attribute& attribute) {
  std::string name;
  map.text("locale", name);
  if (name.empty()) return;
  const auto locale = find_locale(name);
  if (!locale)
    refuse("{}: attribute \"{}\": the locale \"{}\" is not known; give {}", map.where("locale"),
           attribute.name, shorten_text(name, 60), known_locales());
  if (attribute.type != ValueType::number && attribute.type != ValueType::integer &&
      attribute.type != ValueType::date)
    refuse("{}: attribute \"{}\" has a locale but is neither a number nor a date; remove the locale",
           map.where("locale"), attribute.name);
  attribute.locale = *locale;
}

struct Shared {
  std::vector<std::string> names;
  std::unordered_map<std::string, Attribute> attributes;
};

Attribute read_attribute(const YamlPtr& node, const std::string& name, const Shared& shared, int32_t depth);

/// `depth`: of the attribute, 1 for one of a category.
Attribute listed_attribute(const YamlPtr& item, const Shared& shared, int32_t depth) {
  if (item->kind == YamlNode::Kind::map) return read_attribute(item, {}, shared, depth);
  const std::string name = yaml_scalar(*item, "an attribute");
  const auto found = shared.attributes.find(name);
  if (found != shared.attributes.end()) return found->second;
  const std::string near = nearest_spelling(name, shared.names);
  refuse("{}: attribute \"{}\" is not defined under attributes{}", item->place.text(), shorten_text(name, 60),
         near.empty()
             ? fmt::format("; define it there or write {{name: {}, type: text}}", shorten_text(name, 60))
             : fmt::format("; did you mean \"{}\"?", near));
}

/// The attributes of an object, or of the entries of a list of objects.
void read_fields(YamlMap& map, Attribute& attribute, const Shared& shared, int32_t depth) {
  const YamlPtr fields = map.node("attributes");
  if (fields && attribute.type == ValueType::list) attribute.type = ValueType::entries;
  const bool list = attribute.type == ValueType::entries;
  std::string anchor;
  map.text("anchor", anchor);
  map.integer("max_entries", attribute.max_entries, {1, kEntriesLimit});
  for (const char* key : {"anchor", "max_entries"})
    if (map.has(key) && !list)
      refuse("{}: {} belongs to a list of objects; give \"{}\" type: list and attributes, or remove it",
             map.where(key), key, attribute.name);
  if (!attribute.nested()) {
    if (fields)
      refuse("{}: \"{}\" has attributes of its own; set type: object or type: list, or remove them",
             fields->place.text(), attribute.name);
    return;
  }
  if (!fields || fields->kind != YamlNode::Kind::list)
    refuse("{}: the object \"{}\" needs attributes: a list of its attributes",
           fields ? fields->place.text() : map.where(), attribute.name);
  if (depth >= kDeepest)
    refuse("{}: \"{}\" is nested deeper than {} levels; make its attributes those of the one around it",
           map.where(), attribute.name, kDeepest);
  size_t count = 0;  // shared attributes can have many fields
  for (size_t i = 0; i < fields->items.size() && count <= kMostFields; ++i) {
    attribute.fields.push_back(listed_attribute(fields->items[i], shared, depth + 1));
    count += 1 + count_fields(attribute.fields.back());
  }
  std::string trouble = fields_trouble(attribute);
  if (!trouble.empty()) refuse("{}: {}", fields->place.text(), trouble);
  if (list) trouble = set_anchor(attribute, anchor);
  if (!trouble.empty()) refuse("{}: {}", map.where("anchor"), trouble);
}

/// Reads what defines an attribute; its name is a key of the map, or already known (`name` not empty).
Attribute read_attribute(const YamlPtr& node, const std::string& name, const Shared& shared, int32_t depth) {
  YamlMap map(node, name.empty() ? "attribute" : name);
  Attribute attribute;
  attribute.name = name;
  if (name.empty()) {
    if (const YamlPtr given = map.node("name"))
      attribute.name = checked_name(yaml_scalar(*given, "name"), given->place, "attribute");
    map.require("name");
  }
  map.text("description", attribute.description);
  attribute.type = read_type(map);
  map.text("unit", attribute.unit);
  read_locale(map, attribute);
  const YamlPtr options = map.node("options");
  read_pattern(map, attribute);
  read_fields(map, attribute, shared, depth);
  map.finish();
  if (!attribute.unit.empty() && attribute.type != ValueType::number && attribute.type != ValueType::integer)
    refuse("{}: attribute \"{}\" has a unit but is not a number; set type: number or remove the unit",
           map.where("unit"), attribute.name);
  read_options(options, attribute, map);
  return attribute;
}

/// A shared attribute may name those above it.
Shared read_shared(const YamlPtr& node) {
  Shared shared;
  if (!node) return shared;
  YamlMap check(node, "attributes");
  for (const YamlNode::Entry& entry : node->entries) {
    const std::string name = checked_name(entry.key, entry.place, "attribute");
    shared.attributes.emplace(name, read_attribute(entry.value, name, shared, 1));
    shared.names.push_back(name);
  }
  return shared;
}

size_t bytes_of(const Attribute& attribute) {
  size_t bytes = sizeof attribute + attribute.description.size();
  for (const std::string& option : attribute.options) bytes += sizeof(std::string) + option.size();
  for (const Attribute& field : attribute.fields) bytes += bytes_of(field);
  return bytes;
}

/// Takes what the category takes up off `room`.
Category read_category(const YamlNode::Entry& entry, const Shared& shared, size_t& room) {
  Category category;
  category.name = checked_name(entry.key, entry.place, "category");
  const YamlNode& list = *entry.value;
  if (list.kind == YamlNode::Kind::null || (list.kind == YamlNode::Kind::list && list.items.empty()))
    refuse("{}: category \"{}\" has no attributes; add one or remove the category", entry.place.text(),
           category.name);
  if (list.kind != YamlNode::Kind::list)
    refuse("{}: category \"{}\" must be a list of attributes, not {}", list.place.text(), category.name,
           list.describe());
  std::unordered_set<std::string> seen;
  for (const YamlPtr& item : list.items) {
    Attribute attribute = listed_attribute(item, shared, 1);
    if (!seen.insert(attribute.name).second)
      refuse("{}: attribute \"{}\" appears twice; remove one", item->place.text(), attribute.name);
    if (bytes_of(attribute) > room)
      refuse(
          "{}: the categories so far, with the options of their attributes, take more than {} MB; split the "
          "schema",
          item->place.text(), kMostBytes >> 20);
    room -= bytes_of(attribute);
    category.attributes.push_back(std::move(attribute));
  }
  if (const std::string trouble = path_trouble(category); !trouble.empty())
    refuse("{}: {}", list.place.text(), trouble);
  return category;
}

constexpr size_t kLargestJson = 1 << 20;

/// The category of a JSON Schema; nothing where the file is one of sheaf's own schemas, which may be JSON
/// too.
std::optional<Category> read_json_category(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (file->text().size() > kLargestJson)
    refuse("{}: the schema has more than {} MB", path, kLargestJson >> 20);
  std::string trouble;
  const auto schema = read_json<nlohmann::ordered_json>(file->text(), {.unique_keys = true}, &trouble);
  if (!trouble.empty()) refuse("{}: {}", path, trouble);
  if (!schema.is_object()) refuse("{}: a JSON Schema is an object", path);
  if (schema.contains("categories")) return std::nullopt;
  Category category;
  try {
    category.attributes = read_json_schema(schema, "");
    trouble = path_trouble(category);
    if (!trouble.empty()) refuse("{}", trouble);
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    refuse("{}: {}", path, error.what());
  }
  const auto title = schema.find("title");
  const bool named = title != schema.end() && title->is_string() && !title->empty();
  category.name = named ? title->get<std::string>() : std::filesystem::path(path).stem().string();
  return category;
}

}  // namespace

std::string_view type_word(ValueType type) {
  if (type == ValueType::entries) return "list";
  return std::ranges::find(kTypes, type, [](const auto& each) { return each.second; })->first;
}

Schema read_schema(const std::string& path) {
  if (path.ends_with(".json"))
    if (std::optional<Category> category = read_json_category(path)) return {{std::move(*category)}};
  YamlMap map(read_yaml(path, "a schema file"), "");
  if (map.has("properties") && !map.has("categories"))
    refuse("{}: this looks like a JSON Schema; give it a name that ends in .json", path);
  const YamlPtr attributes = map.node("attributes");
  const YamlPtr categories = map.node("categories");
  map.require("categories");
  map.finish();
  const Shared shared = read_shared(attributes);
  YamlMap check(categories, "categories");
  if (categories->entries.empty())
    refuse("{}: categories is empty; add a category", categories->place.text());
  Schema schema;
  size_t room = kMostBytes;
  for (const YamlNode::Entry& entry : categories->entries)
    schema.categories.push_back(read_category(entry, shared, room));
  return schema;
}

Schema read_schema(const Job& job) {
  Schema schema = read_schema(job.task.schema);
  add_locale(schema, find_locale(job.input.locale).value_or(Locale()));
  return schema;
}

}  // namespace sheaf
