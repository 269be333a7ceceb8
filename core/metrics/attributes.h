#pragma once
#include <string>
#include <vector>

namespace sheaf {

// How the metric `attributes` reads an item; MetricItem says what the two sides are.

/// Whether it is a value, not one of the words for none.
bool gives_value(const std::vector<std::string>& prediction);
/// Whether the document has a value.
bool has_value(const std::vector<std::vector<std::string>>& references);
/// Whether a value is one that is accepted.
bool agrees(const std::vector<std::string>& prediction,
            const std::vector<std::vector<std::string>>& references);

}  // namespace sheaf
