#include "core/task/schema.h"

namespace sheaf {

const Category* Schema::find(std::string_view name) const {
  for (const Category& category : categories)
    if (category.name == name) return &category;
  return nullptr;
}

}  // namespace sheaf
