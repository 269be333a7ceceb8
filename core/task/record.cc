#include "core/task/record.h"

#include <fmt/ranges.h>

namespace sheaf {

std::string whole_document(const Record& record) {
  return record.documents.empty() ? record.document : fmt::format("{}", fmt::join(record.documents, "\n\n"));
}

}  // namespace sheaf
