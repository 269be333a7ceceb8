#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/task/schema.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostProperties = 1000, kMostEntries = 10'000, kLongestName = 200;
constexpr int kMostReferences = 20;  // one behind the other

/// Keys that say nothing about which values are valid.
constexpr std::array<std::string_view, 12> kIdle = {"$schema",    "$id",      "$comment",  "$anchor",
                                                    "title",      "default",  "$defs",     "examples",
                                                    "deprecated", "readOnly", "writeOnly", "definitions"};

std::string key_path(const std::string& path, std::string_view key) {
  return fmt::format("{}{}{}", path, path.empty() ? "" : ".", shorten_text(key, 60));
}

std::string written(const ordered_json& value) {
  return shorten_text(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace), 60);
}

std::string text_at(const ordered_json& schema, const char* key, const std::string& path) {
  const auto found = schema.find(key);
  if (found == schema.end()) return {};
  if (!found->is_string()) refuse("{} must be a text, not {}", key_path(path, key), written(*found));
  return found->get<std::string>();
}

/// A schema, or one that it refers to, and where it is written.
struct Place {
  const ordered_json* schema;
  std::string path;
};

/// The first key that is neither known nor idle.
std::optional<std::string> other_key(const Place& at, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : at.schema->items())
    if (std::ranges::find(known, key) == known.end() && std::ranges::find(kIdle, key) == kIdle.end())
      return key;
  return std::nullopt;
}

class SchemaReader {
 public:
  explicit SchemaReader(const ordered_json& root, std::string path) : root_(root), path_(std::move(path)) {}

  std::vector<Attribute> read() {
    const Place object = resolve({&root_, path_});
    check_object(object);
    const auto properties = object.schema->find("properties");
    const std::string path = key_path(object.path, "properties");
    if (properties == object.schema->end() || !properties->is_object() || properties->empty())
      refuse("{} must be an object with at least one key", path);
    if (properties->size() > kMostProperties)
      refuse("{} has {} keys; at most {} are allowed", path, properties->size(), kMostProperties);
    std::vector<Attribute> attributes;
    for (const auto& [name, schema] : properties->items()) {
      const std::string here = key_path(path, name);
      if (name.find_first_not_of(" \t\r\n") == std::string::npos || name.size() > kLongestName)
        refuse("{}: a key must have a name of at most {} bytes", here, kLongestName);
      attributes.push_back(read_property({&schema, here}));
      attributes.back().name = name;
    }
    return attributes;
  }

 private:
  /// Follows references to other parts of the same schema, keeping the first description.
  Place resolve(Place at, std::string* description = nullptr) const {
    for (int i = 0; i < kMostReferences; ++i) {
      if (!at.schema->is_object())
        refuse("{}: a schema must be an object, not {}", at.path, written(*at.schema));
      if (description && description->empty()) *description = text_at(*at.schema, "description", at.path);
      const auto all = at.schema->find("allOf");
      if (all != at.schema->end() && all->is_array() && all->size() == 1) {
        check_alone(at, "allOf");
        at = {&all->front(), key_path(at.path, "allOf[0]")};
        continue;
      }
      if (!at.schema->contains("$ref")) return at;
      check_alone(at, "$ref");
      at = {&referred(at), at.path};
    }
    refuse("{}.$ref: the references go in a circle", at.path);
  }

  /// What stands beside a reference would narrow it down.
  static void check_alone(const Place& at, std::string_view reference) {
    if (const auto key = other_key(at, {reference, "description"}))
      refuse("{}: {} beside {} is not supported; write it in one schema", key_path(at.path, *key), *key,
             reference);
  }

  const ordered_json& referred(const Place& at) const {
    const std::string target = text_at(*at.schema, "$ref", at.path);
    for (const std::string_view definitions : {"$defs", "definitions"}) {
      const std::string prefix = fmt::format("#/{}/", definitions);
      if (!target.starts_with(prefix)) continue;
      const auto all = root_.find(definitions);
      if (all == root_.end() || !all->is_object()) break;
      const auto found = all->find(target.substr(prefix.size()));
      if (found != all->end()) return *found;
    }
    refuse("{}.$ref: \"{}\" is not a part of $defs of this schema; only such references can be followed",
           at.path, shorten_text(target, 60));
  }

  static void check_object(const Place& at) {
    const std::string type = at.schema->contains("type") ? written(at.schema->at("type")) : "\"object\"";
    if (type != "\"object\"") refuse("{} must be \"object\", not {}", key_path(at.path, "type"), type);
    // All keys are written and no others, so `required` and `additionalProperties` are met.
    if (const auto key =
            other_key(at, {"type", "properties", "description", "required", "additionalProperties"}))
      refuse("{} is not supported; a flat object with properties is", key_path(at.path, *key));
  }

  Attribute read_property(Place at) const {
    Attribute attribute;
    attribute.nullable = false;
    at = resolve(at, &attribute.description);
    at = without_null(at, attribute);
    std::string type = type_of(at, attribute);
    const ordered_json& schema = *at.schema;
    std::vector<std::string_view> known = {"type", "description"};
    if (schema.contains("enum") || schema.contains("const")) {
      known.insert(known.end(), {"enum", "const"});
      read_options(at, type, attribute);
    } else if (type == "string") {
      known.insert(known.end(), {"pattern", "format"});
      read_string(at, attribute);
    } else if (type == "number" || type == "integer") {
      attribute.type = type == "number" ? ValueType::number : ValueType::integer;
    } else if (type == "boolean") {
      attribute.type = ValueType::boolean;
      attribute.options = {"true", "false"};
    } else if (type == "array") {
      known.emplace_back("items");
      attribute.type = ValueType::list;
      check_items(at);
    } else if (type == "object") {
      refuse("{}: an object inside of the object is not supported; make its keys keys of the outer one",
             key_path(at.path, "type"));
    } else {
      refuse_type(at, type);
    }
    if (const auto key = other_key(at, known))
      refuse("{} is not supported; remove it", key_path(at.path, *key));
    return attribute;
  }

  [[noreturn]] static void refuse_type(const Place& at, const std::string& type) {
    for (const char* key : {"anyOf", "oneOf", "allOf", "not", "if", "properties"})
      if (at.schema->contains(key)) refuse("{} is not supported; give one type", key_path(at.path, key));
    if (type.empty()) refuse("{}: the type is missing", at.path);
    refuse("{}: \"{}\" is not supported; use string, number, integer, boolean or array",
           key_path(at.path, "type"), shorten_text(type, 60));
  }

  /// Takes null out of anyOf or oneOf with another schema.
  Place without_null(const Place& at, Attribute& attribute) const {
    for (const char* key : {"anyOf", "oneOf"}) {
      const auto found = at.schema->find(key);
      if (found == at.schema->end()) continue;
      const std::string path = key_path(at.path, key);
      if (!found->is_array() || found->empty()) refuse("{} must be a list of schemas", path);
      std::optional<size_t> other;
      for (size_t i = 0; i < found->size(); ++i) {
        if ((*found)[i] == ordered_json{{"type", "null"}}) {
          attribute.nullable = true;
        } else if (std::exchange(other, i)) {
          refuse("{} is not supported, except for one type and null; give one type", path);
        }
      }
      if (!other) refuse("{} allows only null; give a type", path);
      check_alone(at, key);
      return resolve({&(*found)[*other], fmt::format("{}[{}]", path, *other)}, &attribute.description);
    }
    return at;
  }

  /// Empty where there is none. A list of a type and null is that type.
  static std::string type_of(const Place& at, Attribute& attribute) {
    const auto found = at.schema->find("type");
    if (found == at.schema->end()) return {};
    const std::string path = key_path(at.path, "type");
    std::string type;
    for (const ordered_json& each : found->is_array() ? *found : ordered_json::array({*found})) {
      if (!each.is_string()) refuse("{} must be a text or a list of texts, not {}", path, written(*found));
      if (found->is_array() && each == "null")
        attribute.nullable = true;
      else if (!std::exchange(type, each.get<std::string>()).empty())
        refuse("{} is not supported, except for one type and \"null\"; give one type", path);
    }
    return type;
  }

  static void read_options(const Place& at, const std::string& type, Attribute& attribute) {
    if (!type.empty() && type != "string")
      refuse("{}: options can only be texts, of type string", key_path(at.path, "type"));
    const bool fixed = at.schema->contains("const");
    const std::string path = key_path(at.path, fixed ? "const" : "enum");
    const ordered_json& given = at.schema->at(fixed ? "const" : "enum");
    if (!fixed && (!given.is_array() || given.empty())) refuse("{} must be a list of texts", path);
    if (given.size() > kMostEntries)
      refuse("{} has {} entries; at most {} are allowed", path, given.size(), kMostEntries);
    attribute.type = ValueType::enumeration;
    for (const ordered_json& option : fixed ? ordered_json::array({given}) : given) {
      if (option.is_null()) {
        attribute.nullable = true;
        continue;
      }
      if (!option.is_string() ||
          option.get_ref<const std::string&>().find_first_not_of(" \t") == std::string::npos)
        refuse("{}: {} is not supported; options can only be texts", path, written(option));
      attribute.options.push_back(option.get<std::string>());
    }
    if (attribute.options.empty()) refuse("{} has no text", path);
    std::vector<std::string> sorted = attribute.options;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      refuse("{}: \"{}\" appears twice; remove one", path, shorten_text(*twice, 60));
  }

  static void read_string(const Place& at, Attribute& attribute) {
    const std::string format = text_at(*at.schema, "format", at.path),
                      pattern = text_at(*at.schema, "pattern", at.path);
    if (!format.empty() && format != "date")
      refuse("{}: \"{}\" is not supported; date is, or use a pattern", key_path(at.path, "format"),
             shorten_text(format, 60));
    if (!format.empty() && !pattern.empty())
      refuse("{} beside format is not supported; remove one", key_path(at.path, "pattern"));
    if (!format.empty()) attribute.type = ValueType::date;
    if (pattern.empty()) return;
    attribute.type = ValueType::pattern;
    try {
      attribute.pattern = std::make_shared<const Pattern>(whole_text(pattern));
    } catch (const Error& error) {
      refuse("{}: {}", key_path(at.path, "pattern"), error.what());
    }
  }

  /// Whether there is a | outside of groups and classes.
  static bool has_alternatives(std::string_view pattern) {
    int depth = 0;
    bool in_class = false;
    for (size_t i = 0; i < pattern.size(); ++i) {
      const char c = pattern[i];
      if (c == '\\')
        ++i;
      else if (in_class || c == '[')
        in_class = c != ']';
      else if (c == '(' || c == ')')
        depth += c == '(' ? 1 : -1;
      else if (c == '|' && depth == 0)
        return true;
    }
    return false;
  }

  /// A JSON Schema's pattern may match anywhere in a text; ours is the whole.
  static std::string whole_text(const std::string& pattern) {
    const bool begins = pattern.starts_with('^'), ends = pattern.ends_with('$') && !pattern.ends_with("\\$");
    std::string inside = pattern.substr(begins ? 1 : 0, pattern.size() - (begins ? 1 : 0) - (ends ? 1 : 0));
    if ((begins || ends) && has_alternatives(inside))
      refuse("^ or $ belongs to one side of the | only; put the alternatives in parentheses");
    if (begins && ends) return inside;
    return fmt::format("{}({}){}", begins ? "" : ".*", inside, ends ? "" : ".*");
  }

  void check_items(const Place& at) const {
    const auto found = at.schema->find("items");
    const std::string path = key_path(at.path, "items");
    if (found == at.schema->end()) refuse("{} is missing; give {{\"type\": \"string\"}}", path);
    const Place items = resolve({&*found, path});
    if (const auto key = other_key(items, {"type", "description"}))
      refuse("{} is not supported; lists can only be of texts", key_path(path, *key));
    if (items.schema->value("type", ordered_json()) != "string")
      refuse("{} must be \"string\"; lists can only be of texts", key_path(path, "type"));
  }

  const ordered_json& root_;
  const std::string path_;
};

}  // namespace

std::vector<Attribute> read_json_schema(const ordered_json& schema, const std::string& path) {
  return SchemaReader(schema, path).read();
}

}  // namespace sheaf
