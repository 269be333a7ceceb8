#include <algorithm>
#include <filesystem>

#include "core/text/spelling.h"
#include "io/datasets/readers.h"

// Amazon Reviews 2023, of which a file holds the products of a category (meta_All_Beauty.jsonl: lines
// {"main_category", "title", "features", "description", "details", "store", "price", "parent_asin"}) or its
// reviews (All_Beauty.jsonl: lines {"rating", "title", "text", "asin", "parent_asin"}). A product's text is
// what the HPD paper takes: title, bullet points and description. Values of "details" are left out, as they
// are what is to be found.

namespace sheaf {
namespace {

/// "All Beauty" of meta_All_Beauty.jsonl.gz.
std::string category_of_file(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name.resize(std::min(name.find('.'), name.size()));
  for (const std::string_view start : {"raw_meta_", "raw_review_", "meta_"})
    if (name.starts_with(start)) name.erase(0, start.size());
  std::ranges::replace(name, '_', ' ');
  return name;
}

/// A text, or nothing where the field is missing, null or empty.
std::string text_or_nothing(const ordered_json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) return {};
  return trimmed(text_field(line, key));
}

/// Adds the texts of a list, a line each. The dataset's description is a list too.
void add_texts(const ordered_json& line, const char* key, std::string& document) {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) return;
  const ordered_json texts = found->is_array() ? *found : ordered_json::array({*found});
  for (const ordered_json& text : texts) {
    if (!text.is_string()) reject("\"{}\" has {}, not text", key, kind_of(text));
    if (const std::string bare = trimmed(text.get<std::string>()); !bare.empty())
      document += (document.empty() ? "" : "\n") + bare;
  }
}

ordered_json reviewed_row(ordered_json id, std::string category, std::string document) {
  if (document.empty()) reject("the entry has no text");
  return {{"id", std::move(id)},
          {"category", std::move(category)},
          {"document", std::move(document)},
          {"gold", ordered_json::object()}};
}

ordered_json entry_of(const ordered_json& line, int64_t number, const std::string& category) {
  const std::string product = text_field(line, "parent_asin");
  std::string document = text_or_nothing(line, "title");
  if (line.contains("rating")) {
    add_texts(line, "text", document);
    // One product has many reviews, and they have no ids.
    return reviewed_row(fmt::format("{}/{}", product, number), category, std::move(document));
  }
  add_texts(line, "features", document);
  add_texts(line, "description", document);
  const std::string own = text_or_nothing(line, "main_category");
  return reviewed_row(product, own.empty() ? category : own, std::move(document));
}

}  // namespace

std::unique_ptr<DatasetReader> open_amazon_reviews(const DatasetPlace& at) {
  return json_lines_reader(at.path, "Amazon Reviews 2023", {"parent_asin"},
                           [category = category_of_file(at.path)](const ordered_json& line, int64_t number) {
                             return entry_of(line, number, category);
                           });
}

}  // namespace sheaf
