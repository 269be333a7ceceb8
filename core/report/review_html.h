#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/task/record.h"
#include "core/task/row.h"
#include "core/task/schema.h"

namespace sheaf {

struct ReviewItem {
  size_t record = 0;  ///< of Review::records
  Attribute attribute;
  RowAnswer answer;
};

/// What the page shows.
struct Review {
  std::string run;          ///< name of the run's folder
  std::string key;          ///< tells the run from others; the browser keeps verdicts under it
  bool least_sure = false;  ///< the items are those of the run that the model was least sure of
  std::vector<Record> records;
  std::vector<ReviewItem> items;
};

/// The one script and the one style that the page has.
std::string_view review_script();
std::string_view review_style();

/// A page that needs nothing but itself, on which a person judges values and downloads the verdicts as gold
/// answers (docs/review.md). Texts of the run are data and never markup: they stand in a block of JSON, and
/// the script shows them as text. Its content security policy allows the script and the style with these
/// SHA-256 sums (base64), and nothing else.
std::string review_html(const Review& review, std::string_view script_sha256, std::string_view style_sha256);

}  // namespace sheaf
