#include "io/files/metric_items.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

#include "core/base/error.h"
#include "core/metrics/judge.h"
#include "core/metrics/python_text.h"
#include "core/task/gold_kinds.h"
#include "core/task/value_path.h"
#include "core/text/utf8.h"
#include "io/base/json_file.h"
#include "io/base/mapped_file.h"
#include "io/files/attribute_names.h"
#include "io/files/nested_items.h"

namespace sheaf {
namespace {

using nlohmann::json;

/// "None." means the same as "none".
std::string folded(std::string_view text) {
  text = python::strip(text);
  if (text.ends_with('.')) text.remove_suffix(1);
  return python::lower(text);
}

std::string string_or_number(const json& value) {
  const std::vector<std::string> texts = answer_texts(value);
  return texts.empty() ? "" : texts[0];
}

class Answers {
 public:
  Answers(const Predictions& predictions, const JoinOptions& options) : predictions_(predictions) {
    for (const std::string& text : options.no_answer) no_answer_.push_back(folded(text));
  }

  /// Whether `act` (yesno or followup) of QuAC was predicted rightly: false where this prediction does not
  /// say and others do, as the official scorer has it; nothing where none of them does.
  std::optional<bool> act(const char* act, const json* row, const std::string& gold) {
    const auto says = [&](const auto& entry) { return entry.second.contains(act); };
    auto& said = said_[act];
    if (!said) said = std::any_of(predictions_.by_id.begin(), predictions_.by_id.end(), says);
    if (!*said || gold.empty()) return std::nullopt;
    return row != nullptr && string_or_number(row->value(act, json())) == gold;
  }

  const Predictions& predictions() const { return predictions_; }

  const json* find(const std::string& id) const {
    const auto found = predictions_.by_id.find(id);
    return found == predictions_.by_id.end() ? nullptr : &found->second;
  }

  std::vector<std::string> texts(const json& answer) const {
    std::vector<std::string> texts = answer_texts(answer);
    if (texts.size() == 1 &&
        std::find(no_answer_.begin(), no_answer_.end(), folded(texts[0])) != no_answer_.end())
      texts.clear();
    return texts;
  }

 private:
  const Predictions& predictions_;
  std::vector<std::string> no_answer_;
  std::map<std::string, std::optional<bool>> said_;  // whether any prediction says it
};

/// A DROP answer as its script reads and names it: a number, else a span or spans, else a date.
std::pair<std::string, std::vector<std::string>> drop_answer(const json& answer) {
  if (const std::string number = string_or_number(answer.value("number", json())); !number.empty())
    return {"number", {number}};
  std::vector<std::string> spans;
  for (const json& span : answer.value("spans", json::array())) spans.push_back(string_or_number(span));
  if (!spans.empty()) return {spans.size() == 1 ? "span" : "spans", spans};
  const json date = answer.value("date", json::object());
  return {"date",
          {string_or_number(date.value("day", json())) + " " + string_or_number(date.value("month", json())) +
           " " + string_or_number(date.value("year", json()))}};
}

void add_references(const GoldAnswer& gold, MetricItem& item) {
  if (gold.extra.is_object() && gold.extra.contains("answers")) {
    for (const json& answer : gold.extra["answers"]) {
      auto [kind, spans] = drop_answer(answer);
      item.references.push_back(std::move(spans));
      item.kinds.push_back(std::move(kind));
    }
  } else {
    for (const std::string& text : gold.references) item.references.push_back({valid_utf8(text)});
    if (gold.extra.is_object())
      for (const std::string& text : answer_texts(gold.extra.value("classes", json())))
        item.kinds.push_back(text);
  }
}

std::string text_of(const json& extra, const char* key) {
  return extra.is_object() ? string_or_number(extra.value(key, json())) : "";
}

MetricItem question_item(const GoldAnswer& gold, const std::string& id, const json* row, Answers& answers) {
  MetricItem item;
  item.id = id;
  item.unit = text_of(gold.extra, "dialog");
  item.category = text_of(gold.extra, "level");
  add_references(gold, item);
  if (!gold.option.empty()) item.references.push_back({gold.option});
  const auto is_capital = [](const std::string& text) {
    return text.size() == 1 && text[0] >= 'A' && text[0] <= 'Z';
  };
  const bool by_letter = std::ranges::any_of(gold.references, is_capital);
  item.yesno = answers.act("yesno", row, text_of(gold.extra, "yesno"));
  item.followup = answers.act("followup", row, text_of(gold.extra, "followup"));
  if (row != nullptr) {
    item.prediction = answers.texts(row->at("answer"));
    if (const json option = row->value("option", json());
        // Where gold is a letter, the text "B" of option A is not to be taken for one.
        option.is_string() && !(by_letter && is_option_letter(option.get_ref<const std::string&>())))
      item.prediction->push_back(valid_utf8(option.get_ref<const std::string&>()));
    if (const json confidence = row->value("confidence", json()); confidence.is_number())
      item.confidence = confidence.get<double>();
    if (const json margin = row->value("null_margin", json()); margin.is_number())
      item.null_margin = margin.get<double>();
  }
  return item;
}

/// A question of which only wrong answers are known.
bool is_wrong_only(const GoldAnswer& gold) {
  return gold.extra.is_object() && gold.extra.contains("wrong") && !gold.extra.contains("gold");
}

/// Its answer is wrong if it is one of them; otherwise nothing is known of it.
void add_wrong_answer(const GoldAnswer& gold, const std::string& id, const json* row, Answers& answers,
                      const JoinOptions& options, MetricItems& joined) {
  MetricItem item = question_item(gold, id, row, answers);
  const json& wrong = gold.extra.at("wrong");
  const bool again = item.prediction && std::any_of(wrong.begin(), wrong.end(), [&](const json& value) {
                       const std::vector<std::string> texts = answers.texts(value);
                       return texts.empty()
                                  ? item.prediction->empty()
                                  : !item.prediction->empty() && item.prediction->front() == texts.front();
                     });
  if (!again || !options.marked_wrong) {
    joined.unjudged.push_back(id);
    return;
  }
  // A character of private use, which no answer shares a word with.
  item.references = {{"\uE000"}};
  joined.items.push_back(std::move(item));
}

/// The number that the run gave an attribute of a document.
std::optional<double> number_of(const std::unordered_map<std::string, json>& numbers, const std::string& id,
                                const std::string& attribute) {
  const auto found = numbers.find(id);
  if (found == numbers.end()) return std::nullopt;
  const auto number = found->second.find(attribute);
  if (number == found->second.end() || number->is_null()) return std::nullopt;
  return number->get<double>();
}

/// A row or a gold answer among those that share its id.
struct Numbered {
  std::string id;
  int64_t number = 0;  ///< from 0

  std::string key() const { return row_key(id, number); }
  std::string shown() const { return number == 0 ? id : fmt::format("{} ({})", id, number + 1); }
};

/// The attribute of a category that a path leads to; of no known category, where all that have it read values
/// alike.
const Attribute* attribute_of(const Schema& schema, const std::string& category, const std::string& path) {
  const Attribute* found = nullptr;
  for (const Category& each : schema.categories) {
    if (!category.empty() && each.name != category) continue;
    const Attribute* const attribute = find_attribute(each.attributes, path);
    if (!attribute) continue;
    const bool alike = !found || (found->type == attribute->type && found->locale == attribute->locale &&
                                  found->unit == attribute->unit && found->options == attribute->options);
    if (!alike) return nullptr;
    found = attribute;
  }
  return found;
}

/// The accepted texts of an attribute, as rows write values of its type.
std::vector<std::string> reference_values(const JoinOptions& options, const std::string& category,
                                          const std::string& name, const json& values, MetricItems& joined) {
  const Attribute* const attribute = options.schema ? attribute_of(*options.schema, category, name) : nullptr;
  if (!attribute || attribute->type == ValueType::text || attribute->type == ValueType::span)
    return answer_texts(values);
  std::vector<std::string> texts;
  const auto add = [&](const json& value) {
    const auto typed = typed_gold(*attribute, value);
    if (!typed) joined.unreadable.add(*attribute, value);
    // "n/a" is a text that the metric knows.
    for (std::string& text : answer_texts(typed && !typed->is_null() ? *typed : value))
      texts.push_back(std::move(text));
  };
  if (values.is_array() && attribute->type != ValueType::list)
    for (const json& value : values) add(value);
  else
    add(values);
  return texts;
}

/// What the gold answers say that attributes hold, by category and attribute.
class GoldShapes {
 public:
  void add(const std::string& category, const json& gold) {
    for (const auto& [attribute, value] : gold.items()) shapes_[{category, attribute}].add(value);
  }

  ValueShape find(const std::string& category, const std::string& attribute) const {
    const auto found = shapes_.find({category, attribute});
    return found == shapes_.end() ? ValueShape() : found->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, ValueShape> shapes_;
};

std::string document_category(const json& extra, const std::string& key, const Answers& answers) {
  std::string category = text_of(extra, "category");
  if (const auto own = answers.predictions().categories.find(key);
      category.empty() && own != answers.predictions().categories.end())
    category = own->second;
  return category;
}

/// The items of one document.
class DocumentItems {
 public:
  DocumentItems(const json& extra, const Numbered& document, const json* row, const Answers& answers,
                const JoinOptions& options, MetricItems& joined)
      : id_(document.shown()),
        key_(document.key()),
        category_(document_category(extra, key_, answers)),
        row_(row),
        answers_(answers),
        options_(options),
        joined_(joined),
        reader_{.answered = row != nullptr,
                .make_item = [this](const FieldPlace& place) { return make_item(place); },
                .references =
                    [this](const FieldPlace& place, const json& value) {
                      return reference_values(options_, category_, place.name, value, joined_);
                    },
                .texts = [this](const json& value) { return answers_.texts(value); }} {}

  void add(const json& extra, const GoldShapes& shapes) {
    json gold = extra.at("gold");
    const json wrong = extra.value("wrong", json::object());
    if (options_.unmentioned_absent && row_ != nullptr)
      for (const auto& [attribute, value] : row_->items())
        if (!gold.contains(attribute) && !wrong.contains(attribute)) gold[attribute] = json::array();
    for (const auto& [attribute, values] : gold.items()) {
      const json& given = value_of(attribute);
      ValueShape shape = shapes.find(category_, attribute);
      add_shape(attribute, values, given, shape);
      if (options_.unmentioned_absent && shape.nested()) shape.add_missing(given);
      shape.nested() ? add_nested(attribute, shape, values, given) : add_value(attribute, values);
    }
    for (const auto& [attribute, values] : wrong.items())
      if (!gold.contains(attribute)) add_wrong(attribute, values);
  }

 private:
  /// Where gold does not say what an attribute holds, the schema does, or else the answer. Refuses gold of
  /// another kind than the schema's.
  void add_shape(const std::string& attribute, const json& values, const json& given,
                 ValueShape& shape) const {
    const Attribute* known = options_.schema ? attribute_of(*options_.schema, category_, attribute) : nullptr;
    if (known) {
      const std::string trouble = gold_kind_trouble({*known}, {{attribute, values}});
      if (!trouble.empty()) reject("\"gold\": {}", trouble);
    }
    if (!shape.nested() && values.empty()) known ? shape.add(*known) : shape.add(given);
    if (known && shape.nested()) shape.mark_lists(*known);
  }

  const json& value_of(const std::string& attribute) const {
    static const json none;
    return row_ != nullptr && row_->contains(attribute) ? (*row_)[attribute] : none;
  }

  MetricItem make_item(const FieldPlace& place) const {
    MetricItem item;
    item.id = fmt::format("{}/{}", id_, place.gold);
    item.unit = id_;
    item.category = category_;
    item.attribute = place.name;
    if (place.given.empty()) return item;
    item.confidence = number_of(answers_.predictions().confidence, key_, place.given);
    item.null_margin = number_of(answers_.predictions().null_margins, key_, place.given);
    return item;
  }

  MetricItem make_item(const std::string& attribute) const {
    MetricItem item = make_item(FieldPlace{attribute, attribute, attribute});
    if (row_ != nullptr && row_->contains(attribute)) item.prediction = answers_.texts((*row_)[attribute]);
    return item;
  }

  void add_value(const std::string& attribute, const json& values) {
    MetricItem item = make_item(attribute);
    for (std::string& value : reference_values(options_, category_, attribute, values, joined_))
      item.references.push_back({std::move(value)});
    joined_.items.push_back(std::move(item));
  }

  void add_nested(const std::string& attribute, const ValueShape& shape, const json& values,
                  const json& given) {
    if (add_nested_items(attribute, shape, values, given, reader_, joined_.items))
      joined_.long_lists.push_back(fmt::format("{}/{}", id_, attribute));
  }

  void add_wrong(const std::string& attribute, const json& values) {
    MetricItem item = make_item(attribute);
    const bool again = item.prediction && std::any_of(values.begin(), values.end(), [&](const json& value) {
                         return answers_.texts(value) == *item.prediction;
                       });
    if (!again || !options_.marked_wrong) {
      joined_.unjudged.push_back(std::move(item.id));
      return;
    }
    // A wrong value counts as invented, which leaves recall alone: whether the document holds another one is
    // not known. Where null is wrong it does, and that was missed.
    if (item.prediction->empty()) item.references.push_back({"(a value that the gold does not tell)"});
    joined_.items.push_back(std::move(item));
  }

  const std::string id_, key_, category_;
  const json* const row_;
  const Answers& answers_;
  const JoinOptions& options_;
  MetricItems& joined_;
  const FieldReader reader_;
};

bool is_document(const GoldAnswer& gold) {
  return gold.extra.is_object() && gold.extra.contains("gold");
}

void check_kinds(const Metric& metric, const std::vector<GoldAnswer>& gold, const Predictions& predictions) {
  check_gold(metric, gold);
  const bool documents = metric.name == "attributes";
  if (predictions.documents != documents)
    refuse("{}: the file contains {}, but the metric {} needs {}", predictions.path,
           documents ? "answers to questions" : "rows of an extract job", metric.name,
           documents ? "rows of an extract job {\"id\", \"values\"}" : "answers to questions");
}

/// What was predicted and not asked for; refuses where nothing met.
template <class Known>
void find_unknown(const Predictions& predictions, const Known& known, const std::string& example,
                  MetricItems& joined) {
  for (const std::string& id : predictions.ids)
    if (!known.contains(id)) joined.unknown.push_back(id);
  if (joined.unknown.size() == predictions.ids.size())
    refuse("{}: its ids (such as {}) do not match those of the gold answers (such as {})", predictions.path,
           shown(predictions.ids.front()), shown(example));
}

struct PairedAnswer {
  const GoldAnswer* gold;
  int64_t number;  ///< which of the rows with this id
};

bool same_answer(const GoldAnswer& a, const GoldAnswer& b) {
  if (&a == &b) return true;  // broken JSON is not even equal to itself
  return a.references == b.references && a.option == b.option && a.extra == b.extra;
}

/// Which of the rows with an id belongs to which of its gold answers. As many rows as answers come from one
/// corpus, whose order both have. Otherwise one answer counts, for the first row.
std::vector<PairedAnswer> paired_answers(const std::vector<const GoldAnswer*>& gold, const std::string& id,
                                         const Predictions& predictions, MetricItems& joined) {
  const int64_t rows = rows_of(predictions, id);
  std::vector<PairedAnswer> pairs;
  if (gold.size() > 1 && (rows == std::ssize(gold) || rows == 0)) {
    if (rows > 0) joined.paired.push_back(id);
    for (const GoldAnswer* answer : gold) pairs.push_back({answer, std::ssize(pairs)});
    return pairs;
  }
  if (!std::ranges::all_of(gold, [&](const GoldAnswer* one) { return same_answer(*one, *gold.front()); })) {
    joined.ambiguous.push_back(id);
    return pairs;
  }
  if (rows > 1) {
    joined.repeated.push_back(id);
    joined.repeated_rows += rows - 1;
  }
  pairs.push_back({gold.front(), 0});
  return pairs;
}

}  // namespace

void check_gold(const Metric& metric, const std::vector<GoldAnswer>& gold) {
  if (gold.empty()) refuse("the gold file has no answers; give one that has");
  const bool documents = metric.name == "attributes";
  if (is_document(gold.front()) != documents)
    refuse("the metric {} needs {}, but the gold answers are {}{}", metric.name,
           documents ? "attribute values" : "answers to questions",
           documents ? "answers to questions" : "attribute values",
           documents ? "" : "; use the metric attributes");
  if (metric.name == "quac" && text_of(gold.front().extra, "dialog").empty())
    refuse(
        "the metric quac needs dialogs, but the gold answers are of single questions; use the metric squad");
}

MetricItems join_gold(const Metric& metric, const std::vector<GoldAnswer>& gold,
                      const Predictions& predictions, const JoinOptions& options) {
  check_kinds(metric, gold, predictions);
  Answers answers(predictions, options);
  MetricItems joined;
  AttributeNames names;
  std::unordered_map<std::string, std::vector<const GoldAnswer*>> known;
  GoldShapes shapes;
  for (const GoldAnswer& one : gold) {
    const std::string id = id_text(one.id);
    known[id].push_back(&one);
    if (is_document(one)) shapes.add(document_category(one.extra, id, answers), one.extra["gold"]);
  }
  for (const GoldAnswer& one : gold) {
    const std::string id = id_text(one.id);
    const std::vector<const GoldAnswer*>& all = known[id];
    if (all.front() != &one) continue;
    for (const auto& [answer, number] : paired_answers(all, id, predictions, joined)) {
      const Numbered numbered{id, number};
      const json* row = answers.find(numbered.key());
      if (row == nullptr) joined.missing.push_back(numbered.shown());
      if (row == nullptr && options.skip_missing) continue;
      if (predictions.documents && is_document(*answer)) {
        if (row != nullptr) names.add(answer->extra, *row);
        try {
          DocumentItems(answer->extra, numbered, row, answers, options, joined).add(answer->extra, shapes);
        } catch (const BadText& bad) {
          refuse("{}: {}", answer->place, bad.reason);
        }
      } else if (is_wrong_only(*answer)) {
        add_wrong_answer(*answer, numbered.shown(), row, answers, options, joined);
      } else {
        joined.items.push_back(question_item(*answer, numbered.shown(), row, answers));
      }
    }
  }
  find_unknown(predictions, known, id_text(gold.front().id), joined);
  names.compare(predictions.attributes, joined);
  if (joined.items.empty() && !joined.ambiguous.empty()) {
    const std::vector<const GoldAnswer*>& all = known[joined.ambiguous.front()];
    refuse("{}: the id {} already stands at {} with another answer; remove one of the two", all[1]->place,
           shown(joined.ambiguous.front()), all[0]->place);
  }
  if (joined.items.empty() && !joined.unjudged.empty())
    refuse(
        "{}: nothing to score: the gold file says of no value here whether it is right; review values of "
        "this run",
        predictions.path);
  return joined;
}

MetricItems join_runs(const Predictions& first, const Predictions& second, const JoinOptions& options) {
  if (first.documents != second.documents)
    refuse("{} and {} come from different kinds of jobs", first.path, second.path);
  const Answers wanted(first, options), answers(second, options);
  MetricItems joined;
  const auto add = [&](const std::string& id, const std::string& attribute, const json& reference,
                       const json* prediction) {
    MetricItem& item = joined.items.emplace_back();
    item.id = first.documents ? fmt::format("{}/{}", id, attribute) : id;
    if (first.documents) item.unit = id;
    item.attribute = attribute;
    if (std::vector<std::string> texts = wanted.texts(reference); !texts.empty())
      item.references.push_back(std::move(texts));
    if (prediction != nullptr) item.prediction = answers.texts(*prediction);
  };
  const auto add_row = [&](const Numbered& numbered) {
    const json *reference = wanted.find(numbered.key()), *row = answers.find(numbered.key());
    const std::string id = numbered.shown();
    if (row == nullptr) joined.missing.push_back(id);
    if (row == nullptr && options.skip_missing) return;
    if (!first.documents)
      return add(id, "", reference->at("answer"), row == nullptr ? nullptr : &row->at("answer"));
    for (const auto& [attribute, value] : reference->items()) {
      const bool there = row != nullptr && row->contains(attribute);
      add(id, attribute, value, there ? &(*row)[attribute] : nullptr);
    }
  };
  for (const std::string& id : first.ids) {
    const int64_t rows = rows_of(first, id);
    if (rows > 1) joined.paired.push_back(id);
    for (int64_t number = 0; number < rows; ++number) add_row({id, number});
  }
  find_unknown(second, first.by_id, first.ids.front(), joined);
  return joined;
}

MetricItems read_judged_items(const std::string& path) {
  MetricItems read;
  each_json_line(path, [&](const json& row, const std::string&) {
    const std::string id = id_text(row.value("id", json()));
    if (id.empty()) throw BadText("the line has no \"id\"");
    std::map<std::string, std::string> judgements;
    if (const json reply = row.value("reply", json()); reply.is_string()) {
      try {
        judgements = read_judgements(reply.get_ref<const std::string&>());
      } catch (const BadText&) {
        read.unknown.push_back(id);  // a model's words, not a mistake of the file
      }
    } else if (const json given = row.value("judgements", json()); given.is_object()) {
      judgements = read_judgements("<result>" + given.dump());
    } else {
      throw BadText("the line has neither \"judgements\" {attribute: word} nor the judge's \"reply\"");
    }
    for (const auto& [attribute, word] : judgements)
      read.items.push_back({fmt::format("{}/{}", id, attribute),
                            id,
                            string_or_number(row.value("category", json())),
                            attribute,
                            std::vector<std::string>{word},
                            {}});
  });
  if (read.items.empty())
    refuse("{}: the file has no judgements {{\"id\", \"judgements\": {{attribute: word}}}}", path);
  return read;
}

}  // namespace sheaf
