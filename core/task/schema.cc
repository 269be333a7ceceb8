#include "core/task/schema.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

#include "core/base/error.h"
#include "core/task/value_path.h"
#include "core/text/spelling.h"

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
  if (attribute.fields.empty())
    return fmt::format("attribute \"{}\" has no attributes of its own; give it at least one", attribute.name);
  std::unordered_set<std::string_view> seen;
  for (const Attribute& field : attribute.fields)
    if (!seen.insert(field.name).second)
      return fmt::format("attribute \"{}\" appears twice in \"{}\"; remove one", field.name, attribute.name);
  if (depth_of(attribute) > kDeepest)
    return fmt::format("attribute \"{}\" is nested deeper than {} levels; make inner attributes its own",
                       attribute.name, kDeepest);
  if (count_fields(attribute) > kMostFields)
    return fmt::format("attribute \"{}\" has more than {} attributes of its own; leave out some",
                       attribute.name, kMostFields);
  return {};
}

std::string set_anchor(Attribute& list, std::string_view name) {
  const auto fits = [&](const Attribute& field) {
    return name.empty() ? field.type == ValueType::text || field.type == ValueType::span : field.name == name;
  };
  const auto found = std::ranges::find_if(list.fields, fits);
  if (found == list.fields.end())
    return name.empty() ? fmt::format(
                              "no attribute of the entries of \"{}\" is a text that could tell them "
                              "apart; add one, or name another with anchor",
                              list.name)
                        : fmt::format("the anchor \"{}\" of \"{}\" is not one of its attributes",
                                      shorten_text(name, 60), list.name);
  if (!can_be_anchor(found->type))
    return fmt::format("the anchor \"{}\" of \"{}\" must be a text, span, enum, date or pattern", found->name,
                       list.name);
  list.anchor = static_cast<size_t>(found - list.fields.begin());
  return {};
}

std::string path_trouble(const Category& category) {
  for (const Attribute& plain : category.attributes) {
    const auto path = read_path(plain.name);
    if (!path || (path->size() == 1 && !path->front().entry)) continue;
    for (const Attribute& other : category.attributes)
      if (other.nested() && other.name == path->front().name)
        return fmt::format("attribute \"{}\" reads as a path into \"{}\"; rename it",
                           shorten_text(plain.name, 60), other.name);
  }
  return {};
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
