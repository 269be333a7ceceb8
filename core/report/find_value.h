#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/task/row.h"

namespace sheaf {

/// A column of a document, UTF-8.
struct DocumentColumn {
  std::string name, text;
};

/// The texts that a value consists of, as a document would hold them: none for null, the parts of a list.
std::vector<std::string> value_texts(const RowValue& value);

/// Where the columns hold `text`: as a word of its own rather than inside one, as it is written rather than
/// in another case (ASCII), in an earlier place rather than in a later one.
std::optional<RowSpan> find_in_columns(const std::vector<DocumentColumn>& columns, std::string_view text);

}  // namespace sheaf
