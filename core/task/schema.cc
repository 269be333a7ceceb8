#include "core/task/schema.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace sheaf {

const Category* Schema::find(std::string_view name) const {
  const auto found = std::ranges::find(categories, name, &Category::name);
  return found == categories.end() ? nullptr : &*found;
}

const Category& Schema::of(std::string_view name) const {
  const Category* found = find(name);
  if (!found) fail("a record of the unknown category \"{}\" reached the task", name);
  return *found;
}

double decimal_step(int32_t digits) {
  double step = 1;
  for (int32_t i = 0; i < digits; ++i) step *= 10;
  return 1 / step;
}

std::optional<int32_t> decimals_of(const std::optional<double>& step) {
  for (int32_t digits = 1; step && digits <= kMostDecimals; ++digits)
    if (*step == decimal_step(digits)) return digits;
  return std::nullopt;
}

std::string Schema::place(const Attribute& attribute) const {
  if (file.empty()) return "task.schema";
  return attribute.line > 0 ? fmt::format("{}:{}", file, attribute.line) : file;
}

const Attribute* find_nested(const Schema& schema) {
  for (const Category& category : schema.categories)
    for (const Attribute& attribute : category.attributes)
      if (attribute.nested()) return &attribute;
  return nullptr;
}

namespace {

int32_t depth_of(const Attribute& attribute) {
  int32_t depth = 0;
  for (const Attribute& field : attribute.fields) depth = std::max(depth, depth_of(field));
  return depth + 1;
}

/// An anchor is copied from a list of texts.
bool can_be_anchor(ValueType type) {
  using enum ValueType;
  return type == text || type == span || type == enumeration || type == date || type == pattern;
}

/// Calls `change` with every attribute and every field.
template <class Change>
void change_all(std::vector<Attribute>& attributes, const Change& change) {
  for (Attribute& attribute : attributes) {
    change(attribute);
    change_all(attribute.fields, change);
  }
}

}  // namespace

size_t count_fields(const Attribute& attribute) {
  size_t count = attribute.fields.size();
  for (const Attribute& field : attribute.fields) count += count_fields(field);
  return count;
}

std::string fields_trouble(const Attribute& attribute) {
  if (depth_of(attribute) > kDeepest)
    return fmt::format("attribute \"{}\" is nested deeper than {} levels; make inner attributes its own",
                       attribute.name, kDeepest);
  if (count_fields(attribute) > kMostFields)
    return fmt::format("attribute \"{}\" has more than {} attributes of its own; leave out some",
                       attribute.name, kMostFields);
  return {};
}

AnchorTrouble set_anchor(Attribute& list, std::string_view name) {
  const auto is_text = [](const Attribute& field) {
    return field.type == ValueType::text || field.type == ValueType::span;
  };
  const auto fits = [](const Attribute& field) { return can_be_anchor(field.type); };
  auto found = name.empty() ? std::ranges::find_if(list.fields, is_text)
                            : std::ranges::find(list.fields, name, &Attribute::name);
  if (name.empty() && found == list.fields.end()) found = std::ranges::find_if(list.fields, fits);
  if (found == list.fields.end()) return name.empty() ? AnchorTrouble::none_fits : AnchorTrouble::unknown;
  if (!fits(*found)) return AnchorTrouble::unfit;
  list.anchor = static_cast<size_t>(found - list.fields.begin());
  return AnchorTrouble::nothing;
}

std::vector<std::string> field_names(const Attribute& attribute) {
  std::vector<std::string> names;
  for (const Attribute& field : attribute.fields) names.push_back(field.name);
  return names;
}

std::string attribute_line(const Attribute& attribute) {
  std::string line = attribute.name;
  if (!attribute.description.empty()) line += ": " + attribute.description;
  if (attribute.type == ValueType::number || attribute.type == ValueType::integer) {
    line += attribute.type == ValueType::number ? " (a number" : " (a whole number";
    line += attribute.unit.empty() ? ")" : ", in " + attribute.unit + ")";
  }
  if (attribute.type == ValueType::pattern) line += " (matches " + attribute.pattern->text() + ")";
  if (attribute.type == ValueType::boolean) line += " (true or false)";
  if (attribute.type == ValueType::date) line += " (a date, as 2026-03-31)";
  if (attribute.type == ValueType::list) line += " (a list)";
  if (attribute.type == ValueType::object) line += " (an object)";
  if (attribute.type == ValueType::entries) line += " (a list of objects)";
  if (attribute.type == ValueType::enumeration) {
    line += " (one of";
    for (size_t i = 0; i < attribute.options.size(); ++i) line += (i ? ", " : " ") + attribute.options[i];
    line += ")";
  }
  return line + "\n";
}

void add_locale(Schema& schema, const Locale& locale) {
  for (Category& category : schema.categories)
    change_all(category.attributes, [&](Attribute& attribute) {
      if (attribute.locale == Locale()) attribute.locale = locale;
    });
}

void free_spans(Schema& schema) {
  for (Category& category : schema.categories)
    change_all(category.attributes, [](Attribute& attribute) {
      if (attribute.type == ValueType::span) attribute.type = ValueType::text;
    });
}

}  // namespace sheaf
