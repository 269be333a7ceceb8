#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <set>

#include "core/text/html_text.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/corpus/column_facts.h"
#include "io/corpus/describe_corpus.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kMostCategories = 200, kMostAttributes = 500, kLongestColumn = 200, kLongestId = 100;
constexpr int64_t kFewRepeats = 10;  // one in so many
constexpr double kLongText = 40, kShortValue = 60;
const std::string kOneCategory;  // where no column has the category

// Words for columns, without capitals and separators.
constexpr std::string_view kTitles = "title name productname producttitle headline subject itemname";
constexpr std::string_view kTexts =
    "description text body content document abstract summary features bullets review comment message "
    "notes details context passage article specification productdescription bulletpoints";
const std::vector<std::string_view> kCategories = {
    "category",   "productcategory", "producttype", "type",        "kind",  "class",
    "department", "group",           "categories",  "subcategory", "genre", "taxonomy"};
constexpr std::string_view kIds =
    "id sku asin gtin ean upc isbn uuid uid key code ref mpn productid itemid docid guid rowid";
/// No text may give them away.
constexpr std::string_view kAnswers = "gold wrong answer answers extra";
constexpr std::string_view kContexts = "context passage paragraph article document text";
constexpr std::string_view kDocuments = "documents docs passages contexts paragraphs articles sources";
constexpr std::string_view kHtml[] = {"</p>", "<br",   "</li>",     "</div>", "</span>",
                                      "</b>", "</td>", "</strong>", "&nbsp;", "&amp;"};
constexpr int64_t kSomeHtml = 5;  // one in so many

/// Whether a job and a schema can name it.
bool is_nameable(const std::string& name) {
  return name.size() <= kLongestColumn && name.find('\0') == std::string::npos &&
         name.find_first_not_of(" \t\r\n") != std::string::npos;
}

/// For a comment, which ends with its line.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

/// An object, or the text of one.
json gold_object(const json& value) {
  json object = value.is_string() ? read_json(value.get_ref<const std::string&>()) : value;
  return object.is_object() ? object : json::object();
}

class Proposer {
 public:
  Proposer(const ordered_json& about, const std::vector<json>& sample) : sample_(sample) {
    std::map<std::string, int> times;
    for (const auto& column : about["columns"]) ++times[column["name"].get<std::string>()];
    for (const auto& column : about["columns"]) {
      const auto name = column["name"].get<std::string>();
      if (times[name] > 1 || !is_nameable(name)) continue;  // no job could name it
      columns_.push_back({name});
      for (const json& record : sample)
        if (const auto value = record.find(name); value != record.end()) columns_.back().add(*value);
    }
  }

  JobProposal propose(const std::string& path, const std::string& format) {
    if (columns_.empty() || sample_.empty()) return {};
    choose_id();
    if (requests()) return {job_text(path, "auto"), {}};
    if (asks()) return {job_text(path, format), {}};
    choose_category();
    choose_texts();
    find_gold();
    return {job_text(path, format), schema_text(path)};
  }

 private:
  int64_t records() const { return static_cast<int64_t>(sample_.size()); }

  /// Prefers what no two records share. Of what is called an id, few may: runs keep such records.
  void choose_id() {
    int best = 0;
    for (const ColumnFacts& column : columns_) {
      const bool fits = column.given == records() && column.given > 0 && column.scalar() &&
                        column.longest <= kLongestId && column.booleans == 0 && column.urls == 0;
      if (!fits) continue;
      const auto repeats = column.given - static_cast<int64_t>(column.values.size());
      const std::string told = fmt::format("{} of {} {} an earlier one", repeats, column.given,
                                           repeats == 1 ? "repeats" : "repeat");
      const bool is_named = column.is_called("id") || column.is_called(kIds);
      if (repeats > 0 && is_named && kFewRepeats * repeats > column.given && repeated_id_.empty())
        repeated_id_ = fmt::format("{}: {}", column.name, told);
      if (repeats > 0 && (!is_named || kFewRepeats * repeats > column.given)) continue;
      const bool one_word = std::ranges::none_of(
          column.values, [](const auto& each) { return each.first.find(' ') != std::string::npos; });
      const int rank = column.is_called("id")                                      ? 4
                       : column.is_called(kIds)                                    ? 3
                       : small_letters(column.name).ends_with("id") && one_word    ? 2
                       : &column == &columns_.front() && one_word && records() > 1 ? 1
                                                                                   : 0;
      const int order = repeats > 0 ? 3 : 2 * rank;  // between a name that ends in id and the first column
      if (order <= best) continue;
      id_ = column.name;
      id_repeats_ = repeats > 0 ? told : "";
      best = order;
    }
  }

  /// Whether the records are requests of an OpenAI batch, which say everything themselves.
  bool requests() {
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(columns_, [&](const ColumnFacts& column) { return column.name == name; });
    };
    requests_ = has("custom_id") && has("body");
    if (requests_) id_.clear();
    return requests_;
  }

  /// Whether the records have questions about a text; then says which columns.
  bool asks() {
    std::string questions, question, context, documents;
    for (const ColumnFacts& column : columns_) {
      if (column.is_called(kDocuments) && column.lists == column.given && column.given > 0)
        documents = column.name;
      if (column.is_called("questions") && column.lists == column.given && column.given > 0)
        questions = column.name;
      if (column.is_called("question") && column.is_text()) question = column.name;
      if (context.empty() && column.is_called(kContexts) && column.is_text()) context = column.name;
    }
    if ((context.empty() && documents.empty()) || (questions.empty() && question.empty())) return false;
    question_ = question;
    questions_ = questions;
    documents_ = documents;
    if (documents.empty()) context_ = context;
    for (const ColumnFacts& column : columns_)
      if (column.is_called("options") && column.given > 0 && column.lists == column.given)
        options_ = column.name;
    return true;
  }

  void choose_category() {
    for (const std::string_view word : kCategories)
      for (const ColumnFacts& column : columns_)
        if (category_.empty() && column.name != id_ && column.is_called(word) && column.is_text() &&
            10 * column.given >= 9 * records() && column.longest <= kLongestColumn &&
            column.values.size() <= kMostCategories && 2 * column.values.size() <= sample_.size() + 4)
          category_ = column.name;
  }

  void choose_texts() {
    for (const bool titles : {true, false})
      for (const ColumnFacts& column : columns_) {
        if (column.name == id_ || column.name == category_ || column.is_called(kAnswers) || !column.is_text())
          continue;
        const bool is_title = column.is_called(kTitles);
        const bool is_long =
            column.mean_bytes() >= kLongText && 2 * static_cast<int64_t>(column.values.size()) > column.given;
        if (is_title == titles && (is_title || is_long || column.is_called(kTexts)))
          texts_.push_back(column.name);
      }
    if (!texts_.empty()) return;
    const auto best = std::ranges::max_element(columns_, {}, [&](const ColumnFacts& column) {
      if (!column.scalar() || column.is_called(kAnswers)) return -1.0;
      const bool used = column.name == id_ || column.name == category_;
      return used ? 0.0 : 1 + column.mean_bytes() * (column.is_text() ? 100 : 1);
    });
    texts_.push_back(best->name);
  }

  std::string category_of(const json& record) const {
    return category_.empty() ? kOneCategory : scalar_text(record.value(category_, json()));
  }

  /// Whether a value stands in the text of its record.
  static bool stands_in(const json& value, const std::string& text) {
    if (value.is_array())
      return std::ranges::any_of(value, [&](const json& each) { return stands_in(each, text); });
    const std::string wanted = small_letters(scalar_text(value));
    return !wanted.empty() && text.find(wanted) != std::string::npos;
  }

  /// The attributes of "gold" by category, or else columns whose values are mostly in the texts.
  void find_gold() {
    const auto gold = std::ranges::find_if(columns_, [](const auto& each) { return each.is_called("gold"); });
    if (gold != columns_.end()) {
      std::vector<json> objects;
      for (const json& record : sample_) {
        objects.push_back(gold_object(record.value(gold->name, json())));
        for (const auto& [name, value] : objects.back().items()) {
          if (!is_nameable(name)) continue;
          attribute(name).add_gold(value);
          of_category_[category_of(record)].insert(name);
        }
      }
      find_strange(objects);
      if (!attributes_.empty()) return;
    }
    for (const ColumnFacts& column : columns_) {
      const bool used = column.name == id_ || column.name == category_ ||
                        std::ranges::find(texts_, column.name) != texts_.end();
      if (used || column.is_called(kAnswers) || column.objects > 0 || column.mean_bytes() > kShortValue ||
          column.urls > 0)
        continue;
      if (2 * count_in_text(column.name) < std::max<int64_t>(1, column.given)) continue;
      attribute(column.name) = column;
      for (const json& record : sample_)
        if (!scalar_text(record.value(column.name, json())).empty() || column.lists > 0)
          of_category_[category_of(record)].insert(column.name);
    }
  }

  /// Finds the first gold value of each attribute that is of another kind than the proposed one.
  void find_strange(const std::vector<json>& gold) {
    for (const ColumnFacts& each : attributes_)
      for (size_t i = 0; i < gold.size(); ++i) {
        const auto value = gold[i].find(each.name);
        const std::string trouble = value == gold[i].end() ? "" : each.strange(*value, each.name);
        if (trouble.empty()) continue;
        strange_.push_back(fmt::format("record {}: {}", i + 1, trouble));
        break;
      }
  }

  /// Whether enough texts of some columns have tags or entities.
  bool is_html(const std::vector<std::string>& columns) const {
    const auto count = std::ranges::count_if(sample_, [&](const json& record) {
      return std::ranges::any_of(columns, [&](const std::string& column) {
        const std::string text = scalar_text(record.value(column, json()));
        return std::ranges::any_of(
            kHtml, [&](std::string_view sign) { return text.find(sign) != std::string::npos; });
      });
    });
    return count > 0 && kSomeHtml * count >= records();
  }

  int64_t count_in_text(const std::string& column) const {
    const bool html = is_html(texts_);
    return std::ranges::count_if(sample_, [&](const json& record) {
      std::string all;
      for (const std::string& name : texts_) {
        const std::string text = scalar_text(record.value(name, json()));
        all += small_letters(html ? html_text(text).text : text) + '\n';
      }
      return stands_in(record.value(column, json()), all);
    });
  }

  ColumnFacts& attribute(const std::string& name) {
    const auto known = std::ranges::find_if(attributes_, [&](const auto& each) { return each.name == name; });
    if (known != attributes_.end()) return *known;
    if (attributes_.size() == kMostAttributes) return beyond_;
    attributes_.push_back({name});
    return attributes_.back();
  }

  std::string job_text(const std::string& path, const std::string& format) const {
    std::string text = fmt::format("input:\n  path: {}\n", yaml_word(path));
    if (format != "auto") text += fmt::format("  format: {}\n", format);
    const auto add = [&](const char* key, const std::string& column) {
      if (!column.empty()) text += fmt::format("  {}: {}\n", key, yaml_word(column));
    };
    if (requests_) return text + "\ntask:\n  kind: chat\n\nmethod:\n  name: ippd\n";
    if (!id_.empty() && !id_repeats_.empty())
      text += fmt::format("  id: {}  # {}; such records are kept, see duplicate_ids\n", yaml_word(id_),
                          id_repeats_);
    else
      add("id", id_);
    if (id_.empty() && !repeated_id_.empty())
      text += fmt::format("  # no id, so that rows are numbered; {}\n", one_line(repeated_id_));
    add("category", category_);
    add("context", context_);
    add("documents", documents_);
    add("questions", questions_);
    if (questions_.empty()) add("question", question_);
    if (questions_.empty()) add("options", options_);
    std::vector<std::string> texts;
    for (const std::string& column : texts_) texts.push_back(yaml_word(column));
    if (!texts.empty()) text += fmt::format("  document: [{}]\n", fmt::join(texts, ", "));
    if (is_html(texts_.empty() ? std::vector{context_} : texts_)) text += "  html: text\n";
    return text + (context_.empty() && documents_.empty()
                       ? "\ntask:\n  kind: extract\n  schema: schema.yaml\n"
                       : "\ntask:\n  kind: ask\n\nmethod:\n  name: ippd\n");
  }

  std::string schema_text(const std::string& path) const {
    const std::string stem = std::filesystem::path(path).stem().stem().string();
    std::set<std::string> categories;
    for (const json& record : sample_) categories.insert(category_of(record));
    std::erase_if(categories,
                  [&](const std::string& name) { return !category_.empty() && !is_nameable(name); });
    if (categories.empty()) categories.insert(kOneCategory);
    std::string text;
    for (const std::string& each : strange_)
      text += fmt::format("# {}; sheaf score and train-data refuse such gold\n", one_line(each));
    if (attributes_.empty()) text += "# Replace the attribute by those that you want to know.\n";
    text += "attributes:\n";
    for (const ColumnFacts& each : attributes_)
      text += fmt::format("  {}: {{{}}}\n", yaml_word(each.name), each.schema_type());
    if (attributes_.empty()) text += "  Brand: {type: text, description: \"who makes it\"}\n";
    text += "categories:\n";
    for (const std::string& category : categories) {
      const std::string name = !category.empty() ? category : is_nameable(stem) ? stem : "Item";
      text += fmt::format("  {}: [{}]\n", yaml_word(name), fmt::join(names_of(category), ", "));
    }
    return text;
  }

  /// The attributes of a category; all where its records have none.
  std::vector<std::string> names_of(const std::string& category) const {
    if (attributes_.empty()) return {"Brand"};
    const auto known = of_category_.find(category);
    std::vector<std::string> names, own;
    for (const ColumnFacts& each : attributes_) {
      names.push_back(yaml_word(each.name));
      if (known != of_category_.end() && known->second.contains(each.name)) own.push_back(names.back());
    }
    return own.empty() ? names : own;
  }

  const std::vector<json>& sample_;
  std::vector<ColumnFacts> columns_;
  bool requests_ = false;
  std::string id_repeats_;   // how often the id repeats, in words; empty: never
  std::string repeated_id_;  // a column that is called an id and is none, and why
  std::string id_, category_, context_, documents_, questions_, question_, options_;
  std::vector<std::string> texts_;
  std::vector<ColumnFacts> attributes_;
  std::vector<std::string> strange_;  // gold values of the wrong kind, with their records
  ColumnFacts beyond_;                // of attributes that are too many to propose
  std::map<std::string, std::set<std::string>> of_category_;  // the names of its attributes
};

}  // namespace

JobProposal propose_job(const std::string& path, const std::string& format, const ordered_json& about,
                        const std::vector<json>& sample) {
  return Proposer(about, sample).propose(path, format);
}

}  // namespace sheaf
