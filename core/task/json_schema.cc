#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/mistake_list.h"
#include "core/task/schema.h"
#include "core/text/json_lines.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostProperties = 1000, kMostEntries = 10'000, kLongestName = 200;
constexpr int kMostReferences = 20;          // from $ref to $ref
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

/// A schema, or one that it refers to, and where it is written.
struct Place {
  const ordered_json* schema;
  std::string path;             ///< by which the outermost schema reaches it
  const JsonFile* file;         ///< null: none
  std::string definition = {};  ///< what the last reference named: #/$defs/Price

  /// A part of the schema.
  Place inner(const ordered_json& part, const std::string& to) const { return {&part, to, file, definition}; }

  int32_t line(std::string_view key = {}) const {
    if (file == nullptr) return 0;
    const auto member = schema->is_object() && !key.empty() ? schema->find(std::string(key)) : schema->end();
    return file->lines.of(member == schema->end() ? *schema : *member);
  }

  /// Where it is written, or a key of it, for messages: "tea.json:7: properties.price.minimum".
  std::string text(std::string_view key = {}) const {
    std::string place = key.empty() ? path : key_path(path, key);
    if (file == nullptr) return place;
    const std::string where = fmt::format("{}:{}", file->path, line(key));
    return place.empty() ? where : where + ": " + place;
  }
};

std::string text_at(const Place& at, const char* key) {
  const auto found = at.schema->find(key);
  if (found == at.schema->end()) return {};
  if (!found->is_string()) refuse("{} must be a text, not {}", at.text(key), written(*found));
  return found->get<std::string>();
}

/// All keys that are neither known nor idle. Keys that begin with "x-" are a program's own.
std::vector<std::string> other_keys(const Place& at, const std::vector<std::string_view>& known) {
  std::vector<std::string> others;
  for (const auto& [key, value] : at.schema->items())
    if (std::ranges::find(known, key) == known.end() && std::ranges::find(kIdle, key) == kIdle.end() &&
        !key.starts_with("x-"))
      others.push_back(key);
  return others;
}

/// Refuses keys that are not known, each by its place.
void check_keys(const Place& at, const std::vector<std::string_view>& known, std::string_view advice) {
  MistakeList found;
  for (const std::string& key : other_keys(at, known))
    found.add(fmt::format("{} is not supported; {}", at.text(key), advice));
  found.finish();
}

/// Formats that are patterns.
constexpr std::pair<std::string_view, const char*> kFormats[] = {
    {"date-time", "\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2})?(Z|[+-]\\d{2}:\\d{2})?"},
    {"time", "\\d{2}:\\d{2}(:\\d{2})?"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"ipv4", "\\d{1,3}(\\.\\d{1,3}){3}"},
    {"email", "[^ @]+@[^ @]+\\.[^ @]+"},
    {"uri", "[a-zA-Z][a-zA-Z0-9+.-]*:[^ ]+"}};

/// Keys that a user writes next to a $ref. Where several references follow each other, the first one's
/// description counts.
struct Beside {
  std::string description = {};
  std::string anchor = {};
  std::string anchor_place = {};

  void add(const Place& at) {
    if (description.empty()) description = text_at(at, "description");
    const std::string given = text_at(at, kAnchor);
    if (given.empty()) return;
    if (!anchor.empty() && anchor != given)
      refuse("{} is \"{}\", but \"{}\" stands beside what refers to it; remove one", at.text(kAnchor),
             shorten_text(given, 60), shorten_text(anchor, 60));
    anchor = given;
    if (anchor_place.empty()) anchor_place = at.text(kAnchor);
  }
};

/// What to say after a type that JSON Schema does not have.
std::string type_advice(const std::string& type) {
  static constexpr std::pair<std::string_view, std::string_view> kOther[] = {
      {"text", "\"string\""},
      {"str", "\"string\""},
      {"list", "\"array\""},
      {"bool", "\"boolean\""},
      {"int", "\"integer\""},
      {"float", "\"number\""},
      {"double", "\"number\""},
      {"decimal", "\"number\""},
      {"dict", "\"object\""},
      {"map", "\"object\""},
      {"enum", "\"enum\": […]"},
      {"date", "\"string\" with \"format\": \"date\""},
      {"pattern", "\"string\" with \"pattern\""}};
  static const std::vector<std::string> kNames = {"string",  "number", "integer",
                                                  "boolean", "array",  "object"};
  const std::string small = small_letters(type);
  const auto* other = std::ranges::find(kOther, small, [](const auto& each) { return each.first; });
  if (other != std::end(kOther)) return fmt::format("; did you mean {}?", other->second);
  if (const std::string near = nearest_spelling(type, kNames); !near.empty())
    return fmt::format("; did you mean \"{}\"?", near);
  return "; use string, number, integer, boolean, array or object";
}

class SchemaReader {
 public:
  SchemaReader(const ordered_json& root, std::string path, const JsonFile* file)
      : root_(root), path_(std::move(path)), file_(file) {}

  std::vector<Attribute> read() {
    std::vector<Attribute> attributes;
    found_.attempt([&] {
      const Place object = resolve({&root_, path_, file_});
      check_type(object);
      attributes = read_properties(object, 1);
    });
    if (file_) found_.sort_by_line(file_->path);
    found_.shorten(file_ ? file_->path : path_);
    found_.finish();
    return attributes;
  }

 private:
  /// Marks an object as being read for as long as this lives. Refuses one that is being read already: it
  /// contains itself.
  class Opened {
   public:
    Opened(std::vector<const ordered_json*>& open, const Place& at) : open_(open) {
      if (std::ranges::find(open, at.schema) != open.end())
        refuse("{}: {} contains itself; sheaf fills objects of a fixed depth: write out the levels",
               at.text(),
               at.definition.empty() ? "this object"
                                     : fmt::format("the definition {}", shorten_text(at.definition, 60)));
      open_.push_back(at.schema);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() { open_.pop_back(); }

   private:
    std::vector<const ordered_json*>& open_;
  };

  /// The properties of an object as attributes; `depth`: 1 for those of the outermost. One that cannot be
  /// read is noted, and a text in its place.
  std::vector<Attribute> read_properties(const Place& object, int32_t depth) {
    const Opened opened(open_, object);
    // All keys are written and no others, so `required` and `additionalProperties` are met.
    found_.attempt([&] {
      check_keys(object, {"type", "properties", "description", "required", "additionalProperties"},
                 "an object with properties is");
    });
    const auto properties = object.schema->find("properties");
    const std::string path = key_path(object.path, "properties");
    if (depth > kDeepest)
      refuse("{}: objects are at most {} levels deep; make these keys of the object around them",
             object.text("properties"), kDeepest);
    if (properties == object.schema->end() || !properties->is_object() || properties->empty())
      refuse("{} must be an object with at least one key", object.text("properties"));
    properties_ += properties->size();
    if (properties_ > kMostProperties)
      refuse("{}: the schema has more than {} keys, those of inner objects counted",
             object.text("properties"), kMostProperties);
    std::vector<Attribute> attributes;
    for (const auto& [name, schema] : properties->items()) {
      if (found_.full()) break;
      const Place at = object.inner(schema, key_path(path, name));
      Attribute attribute{name, ""};
      found_.attempt([&] {
        if (name.find_first_not_of(" \t\r\n") == std::string::npos || name.size() > kLongestName)
          refuse("{}: a key must have a name of at most {} bytes", at.text(), kLongestName);
        attribute = read_property(at, name, depth);
      });
      attributes.push_back(std::move(attribute));
    }
    return attributes;
  }

  /// Follows references to other parts of the same schema.
  Place resolve(Place at, Beside* beside = nullptr) const {
    for (int i = 0; i < kMostReferences; ++i) {
      if (!at.schema->is_object())
        refuse("{}: a schema must be an object, not {}", at.text(), written(*at.schema));
      if (beside) beside->add(at);
      const auto all = at.schema->find("allOf");
      if (all != at.schema->end() && all->is_array() && all->size() == 1) {
        check_alone(at, "allOf");
        at = at.inner(all->front(), key_path(at.path, "allOf[0]"));
        continue;
      }
      if (!at.schema->contains("$ref")) return at;
      check_alone(at, "$ref");
      const std::string target = text_at(at, "$ref");
      at = {&referred(at, target), at.path, at.file, target};
    }
    refuse("{}: the references go in a circle", at.text("$ref"));
  }

  /// Refuses other keys next to a reference: they would restrict the schema that it names.
  static void check_alone(const Place& at, std::string_view reference) {
    check_keys(at, {reference, "description"}, fmt::format("beside {} write all in one schema", reference));
  }

  /// What a reference names: a JSON pointer into this schema, such as #/$defs/Price.
  const ordered_json& referred(const Place& at, const std::string& target) const {
    const ordered_json* found = target.starts_with("#") ? &root_ : nullptr;
    for (size_t begin = 1; found != nullptr && begin < target.size();) {
      if (target[begin] != '/') found = nullptr;
      const size_t end = std::min(target.find('/', begin + 1), target.size());
      if (found != nullptr) found = part_of(*found, pointer_key(target.substr(begin + 1, end - begin - 1)));
      begin = end;
    }
    if (found == nullptr)
      refuse("{}: \"{}\" is not a part of this schema{}", at.text("$ref"), shorten_text(target, 60),
             near_definition(target));
    return *found;
  }

  /// What to say of a reference that leads nowhere.
  std::string near_definition(const std::string& target) const {
    std::vector<std::string> defined;
    for (const char* key : {"$defs", "definitions"})
      if (const auto found = root_.find(key); found != root_.end() && found->is_object())
        for (const auto& [name, schema] : found->items())
          defined.push_back(fmt::format("#/{}/{}", key, name));
    const std::string near = nearest_spelling(target, defined);
    return near.empty() ? "; only such references (#/$defs/…) can be followed"
                        : fmt::format("; did you mean \"{}\"?", near);
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
    if (type != "\"object\"") refuse("{} must be \"object\", not {}", at.text("type"), type);
  }

  Attribute read_property(Place at, const std::string& name, int32_t depth) {
    Attribute attribute;
    attribute.name = name;
    attribute.nullable = false;
    attribute.line = at.line();
    Beside beside;
    at = resolve(at, &beside);
    at = without_null(at, attribute, beside);
    attribute.description = beside.description;
    std::string type = type_of(at, attribute);
    if (type.empty() && at.schema->contains("properties")) type = "object";
    const ordered_json& schema = *at.schema;
    std::vector<std::string_view> known = {"type", "description"};
    const auto read = [&](const auto& part) { found_.attempt(part); };
    if (schema.contains("enum") || schema.contains("const")) {
      known.insert(known.end(), {"enum", "const"});
      read([&] { read_options(at, type, attribute); });
    } else if (type == "string") {
      known.insert(known.end(), {"pattern", "format", "minLength", "maxLength"});
      read([&] { read_string(at, attribute); });
    } else if (type == "number" || type == "integer") {
      known.insert(known.end(), {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
      attribute.type = type == "number" ? ValueType::number : ValueType::integer;
      read([&] { read_bounds(at, attribute.limits); });
    } else if (type == "boolean") {
      attribute.type = ValueType::boolean;
      attribute.options = {"true", "false"};
    } else if (type == "array") {
      known.insert(known.end(), {"items", "minItems", "maxItems", "uniqueItems"});
      attribute.type = ValueType::list;
      read([&] { read_items(at, attribute, depth, beside); });
      read([&] { read_counts(at, attribute); });
    } else if (type == "object") {
      known.insert(known.end(), {"properties", "required", "additionalProperties"});
      attribute.type = ValueType::object;
      read([&] { attribute.fields = read_properties(at, depth + 1); });
      return attribute;  // read_properties() has checked the keys
    } else {
      refuse_type(at, type);
    }
    check_keys(at, known, "remove it");
    return attribute;
  }

  [[noreturn]] static void refuse_type(const Place& at, const std::string& type) {
    for (const char* key : {"anyOf", "oneOf", "allOf", "not", "if", "properties"})
      if (at.schema->contains(key)) refuse("{} is not supported; give one type", at.text(key));
    if (type.empty()) refuse("{}: the type is missing", at.text());
    refuse("{}: \"{}\" is not supported{}", at.text("type"), shorten_text(type, 60), type_advice(type));
  }

  /// Whether one of several schemas is what Pydantic writes beside the number of a Decimal: a text that
  /// spells it.
  static bool is_number_as_text(const ordered_json& all, const ordered_json& one) {
    const auto is = [](const ordered_json& schema, const char* type) {
      return schema.is_object() && schema.contains("type") && schema["type"] == type;
    };
    const bool spells = is(one, "string") && one.contains("pattern") && one["pattern"].is_string() &&
                        one["pattern"].get_ref<const std::string&>().find("\\d") != std::string::npos;
    return spells && std::ranges::any_of(all, [&](const auto& each) { return is(each, "number"); });
  }

  /// Takes null out of anyOf or oneOf with another schema.
  Place without_null(const Place& at, Attribute& attribute, Beside& beside) const {
    for (const char* key : {"anyOf", "oneOf"}) {
      const auto found = at.schema->find(key);
      if (found == at.schema->end()) continue;
      if (!found->is_array() || found->empty()) refuse("{} must be a list of schemas", at.text(key));
      std::optional<size_t> other;
      for (size_t i = 0; i < found->size(); ++i) {
        if ((*found)[i] == ordered_json{{"type", "null"}}) {
          attribute.nullable = true;
        } else if (is_number_as_text(*found, (*found)[i])) {
          continue;
        } else if (std::exchange(other, i)) {
          refuse("{} is not supported, except for one type and null; give one type", at.text(key));
        }
      }
      if (!other) refuse("{} allows only null; give a type", at.text(key));
      check_alone(at, key);
      return resolve(at.inner((*found)[*other], fmt::format("{}[{}]", key_path(at.path, key), *other)),
                     &beside);
    }
    return at;
  }

  /// Empty where there is none. A list of a type and null is that type.
  static std::string type_of(const Place& at, Attribute& attribute) {
    const auto found = at.schema->find("type");
    if (found == at.schema->end()) return {};
    const std::string path = at.text("type");
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
      refuse("{}: options can only be texts, of type string", at.text("type"));
    const bool fixed = at.schema->contains("const");
    const std::string path = at.text(fixed ? "const" : "enum");
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
      refuse("{} must be a number, not {}", at.text(key), written(*found));
    return found->get<double>();
  }

  static void read_bounds(const Place& at, ValueLimits& limits) {
    limits.least = number_at(at, "minimum");
    limits.most = number_at(at, "maximum");
    limits.above = number_at(at, "exclusiveMinimum");
    limits.below = number_at(at, "exclusiveMaximum");
    limits.multiple_of = number_at(at, "multipleOf");
    if (limits.multiple_of && !(*limits.multiple_of > 0)) refuse("{} must be above 0", at.text("multipleOf"));
    const double lower = std::max(limits.least.value_or(-HUGE_VAL), limits.above.value_or(-HUGE_VAL));
    const double upper = std::min(limits.most.value_or(HUGE_VAL), limits.below.value_or(HUGE_VAL));
    if (lower > upper || (lower == upper && (limits.above == lower || limits.below == upper)))
      refuse("{}: no number lies between the bounds", at.text());
  }

  static void read_string(const Place& at, Attribute& attribute) {
    const std::string format = text_at(at, "format"), pattern = text_at(at, "pattern");
    attribute.limits.shortest = number_at(at, "minLength");
    attribute.limits.longest = number_at(at, "maxLength");
    if (attribute.limits.shortest.value_or(0) > attribute.limits.longest.value_or(HUGE_VAL))
      refuse("{} is more than maxLength; no text is so long", at.text("minLength"));
    if (!format.empty() && !pattern.empty())
      refuse("{} beside format is not supported; remove one", at.text("pattern"));
    if (format == "date") attribute.type = ValueType::date;
    if (!format.empty() && format != "date") {
      const auto* known = std::ranges::find(kFormats, format,
                                            [](const auto& each) -> std::string_view { return each.first; });
      if (known == std::end(kFormats))
        refuse("{}: \"{}\" is not supported; use date, {}, or a pattern", at.text("format"),
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
      refuse("{}: {}", at.text("pattern"), error.what());
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

  /// A JSON Schema's pattern may match anywhere in a text; an attribute's pattern is the whole text.
  static std::string whole_text(const std::string& pattern) {
    const bool begins = pattern.starts_with('^'), ends = pattern.ends_with('$') && !pattern.ends_with("\\$");
    std::string inside = pattern.substr(begins ? 1 : 0, pattern.size() - (begins ? 1 : 0) - (ends ? 1 : 0));
    if ((begins || ends) && has_alternatives(inside))
      refuse("^ or $ belongs to one side of the | only; put the alternatives in parentheses");
    if (begins && ends) return inside;
    return fmt::format("{}({}){}", begins ? "" : ".*", inside, ends ? "" : ".*");
  }

  /// A list is of texts or of objects.
  void read_items(const Place& at, Attribute& attribute, int32_t depth, Beside& beside) {
    const auto found = at.schema->find("items");
    if (found == at.schema->end()) refuse("{} is missing; give {{\"type\": \"string\"}}", at.text("items"));
    Beside inside;
    inside.anchor = beside.anchor;
    inside.anchor_place = beside.anchor_place;
    const Place items = resolve(at.inner(*found, key_path(at.path, "items")), &inside);
    if (items.schema->value("type", ordered_json()) == "object" || items.schema->contains("properties")) {
      check_type(items);
      attribute.type = ValueType::entries;
      attribute.fields = read_properties(items, depth + 1);
      choose_anchor(at, attribute, inside);
      return;
    }
    check_keys(items, {"type", "description"}, "lists can only be of texts or objects");
    if (items.schema->value("type", ordered_json()) != "string")
      refuse("{} must be \"string\" or \"object\"; lists can only be of texts or objects",
             items.text("type"));
  }

  static void choose_anchor(const Place& at, Attribute& list, const Beside& given) {
    const std::string name = shorten_text(given.anchor, 60);
    switch (set_anchor(list, given.anchor)) {
      case AnchorTrouble::nothing:
        return;
      case AnchorTrouble::unknown:
        refuse("{}: \"{}\" is not a key of the objects of \"{}\"{}", given.anchor_place, name, list.name,
               suggest_spelling(given.anchor, field_names(list)));
      case AnchorTrouble::unfit:
        refuse("{}: \"{}\" cannot tell the objects of \"{}\" apart; name a string or an enum",
               given.anchor_place, name, list.name);
      case AnchorTrouble::none_fits:
        refuse("{}: no key could tell the objects of \"{}\" apart; add a string or an enum", at.text("items"),
               list.name);
    }
  }

  /// How many entries a list may have, and whether they may be alike.
  static void read_counts(const Place& at, Attribute& attribute) {
    ValueLimits& limits = attribute.limits;
    limits.fewest = number_at(at, "minItems");
    limits.most_items = number_at(at, "maxItems");
    const auto unique = at.schema->find("uniqueItems");
    if (unique != at.schema->end() && !unique->is_boolean())
      refuse("{} must be true or false, not {}", at.text("uniqueItems"), written(*unique));
    limits.unique = unique != at.schema->end() && *unique == true;
    if (limits.fewest.value_or(0) > limits.most_items.value_or(HUGE_VAL))
      refuse("{} is more than maxItems; no list has so many entries", at.text("minItems"));
    if (attribute.type != ValueType::entries) return;
    // A list of objects that has too many entries is cut at max_entries, not refused.
    const std::optional<double> most = std::exchange(limits.most_items, std::nullopt);
    if (!most) {
      const double fewest = std::ceil(limits.fewest.value_or(0));
      if (fewest > kEntriesLimit)
        refuse("{} of a list of objects must be at most {}", at.text("minItems"), kEntriesLimit);
      attribute.max_entries = std::max(attribute.max_entries, static_cast<int32_t>(fewest));
      return;
    }
    if (!(*most >= 1) || *most > kEntriesLimit || *most != std::floor(*most))
      refuse("{} of a list of objects must be a whole number from 1 to {}", at.text("maxItems"),
             kEntriesLimit);
    attribute.max_entries = static_cast<int32_t>(*most);
  }

  const ordered_json& root_;
  const std::string path_;
  const JsonFile* file_;
  MistakeList found_;
  std::vector<const ordered_json*> open_;  // objects around the one that is read, the outermost first
  size_t properties_ = 0;                  // of all objects so far
};

}  // namespace

std::vector<Attribute> read_json_schema(const ordered_json& schema, const std::string& path,
                                        const JsonFile* file) {
  return SchemaReader(schema, path, file).read();
}

}  // namespace sheaf
