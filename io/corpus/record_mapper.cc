#include "io/corpus/record_mapper.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/sha256.h"
#include "io/passages/passages.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kMostQuestions = 10'000;
constexpr size_t kMostOptions = 1'000;

std::vector<std::string> options_of(const json& value, std::string_view what) {
  if (value.is_null()) return {};
  if (!value.is_array())
    reject("{} is {}, not a list; write a JSON list, such as [\"yes\", \"no\"]", what, kind_of(value));
  if (value.size() > kMostOptions)
    reject("{} has {} entries; at most {} are allowed", what, value.size(), kMostOptions);
  std::vector<std::string> options;
  for (const json& entry : value) {
    options.push_back(text_of(entry, fmt::format("an entry of {}", what)));
    if (blank(options.back())) reject("an entry of {} is empty", what);
  }
  return options;
}

/// Nothing where the cell says nothing.
std::optional<AnswerKind> kind_of_answer(const json& value, std::string_view what) {
  if (value.is_null()) return std::nullopt;
  const std::string word = text_of(value, what);
  const auto kind = read_word<AnswerKind>(word);
  if (!kind) reject("{} is \"{}\"; it must be free, span or choice", what, shorten_text(word, 60));
  return kind;
}

Question question_of(const json& value) {
  Question question;
  if (value.is_object()) {
    const auto text = value.find("question"), id = value.find("id"), options = value.find("options");
    if (text == value.end()) reject("a question has no \"question\"");
    question.text = text_of(*text, "a question");
    if (id != value.end() && !id->is_null()) question.id = id_of(*id, "the id of a question");
    if (options != value.end()) question.options = options_of(*options, "\"options\" of a question");
    if (const auto kind = value.find("answer_kind"); kind != value.end())
      question.kind = kind_of_answer(*kind, "\"answer_kind\" of a question");
  } else {
    question.text = text_of(value, "a question");
  }
  if (blank(question.text))
    reject("{} is empty",
           question.id.is_null() ? "a question" : fmt::format("question {}", question.id.dump()));
  return question;
}

/// What stands at a path of keys, "seller.name", where no column has the whole name; null: nothing.
const json* follow_path(const json& cells, std::string_view path) {
  if (cells.contains(path)) return nullptr;
  const json* at = &cells;
  while (true) {
    if (!at->is_object()) return nullptr;
    const size_t dot = path.find('.');
    const auto found = at->find(path.substr(0, dot));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
}

json only_id(const json& value, std::string_view what) {
  return id_of(only_entry(value, what), what);
}

/// Stands before the name of the file and the text.
struct Head {
  int64_t row = 0;
  int64_t name_bytes = 0, text_bytes = 0;
};

}  // namespace

Contexts::Key Contexts::key_of(const json& id) {
  Key key;
  std::memcpy(key.data(), Sha256().add(id.dump()).digest().data(), sizeof key);
  return key;
}

void Contexts::add(const json& id, const std::string& text, const Place& place) {
  if (!places_.try_emplace(key_of(id), file_.size()).second) return;
  const Head head{place.row, static_cast<int64_t>(place.file.size()), static_cast<int64_t>(text.size())};
  std::string record(sizeof head, '\0');
  std::memcpy(record.data(), &head, sizeof head);
  file_.append(record.append(place.file).append(text));
}

std::optional<Contexts::Context> Contexts::find(const json& id) const {
  const auto at = places_.find(key_of(id));
  if (at == places_.end()) return std::nullopt;
  Head head;
  std::memcpy(&head, file_.read(at->second, sizeof head).data(), sizeof head);
  std::string name =
      file_.read(at->second + static_cast<int64_t>(sizeof head), head.name_bytes + head.text_bytes);
  std::string text = name.substr(static_cast<size_t>(head.name_bytes));
  name.resize(static_cast<size_t>(head.name_bytes));
  return Context{std::move(text), {std::move(name), head.row}};
}

std::shared_ptr<const Contexts> gather_contexts(Corpus& corpus, const std::string& near) {
  auto contexts = std::make_shared<Contexts>(near);
  while (const auto row = corpus.next())
    if (const auto* record = std::get_if<Record>(&*row); record && !record->document.empty())
      contexts->add(record->id, record->document, record->place);
  return contexts;
}

RecordMapper::RecordMapper(const Job& job, const Schema* schema, std::shared_ptr<const Contexts> contexts,
                           std::shared_ptr<Passages> passages)
    : input_(job.input),
      schema_(schema),
      contexts_(std::move(contexts)),
      passages_(std::move(passages)),
      method_(job.method),
      batch_(job.task.kind == TaskKind::chat),
      gathers_(!input_.context_id.empty() && !contexts_) {
  const auto add = [&](const std::string& name, const char* key, bool list = false, bool optional = false) {
    const auto place = input_.places.find(key);
    if (name.empty()) return;
    columns_.push_back({name,
                        place == input_.places.end() ? fmt::format("{}: {}", job.file, key) : place->second,
                        list, optional});
    has_paths_ = has_paths_ || name.find('.') != std::string::npos;
  };
  const auto add_texts = [&](const std::string& name, const char* key, bool optional = false) {
    add(name, key, false, optional);
    if (!name.empty()) columns_.back().texts = true;
  };
  if (batch_) {
    for (const char* name : {"custom_id", "body"}) {
      add(name, "input.path");
      columns_.back().request = true;
    }
    for (const char* name : {"method", "url"}) add(name, "input.format", false, true);
    return;
  }
  add(input_.context_id, "input.context_id");
  add_texts(input_.context, "input.context", !input_.context_id.empty());
  if (gathers_) return;
  add_texts(input_.id, "input.id");
  add_texts(input_.category, "input.category");
  for (const std::string& column : input_.document) add_texts(column, "input.document");
  add(input_.documents, "input.documents", true);
  if (!input_.scored_by_question()) add(input_.scores, "input.scores", true);
  add(input_.rerank_scores, "input.rerank_scores", true);
  add(input_.questions, "input.questions", true, !input_.needs_questions);
  add(input_.question, "input.question", false, !input_.needs_questions);
  add(input_.options, "input.options", true, !input_.needs_questions);
  add(input_.answer_kind, "input.answer_kind", false, !input_.needs_questions);
  for (const std::string& column : input_.keep) {
    add(column, "input.keep");
    columns_.back().kept = true;
  }
  for (const Job::Task::Prompt::Column& column : job.task.prompt.columns) {
    add_texts(column.name, "");
    columns_.back().place = column.place;
    fields_.push_back(column.name);
  }
  if (!schema_) return;
  for (const Category& category : schema_->categories) {
    category_names_.push_back(category.name);
    categories_.insert(category.name);
  }
  if (input_.category.empty() && category_names_.size() > 1)
    refuse("{}: the schema has {} categories; set input.category to the column with the category", job.file,
           category_names_.size());
}

bool RecordMapper::wants(std::string_view column) const {
  return std::any_of(columns_.begin(), columns_.end(),
                     [&](const MappedColumn& c) { return c.is_in(column); });
}

bool MappedColumn::is_in(std::string_view top) const {
  return name == top ||
         (!kept && name.size() > top.size() && name[top.size()] == '.' && name.starts_with(top));
}

CorpusRow RecordMapper::map(Place place, const json& cells, int64_t number, std::string_view line) const {
  if (!has_paths_ || batch_) return map_cells(std::move(place), cells, number, line);
  json flat = cells;
  for (const MappedColumn& column : columns_)
    if (const json* found = follow_path(cells, column.name)) flat[column.name] = *found;
  return map_cells(std::move(place), flat, number, line);
}

CorpusRow RecordMapper::map_cells(Place place, const json& cells, int64_t number,
                                  std::string_view line) const {
  Record record;
  record.place = std::move(place);
  try {
    if (batch_) {
      map_batch_line(cells, line, method_, record);
      return record;
    }
    if (gathers_) {
      map_context(cells, record);
      return record;
    }
    record.id = input_.id.empty() ? json(number)
                                  : only_id(cell(cells, input_.id), fmt::format("column \"{}\"", input_.id));
    if (schema_) map_category(cells, record);
    if (!input_.context_id.empty())
      map_context(cells, record);
    else if (!input_.has_documents())
      map_document(cells, record);
    if (!schema_) map_questions(cells, record);
    if (!input_.documents.empty()) map_documents(cells, input_, record);
    for (const std::string& column : fields_)
      record.fields[column] =
          read_html(joined_text_of(cell(cells, column), fmt::format("column \"{}\"", column)), input_.html)
              .text;
    if (passages_)
      passages_->with_index([&](const PassageIndex& index) {
        Record found = record;
        find_passages(index, input_, found);
        record = std::move(found);
      });
    for (const std::string& column : input_.keep) record.kept[column] = cells.value(column, json());
  } catch (const BadText& bad) {
    return Reject{std::move(record.place), std::move(record.id), bad.reason};
  }
  return record;
}

void RecordMapper::map_category(const json& cells, Record& record) const {
  if (input_.category.empty()) {
    if (!category_names_.empty()) record.category = category_names_.front();
    return;
  }
  const std::string what = fmt::format("column \"{}\"", input_.category);
  record.category = text_of(only_entry(cell(cells, input_.category), what), what);
  if (!categories_.empty() && !categories_.contains(record.category))
    reject("category \"{}\" is not in the schema{}", shorten_text(record.category, 60),
           suggest_spelling(record.category, category_names_));
}

void RecordMapper::map_document(const json& cells, Record& record) const {
  const auto append = [&](const std::string& column) {
    const auto value = cells.find(column);
    if (value == cells.end() || value->is_null()) return;
    HtmlText read = read_html(joined_text_of(*value, fmt::format("column \"{}\"", column)), input_.html);
    if (blank(read.text)) return;
    if (!record.document.empty()) record.document += '\n';
    record.columns.push_back({column, record.document.size()});
    if (!read.runs.empty())
      record.columns.back().runs = std::make_shared<const std::vector<TextRun>>(std::move(read.runs));
    record.document += read.text;
  };
  const std::vector<std::string> columns = schema_ ? input_.document : std::vector{input_.context};
  for (const std::string& column : columns) append(column);
  if (record.document.empty()) {
    for (const std::string& column : columns) cell(cells, column);  // a missing one says more than "empty"
    reject("the {} is empty", schema_ ? "document" : "context");
  }
  if (record.document.size() > kLongestDocument)
    reject("the document has {} bytes; at most {} are allowed", record.document.size(), kLongestDocument);
}

void RecordMapper::map_context(const json& cells, Record& record) const {
  const json id = id_of(cell(cells, input_.context_id), fmt::format("column \"{}\"", input_.context_id));
  std::string own;
  if (const auto value = cells.find(input_.context); value != cells.end() && !value->is_null())
    own = read_html(joined_text_of(*value, fmt::format("column \"{}\"", input_.context)), input_.html).text;
  if (blank(own)) own.clear();
  if (gathers_) {
    record.id = id;
    record.document = std::move(own);
    return;
  }
  const std::string name = shorten_text(id.dump(), 60);
  auto found = contexts_->find(id);
  if (!found) reject("no record has the text of context {}", name);
  if (!own.empty() && own != found->text)
    reject("context {} has a different text in record {} of {}", name, found->place.row, found->place.file);
  record.document = std::move(found->text);
  record.columns.push_back({input_.context, 0});
}

void RecordMapper::map_questions(const json& cells, Record& record) const {
  if (!input_.needs_questions) {
    const auto asked = cells.find(input_.question.empty() ? input_.questions : input_.question);
    if (asked == cells.end() || asked->is_null() || asked->empty()) {
      record.questions.push_back({{}, "?", {}, {}});  // what comes before it does not depend on it
      return;
    }
  }
  if (input_.question.empty() && input_.questions.empty()) {
    record.questions.emplace_back();  // task.prompt.question says it all
    return;
  }
  if (!input_.question.empty()) {
    Question question;
    question.text = text_of(cell(cells, input_.question), fmt::format("column \"{}\"", input_.question));
    if (blank(question.text)) reject("the question is empty");
    if (const auto options = cells.find(input_.options); !input_.options.empty() && options != cells.end())
      question.options = options_of(*options, fmt::format("column \"{}\"", input_.options));
    if (const auto kind = cells.find(input_.answer_kind); !input_.answer_kind.empty() && kind != cells.end())
      question.kind = kind_of_answer(*kind, fmt::format("column \"{}\"", input_.answer_kind));
    record.questions.push_back(std::move(question));
    return;
  }
  std::map<json, size_t> numbers;  // of the questions, by their ids
  const std::string row = record.id.is_string() ? record.id.get<std::string>() : record.id.dump();
  for (const json& entry : list_cell(cells, input_.questions, "questions", kMostQuestions)) {
    Question question = question_of(entry);
    // An answer must tell which question it is to, and gold answers know it by this name.
    if (question.id.is_null()) question.id = fmt::format("{}/{}", row, record.questions.size());
    if (const auto [first, fresh] = numbers.emplace(question.id, record.questions.size() + 1); !fresh)
      reject("questions {} and {} have the same id, {}; an answer goes by it", first->second,
             record.questions.size() + 1, shorten_text(question.id.dump(), 60));
    record.questions.push_back(std::move(question));
  }
}

const json& cell(const json& cells, std::string_view column) {
  const auto found = cells.find(column);
  if (found == cells.end()) reject("column \"{}\" is missing", column);
  return *found;
}

std::string text_of(const json& value, std::string_view what) {
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    reject("{} is not a finite number", what);
  if (value.is_number()) return value.dump();
  if (value.is_null()) reject("{} is empty", what);
  if (!value.is_string()) reject("{} is {}, not text", what, kind_of(value));
  const auto& text = value.get_ref<const std::string&>();
  if (const size_t good = valid_prefix(text); good < text.size())
    reject("{} is not valid UTF-8 at byte {}", what, good + 1);
  if (text.size() > kLongestDocument)
    reject("{} has {} bytes; at most {} are allowed", what, text.size(), kLongestDocument);
  return text;
}

std::string joined_text_of(const json& value, std::string_view what) {
  if (!value.is_array()) return text_of(value, what);
  std::string joined;
  for (const json& entry : value) {
    if (entry.is_null()) continue;
    const std::string text = text_of(entry, fmt::format("an entry of {}", what));
    if (blank(text)) continue;
    joined += (joined.empty() ? "" : "\n") + text;
    if (joined.size() > kLongestDocument) reject("{} has more than {} bytes", what, kLongestDocument);
  }
  return joined;
}

const json& only_entry(const json& value, std::string_view what) {
  if (!value.is_array()) return value;
  if (value.size() != 1)
    reject("{} is a list of {}; only a list of one can be used here", what, value.size());
  return value.front();
}

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

json id_of(const json& value, std::string_view what) {
  if (value.is_string()) return text_of(value, what);
  if (value.is_null()) reject("{} is empty", what);
  if (!value.is_number()) reject("{} is {}, not text or a number", what, kind_of(value));
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    reject("{} is not a finite number", what);
  if (value.is_number_float() && std::abs(value.get<double>()) >= 0x1p53)
    reject("{} has too many digits for a number; write it as text", what);
  return value;
}

const json& list_cell(const json& cells, std::string_view column, std::string_view things, size_t most) {
  const json& list = cell(cells, column);
  if (!list.is_array())
    reject("column \"{}\" is {}, not a list of {}{}", column, kind_of(list), things,
           list.is_string() ? "; write a JSON list" : "");
  if (list.empty()) reject("the record has no {}", things);
  if (list.size() > most) reject("the record has {} {}; at most {} are allowed", list.size(), things, most);
  return list;
}

HtmlText read_html(std::string text, Html html) {
  if (html == Html::text) return html_text(text);
  return {std::move(text), {}};
}

}  // namespace sheaf
