#include "core/task/schema.h"

#include <algorithm>

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
  if (attribute.type == ValueType::enumeration) {
    line += " (one of";
    for (size_t i = 0; i < attribute.options.size(); ++i) line += (i ? ", " : " ") + attribute.options[i];
    line += ")";
  }
  return line + "\n";
}

void add_locale(Schema& schema, const Locale& locale) {
  for (Category& category : schema.categories)
    for (Attribute& attribute : category.attributes)
      if (attribute.locale == Locale()) attribute.locale = locale;
}

void free_spans(Schema& schema) {
  for (Category& category : schema.categories)
    for (Attribute& attribute : category.attributes)
      if (attribute.type == ValueType::span) attribute.type = ValueType::text;
}

}  // namespace sheaf
