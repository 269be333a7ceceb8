#include "core/task/item.h"

#include <fmt/ranges.h>

namespace sheaf {

std::string whole_document(const Item& item) {
  return item.documents.empty() ? item.document : fmt::format("{}", fmt::join(item.documents, "\n\n"));
}

}  // namespace sheaf
