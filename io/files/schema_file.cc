#include <algorithm>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/mistake_list.h"
#include "core/task/value_path.h"
#include "core/text/json_lines.h"
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

/// What other formats call the types.
constexpr std::pair<const char*, const char*> kOtherTypes[] = {
    {"string", "text"},   {"str", "text"},       {"varchar", "text"},  {"float", "number"},
    {"double", "number"}, {"decimal", "number"}, {"int", "integer"},   {"bool", "boolean"},
    {"array", "list"},    {"dict", "object"},    {"map", "object"},    {"struct", "object"},
    {"choice", "enum"},   {"category", "enum"},  {"datetime", "date"}, {"regex", "pattern"}};

ValueType read_type(YamlMap& map) {
  std::string word = "text";
  map.text("type", word);
  const auto* type = std::ranges::find(kTypes, word, [](const auto& each) { return each.first; });
  if (type != std::end(kTypes)) return type->second;
  std::vector<std::string> words, all;
  for (const auto& [name, known] : kTypes) words.emplace_back(name);
  all = words;
  for (const auto& [name, known] : kOtherTypes) all.emplace_back(name);
  const std::string near = nearest_spelling(word, all);
  const auto* other = std::ranges::find(kOtherTypes, near, [](const auto& each) { return each.first; });
  refuse("{}: {} cannot be \"{}\"{}", map.where("type"), map.path("type"), shorten_text(word, 60),
         other == std::end(kOtherTypes) ? suggest_spelling(word, words)
                                        : fmt::format("; did you mean \"{}\"?", other->second));
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

void read_unit(YamlMap& map, Attribute& attribute) {
  map.text("unit", attribute.unit);
  if (!attribute.unit.empty() && attribute.type != ValueType::number && attribute.type != ValueType::integer)
    refuse("{}: attribute \"{}\" has a unit but is not a number; set type: number or remove the unit",
           map.where("unit"), attribute.name);
}

/// The digits behind the point of a number; a JSON Schema says multipleOf.
void read_decimals(YamlMap& map, Attribute& attribute) {
  int32_t digits = 0;
  map.integer("decimals", digits, {1, kMostDecimals});
  if (digits == 0) return;
  if (attribute.type != ValueType::number)
    refuse("{}: attribute \"{}\" has decimals but is not a number; set type: number or remove them",
           map.where("decimals"), attribute.name);
  attribute.limits.multiple_of = decimal_step(digits);
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

size_t bytes_of(const Attribute& attribute) {
  size_t bytes = sizeof attribute + attribute.description.size();
  for (const std::string& option : attribute.options) bytes += sizeof(std::string) + option.size();
  for (const Attribute& field : attribute.fields) bytes += bytes_of(field);
  return bytes;
}

/// Finds plain attributes whose names would be taken for paths into others of the category.
void check_paths(const Schema& schema, const Category& category, MistakeList& found) {
  for (const Attribute& plain : category.attributes) {
    const auto path = read_path(plain.name);
    if (!path || (path->size() == 1 && !path->front().entry)) continue;
    for (const Attribute& other : category.attributes)
      if (other.nested() && other.name == path->front().name)
        found.add(fmt::format("{}: attribute \"{}\" reads as a path into \"{}\"; rename it",
                              schema.place(plain), shorten_text(plain.name, 60), other.name));
  }
}

/// Reads a schema of sheaf's own. A mistake is noted, and reading continues with a text in place of what
/// cannot be read.
class SchemaReader {
 public:
  explicit SchemaReader(std::string path) { schema_.file = std::move(path); }

  Schema read(YamlMap map) {
    const YamlPtr attributes = map.node("attributes"), categories = map.node("categories");
    map.require("categories");
    found_.attempt([&] { map.finish(); });
    if (attributes) found_.attempt([&] { read_shared(attributes); });
    if (categories) found_.attempt([&] { read_categories(categories); });
    found_.sort_by_line(schema_.file);
    found_.shorten(schema_.file);
    found_.finish();
    return std::move(schema_);
  }

 private:
  /// A definition that categories and other definitions may name.
  struct Shared {
    enum class State : uint8_t { unread, open, read };
    YamlNode::Entry entry;
    State state = State::unread;
    Attribute attribute = {};
  };

  void read_shared(const YamlPtr& node) {
    YamlMap check(node, "attributes");
    for (const YamlNode::Entry& entry : node->entries) {
      names_.push_back(entry.key);
      shared_.emplace(entry.key, Shared{entry});
      found_.attempt([&] { checked_name(entry.key, entry.place, "attribute"); });
    }
    for (const YamlNode::Entry& entry : node->entries) {
      if (found_.full()) return;
      found_.attempt([&] { shared_attribute(shared_.at(entry.key), entry.place); });
    }
  }

  /// `use`: where it is named. Definitions may stand in any order, so it is read when it is first named.
  const Attribute& shared_attribute(Shared& shared, const YamlPlace& use) {
    const std::string& name = shared.entry.key;
    if (shared.state == Shared::State::open)
      refuse(
          "{}: attribute \"{}\" contains itself; sheaf fills objects of a fixed depth: write out the levels",
          use.text(), shorten_text(name, 60));
    if (shared.state == Shared::State::read) return shared.attribute;
    // Each open definition holds the next.
    if (open_ >= kDeepest)
      refuse("{}: \"{}\" is nested deeper than {} levels; make its attributes those of the one around it",
             use.text(), shorten_text(name, 60), kDeepest);
    shared.state = Shared::State::open;
    ++open_;
    shared.attribute.name = name;
    found_.attempt(
        [&] { shared.attribute = read_attribute(shared.entry.value, name, shared.entry.place.line, 1); });
    --open_;
    shared.state = Shared::State::read;
    return shared.attribute;
  }

  /// `depth`: of the attribute, 1 for one of a category.
  Attribute listed_attribute(const YamlPtr& item, int32_t depth) {
    Attribute attribute;
    found_.attempt([&] {
      if (item->kind == YamlNode::Kind::map) {
        attribute = read_attribute(item, {}, item->place.line, depth);
        return;
      }
      const std::string name = yaml_scalar(*item, "an attribute");
      const auto found = shared_.find(name);
      if (found != shared_.end()) {
        attribute.name = name;
        attribute = shared_attribute(found->second, item->place);
        return;
      }
      const std::string near = nearest_spelling(name, names_);
      refuse("{}: attribute \"{}\" is not defined under attributes{}", item->place.text(),
             shorten_text(name, 60),
             near.empty()
                 ? fmt::format("; define it there or write {{name: {}, type: text}}", shorten_text(name, 60))
                 : fmt::format("; did you mean \"{}\"?", near));
    });
    return attribute;
  }

  /// Reads what defines an attribute; its name is a key of the map, or already known (`name` not empty).
  Attribute read_attribute(const YamlPtr& node, const std::string& name, int32_t line, int32_t depth) {
    YamlMap map(node, name.empty() ? "attribute" : name);
    Attribute attribute;
    attribute.name = name;
    attribute.line = line;
    if (name.empty()) {
      map.require("name");
      found_.attempt([&] {
        if (const YamlPtr given = map.node("name"))
          attribute.name = checked_name(yaml_scalar(*given, "name"), given->place, "attribute");
      });
    }
    found_.attempt([&] { map.text("description", attribute.description); });
    const bool typed = found_.attempt([&] { attribute.type = read_type(map); });
    read_fields(map, attribute, typed, depth);
    const YamlPtr options = map.node("options");
    MistakeList of_type;  // which mean nothing where the type is not known
    of_type.attempt([&] { read_unit(map, attribute); });
    of_type.attempt([&] { read_decimals(map, attribute); });
    of_type.attempt([&] { read_locale(map, attribute); });
    of_type.attempt([&] { read_pattern(map, attribute); });
    of_type.attempt([&] { read_options(options, attribute, map); });
    found_.attempt([&] { map.finish(); });
    if (typed)
      for (const std::string& each : of_type.all()) found_.add(each);
    return attribute;
  }

  /// The attributes of an object, or of the entries of a list of objects. `typed`: the type is known.
  void read_fields(YamlMap& map, Attribute& attribute, bool typed, int32_t depth) {
    const YamlPtr fields = map.node("attributes");
    if (fields && attribute.type == ValueType::list) attribute.type = ValueType::entries;
    const bool list = attribute.type == ValueType::entries || (!typed && map.has("anchor"));
    std::string anchor;
    found_.attempt([&] { map.text("anchor", anchor); });
    found_.attempt([&] { map.integer("max_entries", attribute.max_entries, {1, kEntriesLimit}); });
    for (const char* key : {"anchor", "max_entries"})
      if (map.has(key) && !list && typed)
        found_.add(
            fmt::format("{}: {} belongs to a list of objects; give \"{}\" type: list and attributes, or "
                        "remove it",
                        map.where(key), key, attribute.name));
    if (!fields && (attribute.type == ValueType::object || map.is_null("attributes")))
      found_.add(
          fmt::format("{}: {} \"{}\" needs attributes: a list of its attributes", map.where("attributes"),
                      attribute.type == ValueType::object ? "the object" : "attribute", attribute.name));
    if (!fields) return;
    if (typed && !attribute.nested())
      found_.add(
          fmt::format("{}: \"{}\" has attributes of its own; set type: object or type: list, or remove them",
                      map.where("attributes"), attribute.name));
    read_field_list(*fields, attribute, depth, map.where());
    if (list && !attribute.fields.empty()) choose_anchor(map, attribute, anchor);
    if (!attribute.nested()) attribute.fields.clear();
  }

  /// `where`: the place of the attribute.
  void read_field_list(const YamlNode& list, Attribute& attribute, int32_t depth, const std::string& where) {
    if (list.kind != YamlNode::Kind::list)
      return found_.add(fmt::format("{}: the attributes of \"{}\" must be a list, not {}", list.place.text(),
                                    attribute.name, list.describe()));
    if (list.items.empty())
      return found_.add(fmt::format("{}: attribute \"{}\" has no attributes of its own; give it at least one",
                                    list.place.text(), attribute.name));
    if (depth >= kDeepest)
      return found_.add(fmt::format(
          "{}: \"{}\" is nested deeper than {} levels; make its attributes those of the one around "
          "it",
          where, attribute.name, kDeepest));
    size_t count = 0;  // shared attributes can have many fields
    std::unordered_set<std::string> seen;
    for (size_t i = 0; i < list.items.size() && count <= kMostFields && !found_.full(); ++i) {
      const Attribute& field = attribute.fields.emplace_back(listed_attribute(list.items[i], depth + 1));
      count += 1 + count_fields(field);
      if (!field.name.empty() && !seen.insert(field.name).second)
        found_.add(fmt::format("{}: attribute \"{}\" appears twice in \"{}\"; remove one",
                               list.items[i]->place.text(), field.name, attribute.name));
    }
    if (const std::string trouble = fields_trouble(attribute); !trouble.empty())
      found_.add(fmt::format("{}: {}", list.place.text(), trouble));
  }

  void choose_anchor(const YamlMap& map, Attribute& list, const std::string& name) {
    const std::string place = map.where("anchor");
    switch (set_anchor(list, name)) {
      case AnchorTrouble::nothing:
        return;
      case AnchorTrouble::unknown:
        return found_.add(fmt::format("{}: the anchor \"{}\" of \"{}\" is not one of its attributes{}", place,
                                      shorten_text(name, 60), list.name,
                                      suggest_spelling(name, field_names(list))));
      case AnchorTrouble::unfit:
        return found_.add(
            fmt::format("{}: the anchor \"{}\" of \"{}\" must be a text, span, enum, date or pattern", place,
                        shorten_text(name, 60), list.name));
      case AnchorTrouble::none_fits:
        return found_.add(fmt::format(
            "{}: no attribute could tell the entries of \"{}\" apart; add a text, span, enum, date "
            "or pattern",
            place, list.name));
    }
  }

  void read_categories(const YamlPtr& node) {
    YamlMap check(node, "categories");
    if (node->entries.empty()) refuse("{}: categories is empty; add a category", node->place.text());
    for (const YamlNode::Entry& entry : node->entries) {
      if (found_.full() || room_ == 0) return;
      found_.attempt([&] { schema_.categories.push_back(read_category(entry)); });
    }
  }

  /// Takes what the category takes up off the room.
  Category read_category(const YamlNode::Entry& entry) {
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
      if (found_.full()) break;
      Attribute attribute = listed_attribute(item, 1);
      if (!attribute.name.empty() && !seen.insert(attribute.name).second)
        found_.add(fmt::format("{}: attribute \"{}\" appears twice; remove one", item->place.text(),
                               attribute.name));
      if (bytes_of(attribute) > room_) {
        room_ = 0;
        refuse(
            "{}: the categories so far, with the options of their attributes, take more than {} MB; split "
            "the "
            "schema",
            item->place.text(), kMostBytes >> 20);
      }
      room_ -= bytes_of(attribute);
      category.attributes.push_back(std::move(attribute));
    }
    check_paths(schema_, category, found_);
    return category;
  }

  Schema schema_;
  MistakeList found_;
  std::vector<std::string> names_;  ///< of shared definitions
  std::unordered_map<std::string, Shared> shared_;
  int32_t open_ = 0;  ///< definitions that are being read, each inside of the one before
  size_t room_ = kMostBytes;
};

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
  const JsonFile places{path, JsonLines(file->text(), schema)};
  Category category{{}, read_json_schema(schema, "", &places)};
  MistakeList found;
  check_paths({{}, path}, category, found);
  found.finish();
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
    if (std::optional<Category> category = read_json_category(path)) return {{std::move(*category)}, path};
  YamlMap map(read_yaml(path, "a schema file"), "");
  if (map.has("properties") && !map.has("categories"))
    refuse("{}: this looks like a JSON Schema; give it a name that ends in .json", path);
  return SchemaReader(path).read(std::move(map));
}

Schema read_schema(const Job& job) {
  Schema schema = read_schema(job.task.schema);
  add_locale(schema, find_locale(job.input.locale).value_or(Locale()));
  return schema;
}

}  // namespace sheaf
