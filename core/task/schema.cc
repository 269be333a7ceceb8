#include "core/task/schema.h"

namespace sheaf {

const Category* Schema::find(std::string_view name) const {
  for (const Category& category : categories)
    if (category.name == name) return &category;
  return nullptr;
}

void free_spans(Schema& schema) {
  for (Category& category : schema.categories)
    for (Attribute& attribute : category.attributes)
      if (attribute.type == ValueType::span) attribute.type = ValueType::text;
}

}  // namespace sheaf
