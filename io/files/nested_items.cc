#include "io/files/nested_items.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"
#include "core/metrics/assignment.h"
#include "core/metrics/attributes.h"
#include "core/task/gold_kinds.h"
#include "core/task/value_path.h"

namespace sheaf {
namespace {

using nlohmann::json;

/// A value as it is compared, of gold or of an answer.
struct Node {
  std::vector<std::vector<std::string>> references;  ///< of a value of gold
  std::vector<std::string> texts;                    ///< of a predicted value
  std::vector<Node> parts;                           ///< fields in the order of the shape, or entries
  int64_t values = 0;                                ///< values in it that are not null
  bool strange = false;                              ///< a predicted entry that is no object
};

/// Entries that are paired at once, by how deep their list is: each pair of entries needs a pairing of the
/// lists in them. In a longer list, equal entries are paired, and the others in batches, in their order.
constexpr size_t kLots[] = {kMostPaired, 32, 8};

const json& field_of(const json& object, const std::string& name) {
  static const json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? none : *found;
}

/// All texts of an entry, the same for entries that are equal.
void append_texts(const Node& node, std::string& text) {
  for (const auto& reference : node.references) text += reference.front() + '\x1f';
  for (const std::string& each : node.texts) text += each + '\x1f';
  text += '\x1e';
  for (const Node& part : node.parts) append_texts(part, text);
}

class NestedItems {
 public:
  NestedItems(const FieldReader& reader, std::vector<MetricItem>& items) : reader_(reader), items_(items) {}

  bool add(const std::string& attribute, const ValueShape& shape, const json& gold, const json& given) {
    const std::string name = path_key(attribute);
    add_counts(shape, name, name, false);
    const Node wanted = read_gold(shape, gold, {name, "", name});
    const Node answer = read_given(shape, given);
    add_field(shape, {name, name, name}, name, wanted, &answer);
    for (auto& [path, count] : counts_) {
      MetricItem item = reader_.make_item({path, "", count.name});
      item.entries = count.entries;
      items_.push_back(std::move(item));
    }
    return lots_;
  }

 private:
  struct Count {
    std::string name;
    EntryCounts entries = {};
  };

  static FieldPlace inner(const FieldPlace& place, const std::string& name) {
    const std::string step = "." + path_key(name);
    return {place.gold.empty() ? "" : place.gold + step, place.given.empty() ? "" : place.given + step,
            place.name + step};
  }

  /// A count for each list and each field of its entries: "variants[]", "variants[].price".
  void add_counts(const ValueShape& shape, const std::string& path, const std::string& name, bool in_list) {
    const std::string own = shape.list ? path + "[]" : path;
    if (shape.list || (in_list && shape.fields.empty())) counts_.emplace(own, Count{name});
    for (const auto& [field, part] : shape.fields)
      add_counts(part, own + "." + path_key(field), name + "." + path_key(field), in_list || shape.list);
  }

  Node read_gold(const ValueShape& shape, const json& gold, const FieldPlace& place) const {
    Node node;
    const bool absent = gold.is_null() || (gold.is_array() && gold.empty());
    if (!shape.nested()) {
      for (std::string& text : absent ? std::vector<std::string>() : reader_.references(place, gold))
        node.references.push_back({std::move(text)});
      node.values = has_value(node.references) ? 1 : 0;
    } else if (shape.list) {
      const json entries = absent ? json::array() : gold.is_object() ? json::array({gold}) : gold;
      if (!entries.is_array() || !std::ranges::all_of(entries, &json::is_object))
        reject("\"gold\": {}", wrong_kind(place.name, kListKind, gold));
      ValueShape entry = shape;
      entry.list = false;
      for (const json& each : entries) node.parts.push_back(read_gold(entry, each, place));
    } else {
      if (!absent && !gold.is_object()) reject("\"gold\": {}", wrong_kind(place.name, kObjectKind, gold));
      for (const auto& [name, part] : shape.fields)
        node.parts.push_back(read_gold(part, field_of(gold, name), inner(place, name)));
    }
    for (const Node& part : node.parts) node.values += part.values;
    return node;
  }

  Node read_given(const ValueShape& shape, const json& given) const {
    Node node;
    if (!shape.nested()) {
      node.texts = reader_.texts(given);
      node.values = gives_value(node.texts) ? 1 : 0;
    } else if (shape.list) {
      ValueShape entry = shape;
      entry.list = false;
      for (const json& each : given.is_array() ? given : json::array({given})) {
        if (each.is_null()) continue;
        node.parts.push_back(read_given(entry, each));
        node.parts.back().strange = !each.is_object();
      }
    } else {
      for (const auto& [name, part] : shape.fields)
        node.parts.push_back(read_given(part, field_of(given, name)));
    }
    for (const Node& part : node.parts) node.values += part.values;
    return node;
  }

  /// How many fields of an entry are right, those of lists in it as well as they can be paired.
  int64_t count_right(const ValueShape& shape, const Node& gold, const Node& given) {
    if (!shape.nested()) {
      const bool both = gold.values > 0 && given.values > 0;
      return both && agrees(given.texts, gold.references) ? 1 : 0;
    }
    int64_t right = 0;
    if (shape.list) {
      const std::vector<size_t> pairs = pair(shape, gold, given);
      for (size_t i = 0; i < pairs.size(); ++i)
        if (pairs[i] != kUnpaired) right += count_entry(shape, gold.parts[i], given.parts[pairs[i]]);
    } else {
      right = count_entry(shape, gold, given);
    }
    return right;
  }

  int64_t count_entry(const ValueShape& shape, const Node& gold, const Node& given) {
    int64_t right = 0;
    size_t part = 0;
    for (const auto& [name, field] : shape.fields) {
      right += count_right(field, gold.parts[part], given.parts[part]);
      ++part;
    }
    return right;
  }

  /// The entry of the answer for each entry of gold.
  std::vector<size_t> pair(const ValueShape& shape, const Node& gold, const Node& given) {
    std::vector<size_t> pairs(gold.parts.size(), kUnpaired), rows, columns;
    std::vector<bool> taken(given.parts.size());
    const size_t lot = kLots[std::min(depth_, std::size(kLots) - 1)];
    if (std::max(pairs.size(), taken.size()) > lot) {
      lots_ = true;
      pair_equal(gold, given, pairs, taken);
    }
    for (size_t i = 0; i < pairs.size(); ++i)
      if (pairs[i] == kUnpaired) rows.push_back(i);
    for (size_t j = 0; j < taken.size(); ++j)
      if (!taken[j]) columns.push_back(j);
    ++depth_;
    for (size_t begin = 0; begin < std::min(rows.size(), columns.size()); begin += lot) {
      const size_t height = std::min(lot, rows.size() - begin), width = std::min(lot, columns.size() - begin);
      std::vector<int64_t> right;
      right.reserve(height * width);
      for (size_t i = 0; i < height; ++i)
        for (size_t j = 0; j < width; ++j)
          right.push_back(count_entry(shape, gold.parts[rows[begin + i]], given.parts[columns[begin + j]]));
      const std::vector<size_t> best = pair_entries(right, height, width);
      for (size_t i = 0; i < height; ++i)
        if (best[i] != kUnpaired) pairs[rows[begin + i]] = columns[begin + best[i]];
    }
    --depth_;
    return pairs;
  }

  static void pair_equal(const Node& gold, const Node& given, std::vector<size_t>& pairs,
                         std::vector<bool>& taken) {
    std::unordered_map<std::string, std::vector<size_t>> of_text;  // the last is the next to take
    for (size_t j = given.parts.size(); j-- > 0;) {
      std::string text;
      append_texts(given.parts[j], text);
      of_text[text].push_back(j);
    }
    for (size_t i = 0; i < gold.parts.size(); ++i) {
      std::string text;
      append_texts(gold.parts[i], text);
      const auto equal = of_text.find(text);
      if (equal == of_text.end() || equal->second.empty()) continue;
      pairs[i] = equal->second.back();
      taken[pairs[i]] = true;
      equal->second.pop_back();
    }
  }

  /// `path`: with [] for entries. `given`: null where gold's entry has no partner.
  void add_field(const ValueShape& shape, const FieldPlace& place, const std::string& path, const Node& gold,
                 const Node* given) {
    if (!shape.nested()) {
      MetricItem item = reader_.make_item(place);
      item.references = gold.references;
      if (reader_.answered) item.prediction = given ? given->texts : std::vector<std::string>();
      items_.push_back(std::move(item));
    } else if (shape.list) {
      add_list(shape, place, path + "[]", gold, given);
    } else {
      add_object(shape, place, path, gold, given);
    }
  }

  void add_object(const ValueShape& shape, const FieldPlace& place, const std::string& path, const Node& gold,
                  const Node* given) {
    size_t part = 0;
    for (const auto& [name, field] : shape.fields) {
      add_field(field, inner(place, name), path + "." + path_key(name), gold.parts[part],
                given ? &given->parts[part] : nullptr);
      ++part;
    }
  }

  void add_list(const ValueShape& shape, const FieldPlace& place, const std::string& path, const Node& gold,
                const Node* given) {
    static const Node none;
    const Node& answer = given ? *given : none;
    const std::vector<size_t> pairs = pair(shape, gold, answer);
    EntryCounts& counts = counts_.at(path).entries;
    counts.wanted += std::ssize(gold.parts);
    counts.given += std::ssize(answer.parts);
    std::vector<bool> taken(answer.parts.size());
    ++depth_;
    for (size_t i = 0; i < pairs.size(); ++i) {
      FieldPlace entry{fmt::format("{}[{}]", place.gold, i), "", place.name};
      const Node* partner = nullptr;
      if (pairs[i] != kUnpaired) {
        partner = &answer.parts[pairs[i]];
        taken[pairs[i]] = true;
        entry.given = fmt::format("{}[{}]", place.given, pairs[i]);
        const int64_t right = count_entry(shape, gold.parts[i], *partner);
        counts.found += right > 0 && 2 * right >= std::max(gold.parts[i].values, partner->values) ? 1 : 0;
        counts.invented += partner->strange ? 1 : 0;
      }
      add_object(shape, entry, path, gold.parts[i], partner);
    }
    --depth_;
    for (size_t j = 0; j < taken.size(); ++j)
      if (!taken[j]) count_invented(shape, path, answer.parts[j]);
  }

  /// Counts the values of an entry that no entry of gold is paired with.
  void count_invented(const ValueShape& shape, const std::string& path, const Node& entry) {
    counts_.at(path).entries.invented += entry.strange ? 1 : 0;
    size_t part = 0;
    for (const auto& [name, field] : shape.fields)
      count_invented_field(field, path + "." + path_key(name), entry.parts[part++]);
  }

  void count_invented_field(const ValueShape& shape, const std::string& path, const Node& node) {
    if (!shape.nested()) {
      counts_.at(path).entries.invented += node.values;
    } else if (shape.list) {
      counts_.at(path + "[]").entries.given += std::ssize(node.parts);
      for (const Node& entry : node.parts) count_invented(shape, path + "[]", entry);
    } else {
      size_t part = 0;
      for (const auto& [name, field] : shape.fields)
        count_invented_field(field, path + "." + path_key(name), node.parts[part++]);
    }
  }

  const FieldReader& reader_;
  std::vector<MetricItem>& items_;
  std::map<std::string, Count> counts_;  // by path with []
  size_t depth_ = 0;
  bool lots_ = false;
};

}  // namespace

std::string path_key(const std::string& key) {
  constexpr std::string_view rest = "._";
  std::string text = path_text({{key}, {"_"}});
  text.resize(text.size() - rest.size());
  return text;
}

bool holds_objects(const json& value) {
  return value.is_object() || (value.is_array() && std::ranges::any_of(value, &json::is_object));
}

void ValueShape::add(const json& value) {
  if (value.is_array()) {
    if (!holds_objects(value)) return;
    list = true;
    for (const json& entry : value)
      if (entry.is_object()) add(entry);
  } else if (value.is_object()) {
    for (const auto& [name, part] : value.items()) fields[name].add(part);
  }
}

void ValueShape::add(const Attribute& attribute) {
  list = list || attribute.type == ValueType::entries;
  for (const Attribute& field : attribute.fields) fields[field.name].add(field);
}

void ValueShape::mark_lists(const Attribute& attribute) {
  list = list || attribute.type == ValueType::entries;
  for (const Attribute& field : attribute.fields)
    if (const auto own = fields.find(field.name); own != fields.end()) own->second.mark_lists(field);
}

void ValueShape::add_missing(const json& value) {
  if (list && value.is_array())
    for (const json& entry : value) add_missing(entry);
  if (!value.is_object()) return;
  for (const auto& [name, part] : value.items()) {
    const auto [field, added] = fields.try_emplace(name);
    if (added)
      field->second.add(part);
    else if (field->second.nested())
      field->second.add_missing(part);
  }
}

bool add_nested_items(const std::string& attribute, const ValueShape& shape, const json& gold,
                      const json& given, const FieldReader& reader, std::vector<MetricItem>& items) {
  return NestedItems(reader, items).add(attribute, shape, gold, given);
}

}  // namespace sheaf
