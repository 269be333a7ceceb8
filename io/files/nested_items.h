#pragma once
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/metrics/metric.h"
#include "core/task/schema.h"

namespace sheaf {

/// What an attribute holds: a value, or values by key, or a list of such objects.
struct ValueShape {
  bool list = false;                         ///< of objects
  std::map<std::string, ValueShape> fields;  ///< empty: a value

  bool nested() const { return list || !fields.empty(); }
  /// Adds the keys that a value has.
  void add(const nlohmann::json& value);
  /// Adds what the schema says that an attribute holds.
  void add(const Attribute& attribute);
  /// Marks as lists of objects what the schema says are such: gold may have an object alone for one of them.
  void mark_lists(const Attribute& attribute);
  /// Adds the keys of a value that are not there yet; values stay values.
  void add_missing(const nlohmann::json& value);
};

/// A key as it is spelled in a path of several.
std::string path_key(const std::string& key);

/// Whether a value is an object or holds one.
bool holds_objects(const nlohmann::json& value);

/// Where a field stands: variants[1].price in gold and in the answer, empty where one has no such entry, and
/// variants.price in the schema.
struct FieldPlace {
  std::string gold, given, name;  ///< as path_text() spells it
};

/// How the values of one document are read.
struct FieldReader {
  bool answered = true;  ///< the document has a row
  std::function<MetricItem(const FieldPlace&)> make_item;
  /// The accepted texts of a value that gold has at this place.
  std::function<std::vector<std::string>(const FieldPlace&, const nlohmann::json&)> references;
  std::function<std::vector<std::string>(const nlohmann::json&)> texts;  ///< of a predicted value
};

/// Adds an item for every field of `gold`, with its value in `given`; null: none. Entries of lists are paired
/// so that as many fields as possible are right, and those without a partner are in an item of counts for
/// each list and each of its fields. So the items depend on gold and the shape only. Throws BadText where
/// gold does not have the shape. Returns whether a list was too long to be paired as a whole.
bool add_nested_items(const std::string& attribute, const ValueShape& shape, const nlohmann::json& gold,
                      const nlohmann::json& given, const FieldReader& reader, std::vector<MetricItem>& items);

}  // namespace sheaf
