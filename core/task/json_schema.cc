#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/ranges.h>
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
constexpr size_t kMostMistakes = 20;         // told at once
constexpr int kMostReferences = 20;          // one behind the other
constexpr const char* kAnchor = "x-anchor";  // names the key that tells the objects of a list apart

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

/// The paths of all keys that are neither known nor idle. Keys that begin with "x-" are a program's own.
std::vector<std::string> other_keys(const Place& at, const std::vector<std::string_view>& known) {
  std::vector<std::string> others;
  for (const auto& [key, value] : at.schema->items())
    if (std::ranges::find(known, key) == known.end() && std::ranges::find(kIdle, key) == kIdle.end() &&
        !key.starts_with("x-"))
      others.push_back(key_path(at.path, key));
  return others;
}

std::string listed(const std::vector<std::string>& paths, std::string_view advice) {
  return fmt::format("{} {} not supported; {}", fmt::join(paths, ", "), paths.size() == 1 ? "is" : "are",
                     advice);
}

/// Formats that are patterns.
constexpr std::pair<std::string_view, const char*> kFormats[] = {
    {"date-time", "\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2})?(Z|[+-]\\d{2}:\\d{2})?"},
    {"time", "\\d{2}:\\d{2}(:\\d{2})?"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"ipv4", "\\d{1,3}(\\.\\d{1,3}){3}"},
    {"email", "[^ @]+@[^ @]+\\.[^ @]+"},
    {"uri", "[a-zA-Z][a-zA-Z0-9+.-]*:[^ ]+"}};

class SchemaReader {
 public:
  explicit SchemaReader(const ordered_json& root, std::string path) : root_(root), path_(std::move(path)) {}

  std::vector<Attribute> read() {
    const Place object = resolve({&root_, path_});
    check_type(object);
    return read_properties(object, 1);
  }

 private:
  /// An object whose properties are being read, which none of them can be.
  class Opened {
   public:
    Opened(std::vector<const ordered_json*>& open, const Place& at) : open_(open) {
      if (std::ranges::find(open, at.schema) != open.end())
        refuse(
            "{}: this object is inside of itself; sheaf fills objects of a fixed depth: write out the levels",
            at.path);
      open_.push_back(at.schema);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() { open_.pop_back(); }

   private:
    std::vector<const ordered_json*>& open_;
  };

  /// The properties of an object as attributes; `depth`: 1 for those of the outermost.
  std::vector<Attribute> read_properties(const Place& object, int32_t depth) {
    const Opened opened(open_, object);
    check_object(object);
    const auto properties = object.schema->find("properties");
    const std::string path = key_path(object.path, "properties");
    if (depth > kDeepest)
      refuse("{}: objects are at most {} levels deep; make these keys of the object around them", path,
             kDeepest);
    if (properties == object.schema->end() || !properties->is_object() || properties->empty())
      refuse("{} must be an object with at least one key", path);
    properties_ += properties->size();
    if (properties_ > kMostProperties)
      refuse("{}: the schema has more than {} keys, those of inner objects counted", path, kMostProperties);
    std::vector<Attribute> attributes;
    std::vector<std::string> mistakes;
    for (const auto& [name, schema] : properties->items()) {
      const std::string here = key_path(path, name);
      if (name.find_first_not_of(" \t\r\n") == std::string::npos || name.size() > kLongestName)
        refuse("{}: a key must have a name of at most {} bytes", here, kLongestName);
      try {
        attributes.push_back(read_property({&schema, here}, name, depth));
      } catch (const Error& error) {
        if (error.fault() != Fault::input) throw;
        mistakes.emplace_back(error.what());
      }
    }
    if (mistakes.size() > kMostMistakes) {
      const size_t more = mistakes.size() - kMostMistakes;
      mistakes.resize(kMostMistakes);
      mistakes.push_back(fmt::format("and {} more", more));
    }
    if (!mistakes.empty()) refuse("{}", fmt::join(mistakes, "; "));
    return attributes;
  }

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
    if (const auto keys = other_keys(at, {reference, "description"}); !keys.empty())
      refuse("{}", listed(keys, fmt::format("beside {} write all in one schema", reference)));
  }

  /// What a reference names: a JSON pointer into this schema, such as #/$defs/Price.
  const ordered_json& referred(const Place& at) const {
    const std::string target = text_at(*at.schema, "$ref", at.path);
    const ordered_json* found = target.starts_with("#") ? &root_ : nullptr;
    for (size_t begin = 1; found != nullptr && begin < target.size();) {
      if (target[begin] != '/') found = nullptr;
      const size_t end = std::min(target.find('/', begin + 1), target.size());
      if (found != nullptr) found = part_of(*found, pointer_key(target.substr(begin + 1, end - begin - 1)));
      begin = end;
    }
    if (found == nullptr)
      refuse("{}.$ref: \"{}\" is not a part of this schema; only such references (#/$defs/…) can be followed",
             at.path, shorten_text(target, 60));
    return *found;
  }

  static const ordered_json* part_of(const ordered_json& whole, const std::string& key) {
    if (whole.is_object()) {
      const auto found = whole.find(key);
      return found == whole.end() ? nullptr : &*found;
    }
    const bool index = !key.empty() && key.size() < 6 &&
                       std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
    if (!whole.is_array() || !index || std::stoul(key) >= whole.size()) return nullptr;
    return &whole[std::stoul(key)];
  }

  /// A key as a pointer in a URI spells it: ~1 for /, ~0 for ~, %20 for a blank.
  static std::string pointer_key(const std::string& text) {
    std::string plain;
    const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
        plain += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
        i += 2;
      } else {
        plain += text[i];
      }
    std::string key;
    for (size_t i = 0; i < plain.size(); ++i) {
      const bool escape =
          plain[i] == '~' && i + 1 < plain.size() && (plain[i + 1] == '0' || plain[i + 1] == '1');
      key += !escape ? plain[i] : plain[i + 1] == '0' ? '~' : '/';
      if (escape) ++i;
    }
    return key;
  }

  static void check_type(const Place& at) {
    const std::string type = at.schema->contains("type") ? written(at.schema->at("type")) : "\"object\"";
    if (type != "\"object\"") refuse("{} must be \"object\", not {}", key_path(at.path, "type"), type);
  }

  static void check_object(const Place& at) {
    // All keys are written and no others, so `required` and `additionalProperties` are met.
    if (const auto keys =
            other_keys(at, {"type", "properties", "description", "required", "additionalProperties"});
        !keys.empty())
      refuse("{}", listed(keys, "an object with properties is"));
  }

  Attribute read_property(Place at, const std::string& name, int32_t depth) {
    Attribute attribute;
    attribute.name = name;
    attribute.nullable = false;
    at = resolve(at, &attribute.description);
    at = without_null(at, attribute);
    std::string type = type_of(at, attribute);
    if (type.empty() && at.schema->contains("properties")) type = "object";
    const ordered_json& schema = *at.schema;
    std::vector<std::string_view> known = {"type", "description"};
    if (schema.contains("enum") || schema.contains("const")) {
      known.insert(known.end(), {"enum", "const"});
      read_options(at, type, attribute);
    } else if (type == "string") {
      known.insert(known.end(), {"pattern", "format", "minLength", "maxLength"});
      read_string(at, attribute);
    } else if (type == "number" || type == "integer") {
      known.insert(known.end(), {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
      attribute.type = type == "number" ? ValueType::number : ValueType::integer;
      read_bounds(at, attribute.limits);
    } else if (type == "boolean") {
      attribute.type = ValueType::boolean;
      attribute.options = {"true", "false"};
    } else if (type == "array") {
      known.insert(known.end(), {"items", "minItems", "maxItems", "uniqueItems"});
      attribute.type = ValueType::list;
      read_items(at, attribute, depth);
      attribute.limits.fewest = number_at(at, "minItems");
      attribute.limits.most_items = number_at(at, "maxItems");
      const auto unique = at.schema->find("uniqueItems");
      attribute.limits.unique = unique != at.schema->end() && *unique == true;
      if (attribute.type == ValueType::entries) limit_entries(at, attribute);
    } else if (type == "object") {
      known.insert(known.end(), {"properties", "required", "additionalProperties"});
      attribute.type = ValueType::object;
      attribute.fields = read_properties(at, depth + 1);
    } else {
      refuse_type(at, type);
    }
    if (const auto keys = other_keys(at, known); !keys.empty())
      refuse("{}", listed(keys, keys.size() == 1 ? "remove it" : "remove them"));
    return attribute;
  }

  [[noreturn]] static void refuse_type(const Place& at, const std::string& type) {
    for (const char* key : {"anyOf", "oneOf", "allOf", "not", "if", "properties"})
      if (at.schema->contains(key)) refuse("{} is not supported; give one type", key_path(at.path, key));
    if (type.empty()) refuse("{}: the type is missing", at.path);
    refuse("{}: \"{}\" is not supported; use string, number, integer, boolean, array or object",
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

  static std::vector<std::string_view> format_names() {
    std::vector<std::string_view> names;
    for (const auto& [name, pattern] : kFormats) names.push_back(name);
    return names;
  }

  static std::optional<double> number_at(const Place& at, const char* key) {
    const auto found = at.schema->find(key);
    if (found == at.schema->end()) return std::nullopt;
    if (!found->is_number() || !std::isfinite(found->get<double>()))
      refuse("{} must be a number, not {}", key_path(at.path, key), written(*found));
    return found->get<double>();
  }

  static void read_bounds(const Place& at, ValueLimits& limits) {
    limits.least = number_at(at, "minimum");
    limits.most = number_at(at, "maximum");
    limits.above = number_at(at, "exclusiveMinimum");
    limits.below = number_at(at, "exclusiveMaximum");
    limits.multiple_of = number_at(at, "multipleOf");
    if (limits.multiple_of && !(*limits.multiple_of > 0))
      refuse("{} must be above 0", key_path(at.path, "multipleOf"));
    if (std::max(limits.least.value_or(-HUGE_VAL), limits.above.value_or(-HUGE_VAL)) >
        std::min(limits.most.value_or(HUGE_VAL), limits.below.value_or(HUGE_VAL)))
      refuse("{}: no number lies between the bounds", at.path);
  }

  static void read_string(const Place& at, Attribute& attribute) {
    const std::string format = text_at(*at.schema, "format", at.path),
                      pattern = text_at(*at.schema, "pattern", at.path);
    attribute.limits.shortest = number_at(at, "minLength");
    attribute.limits.longest = number_at(at, "maxLength");
    if (!format.empty() && !pattern.empty())
      refuse("{} beside format is not supported; remove one", key_path(at.path, "pattern"));
    if (format == "date") attribute.type = ValueType::date;
    if (!format.empty() && format != "date") {
      const auto* known = std::ranges::find(kFormats, format,
                                            [](const auto& each) -> std::string_view { return each.first; });
      if (known == std::end(kFormats))
        refuse("{}: \"{}\" is not supported; use date, {}, or a pattern", key_path(at.path, "format"),
               shorten_text(format, 60), fmt::join(format_names(), ", "));
      attribute.type = ValueType::pattern;
      attribute.pattern = std::make_shared<const Pattern>(known->second);
      if (format == "time") attribute.moment = Attribute::Moment::time;
      if (format == "date-time") attribute.moment = Attribute::Moment::date_time;
    }
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

  /// A list is of texts or of objects.
  void read_items(const Place& at, Attribute& attribute, int32_t depth) {
    const auto found = at.schema->find("items");
    const std::string path = key_path(at.path, "items");
    if (found == at.schema->end()) refuse("{} is missing; give {{\"type\": \"string\"}}", path);
    const Place items = resolve({&*found, path});
    if (items.schema->value("type", ordered_json()) == "object" || items.schema->contains("properties")) {
      check_type(items);
      attribute.type = ValueType::entries;
      attribute.fields = read_properties(items, depth + 1);
      return;
    }
    if (const auto keys = other_keys(items, {"type", "description"}); !keys.empty())
      refuse("{}", listed(keys, "lists can only be of texts or objects"));
    if (items.schema->value("type", ordered_json()) != "string")
      refuse("{} must be \"string\" or \"object\"; lists can only be of texts or objects",
             key_path(path, "type"));
  }

  /// What maxItems and x-anchor say of a list of objects.
  static void limit_entries(const Place& at, Attribute& attribute) {
    for (const char* key : {"minItems", "uniqueItems"})
      if (const auto limit = at.schema->find(key);
          limit != at.schema->end() && *limit != 0 && *limit != false)
        refuse("{} is not supported for a list of objects; remove it", key_path(at.path, key));
    if (const std::optional<double> most = attribute.limits.most_items) {
      if (!(*most >= 1) || *most > kEntriesLimit || *most != std::floor(*most))
        refuse("{} of a list of objects must be a whole number from 1 to {}", key_path(at.path, "maxItems"),
               kEntriesLimit);
      attribute.max_entries = static_cast<int32_t>(*most);
    }
    attribute.limits = {};
    const std::string anchor = text_at(*at.schema, kAnchor, at.path);
    const std::string trouble = set_anchor(attribute, anchor);
    // Where there is no text, another type will do.
    const auto fits = [&](const Attribute& field) { return set_anchor(attribute, field.name).empty(); };
    const bool other = !trouble.empty() && anchor.empty() && std::ranges::any_of(attribute.fields, fits);
    if (!trouble.empty() && !other) refuse("{}: {}", at.path, trouble);
  }

  const ordered_json& root_;
  const std::string path_;
  std::vector<const ordered_json*> open_;  // objects around the one that is read, the outermost first
  size_t properties_ = 0;                  // of all objects so far
};

}  // namespace

std::vector<Attribute> read_json_schema(const ordered_json& schema, const std::string& path) {
  return SchemaReader(schema, path).read();
}

}  // namespace sheaf
