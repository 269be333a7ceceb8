#include "core/task/asked_value.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/engine/stop_rules.h"
#include "core/task/prompt_text.h"
#include "core/text/json_parts.h"
#include "core/text/json_reader.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::string joined(std::string_view outer, std::string_view inner) {
  return fmt::format("{}{}{}", outer, outer.empty() || inner.empty() ? "" : ": ", inner);
}

/// Adds the values of an attribute. `path` and `about`: keys and descriptions of the objects around it.
void add_values(const Attribute& own, const std::string& path, const std::string& about,
                std::vector<AskedValue>& values) {
  const std::string name = path.empty() ? own.name : path + "." + own.name;
  if (own.type == ValueType::object) {
    for (const Attribute& field : own.fields) add_values(field, name, joined(about, own.description), values);
    return;
  }
  AskedValue& value = values.emplace_back(AskedValue{own, &own, name});
  value.attribute.name = name;
  value.attribute.description = joined(about, own.description);
  if (own.type != ValueType::entries) return;
  // Its anchors are asked for, as a list of texts.
  const Attribute& anchor = own.fields[own.anchor];
  value.attribute = {name + "." + anchor.name, joined(value.attribute.description, anchor.description),
                     ValueType::list};
  if (!anchor.options.empty())
    value.attribute.description =
        joined(value.attribute.description, fmt::format("any of {}", fmt::join(anchor.options, ", ")));
  std::vector<AskedValue> fields;
  for (size_t i = 0; i < own.fields.size(); ++i)
    if (i != own.anchor) add_values(own.fields[i], name, "", fields);
  value.fields = std::move(fields);
}

/// Adds the gold of the values of an attribute; `gold`: null where it is not known.
void add_gold(const Attribute& own, const json* gold, std::vector<AskedGold>& all) {
  const bool none = gold && (gold->is_null() || (gold->is_array() && gold->empty()));
  if (own.type == ValueType::object) {
    // An object that is null has no values.
    static const json null;
    for (const Attribute& field : own.fields) {
      const json* inner =
          gold && gold->is_object() && gold->contains(field.name) ? &gold->at(field.name) : nullptr;
      add_gold(field, none ? &null : inner, all);
    }
    return;
  }
  AskedGold& asked = all.emplace_back();
  if (own.type != ValueType::entries || !gold || none) {
    if (gold) asked.value = *gold;
    return;
  }
  json anchors = json::array();
  const std::string& key = own.fields[own.anchor].name;
  for (const json& entry : gold->is_array() ? *gold : json::array({*gold})) {
    const json anchor = entry.is_object() && entry.contains(key) ? single_gold(entry.at(key)) : json();
    if (anchor.is_null() || std::ranges::find(anchors, anchor) != anchors.end()) continue;
    anchors.push_back(anchor);
    asked.entries.push_back(entry);
  }
  // Entries of which none is named say nothing of the list's anchors.
  if (!anchors.empty()) asked.value = std::move(anchors);
}

std::string_view without_comma(std::string_view text) {
  text = trim(text);
  return text.ends_with(',') ? text.substr(0, text.size() - 1) : text;
}

/// The anchors of a list that a model wrote with whole objects; nothing where it is no such list.
std::optional<std::vector<std::string>> anchors_of_objects(const Attribute& list, std::string_view text) {
  const json read = read_json(text);
  if (!read.is_array() || read.empty()) return std::nullopt;
  std::vector<std::string> texts;
  for (const json& entry : read) {
    if (!entry.is_object()) return std::nullopt;
    for (const auto& [key, value] : entry.items()) {
      const bool anchor =
          key == list.fields[list.anchor].name || key.ends_with("." + list.fields[list.anchor].name);
      if (anchor && value.is_string()) texts.push_back(value.get<std::string>());
    }
  }
  return texts;
}

/// The answers about the entries that the answer `text` lists, in the order in which it will be read.
std::vector<std::vector<WantedAnswer>> wanted_entries(const AskedValue& list, const std::vector<json>& gold,
                                                      const std::string& text, const Tokenizer& tokenizer) {
  std::vector<Attribute> fields = list.own->fields;
  const std::string anchor = fields[list.own->anchor].name;
  fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(list.own->anchor));
  std::vector<std::vector<WantedAnswer>> answers;
  for (const std::string& listed : read_anchors(*list.own, text).texts) {
    const auto entry = std::ranges::find_if(
        gold, [&](const json& each) { return gold_text(single_gold(each.at(anchor))) == listed; });
    answers.push_back(entry == gold.end()
                          ? std::vector<WantedAnswer>(list.fields.size())
                          : wanted_values(list.fields, asked_gold(fields, *entry), tokenizer));
  }
  return answers;
}

/// Values of all entries that lists of objects may have. Depth and entries are bounded, so it fits.
int64_t most_values(const std::vector<Attribute>& attributes) {
  int64_t values = 0;
  for (const Attribute& each : attributes)
    values += !each.nested()
                  ? 1
                  : (each.type == ValueType::entries ? each.max_entries : 1) * most_values(each.fields);
  return values;
}

}  // namespace

std::vector<AskedValue> asked_values(const std::vector<Attribute>& attributes) {
  std::vector<AskedValue> values;
  for (const Attribute& attribute : attributes) add_values(attribute, "", "", values);
  return values;
}

int64_t most_entries(const std::vector<Attribute>& attributes) {
  int64_t most = 1;
  for (const Attribute& attribute : attributes)
    most = std::max(most, (attribute.type == ValueType::entries ? attribute.max_entries : 1) *
                              most_entries(attribute.fields));
  return most;
}

std::string too_many_asked(const std::vector<Attribute>& attributes) {
  constexpr int64_t kMostEntries = 2000, kMostValues = 20'000;
  if (const int64_t most = most_entries(attributes); most > kMostEntries)
    return fmt::format("{} entries inside of each other, more than {}", most, kMostEntries);
  const int64_t values = most_values(attributes);
  return values > kMostValues ? fmt::format("{} values, more than {}", values, kMostValues) : "";
}

int32_t list_depth(const std::vector<Attribute>& attributes) {
  int32_t most = 0;
  for (const Attribute& attribute : attributes)
    most = std::max(most, (attribute.type == ValueType::entries ? 1 : 0) + list_depth(attribute.fields));
  return most;
}

std::vector<Attribute> listed_attributes(std::span<const AskedValue> values) {
  std::vector<Attribute> all;
  for (const AskedValue& value : values) {
    all.push_back(value.attribute);
    std::ranges::move(listed_attributes(value.fields), std::back_inserter(all));
  }
  return all;
}

json single_gold(const json& gold) {
  if (!gold.is_array()) return gold;
  return gold.empty() ? json() : gold.front();
}

std::vector<AskedGold> asked_gold(const std::vector<Attribute>& attributes, const json& gold) {
  std::vector<AskedGold> all;
  for (const Attribute& attribute : attributes) {
    const auto known = gold.find(attribute.name);
    add_gold(attribute, known == gold.end() ? nullptr : &*known, all);
  }
  return all;
}

std::vector<std::optional<std::string>> written_values(const std::vector<Attribute>& attributes,
                                                       const json& gold) {
  std::vector<std::optional<std::string>> values;
  for (const Attribute& attribute : attributes) {
    const auto known = gold.find(attribute.name);
    values.push_back(known == gold.end() ? std::nullopt : write_value(attribute, *known));
  }
  return values;
}

std::vector<ShownValue> shown_values(std::span<const AskedValue> values,
                                     const std::vector<AskedGold>& known) {
  std::vector<ShownValue> shown;
  for (size_t i = 0; i < values.size(); ++i)
    if (const auto& gold = known[i].value)
      if (auto written = write_value(values[i].attribute, *gold))
        shown.push_back({values[i].attribute, *std::move(written)});
  for (size_t i = 0; i < values.size(); ++i) {
    if (known[i].entries.empty()) continue;
    std::vector<Attribute> fields = values[i].own->fields;
    const Attribute anchor = fields[values[i].own->anchor];
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(values[i].own->anchor));
    Attribute one = anchor;
    one.name = values[i].attribute.name;
    for (const json& entry : known[i].entries) {
      const auto named = write_value(anchor, single_gold(entry.at(anchor.name)));
      if (!named) continue;
      shown.push_back({one, *named});
      std::ranges::move(shown_values(values[i].fields, asked_gold(fields, entry)), std::back_inserter(shown));
    }
  }
  return shown;
}

std::vector<WantedAnswer> wanted_values(std::span<const AskedValue> values,
                                        const std::vector<AskedGold>& known, const Tokenizer& tokenizer) {
  std::vector<WantedAnswer> answers(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<json>& gold = known[i].value;
    const auto written = gold ? write_value(values[i].attribute, *gold) : std::nullopt;
    if (!written) continue;
    // One of several options ends where it is chosen.
    const std::string text = " " + *written + (is_chosen(values[i].attribute) ? "" : ",\n");
    answers[i].tokens = encode_part(tokenizer, text);
    if (values[i].own->type == ValueType::entries)
      answers[i].entries = wanted_entries(values[i], known[i].entries, text, tokenizer);
  }
  return answers;
}

std::vector<const Answer*> inner_answers(const Answer& list, size_t entries, size_t fields) {
  std::vector<const Answer*> inner(entries * fields);
  for (const InnerAnswer& each : list.inner)
    if (const size_t at = static_cast<size_t>(each.entry) * fields + static_cast<size_t>(each.field);
        at < inner.size())
      inner[at] = &each.answer;
  return inner;
}

Tokens fit_anchor(std::string anchor, size_t most, const std::function<Tokens(const std::string&)>& encode) {
  for (Tokens tokens = encode(anchor);; tokens = encode(anchor)) {
    if (tokens.size() <= most) return tokens;
    if (anchor.empty()) {
      tokens.resize(most);
      return tokens;
    }
    size_t end = std::min(anchor.size() * most / tokens.size(), anchor.size() - 1);
    while (end > 0 && (static_cast<unsigned char>(anchor[end]) & 0xC0) == 0x80) --end;  // inside a character
    anchor.resize(end);
  }
}

Anchors read_anchors(const Attribute& list, std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text = line;
  const size_t end = literal_end(text);
  text = trim(text.substr(0, end));
  const bool open = end == std::string_view::npos && text.starts_with('[');
  Anchors anchors;
  std::vector<std::string> texts;
  if (auto objects = anchors_of_objects(list, without_comma(line))) {
    texts = *std::move(objects);
  } else if (auto first = anchors_of_objects(list, std::string(without_comma(line)) + "]")) {
    texts = *std::move(first);
    anchors.note = "the list breaks off";
  } else {
    Attribute plain{list.name, ""};
    plain.type = ValueType::list;
    RowAnswer read = read_value(plain, text, false);
    auto* found = std::get_if<std::vector<std::string>>(&read.value);
    anchors.readable = found || read.note.empty() || read.note.ends_with("was read as null");
    anchors.note = std::move(read.note);
    if (found) texts = std::move(*found);
    const bool whole = text.ends_with('"') || text.ends_with("\",");
    if (open && !texts.empty() && !whole) texts.pop_back();
    if (open) anchors.note = "the list breaks off";
  }
  size_t again = 0, more = 0, unfit = 0;
  const Attribute& anchor = list.fields[list.anchor];
  for (std::string& each : texts) {
    if (anchor.type == ValueType::enumeration) {
      RowAnswer option = read_text_value(anchor, each);
      auto* held = std::get_if<std::string>(&option.value);
      if (!held) {
        ++unfit;
        continue;
      }
      each = std::move(*held);
    }
    if (std::ranges::find(anchors.texts, each) != anchors.texts.end())
      ++again;
    else if (std::cmp_equal(anchors.texts.size(), list.max_entries))
      ++more;
    else
      anchors.texts.push_back(std::move(each));
  }
  const auto add_note = [&](const std::string& note) {
    anchors.note += (anchors.note.empty() ? "" : "; ") + note;
  };
  if (again > 0)
    add_note(fmt::format("{} of the entries listed came before and {} left out", again,
                         again == 1 ? "is" : "are"));
  if (unfit > 0)
    add_note(fmt::format("{} of the entries listed {} none of the options of \"{}\" and {} left out", unfit,
                         unfit == 1 ? "is" : "are", anchor.name, unfit == 1 ? "is" : "are"));
  if (more > 0) add_note(left_out(list, anchors.texts.size() + more));
  return anchors;
}

}  // namespace sheaf
