#include <algorithm>
#include <map>

#include "core/base/random_stream.h"
#include "core/task/find_text.h"
#include "core/text/spelling.h"
#include "io/corpus/corpus.h"
#include "io/corpus/example_file.h"
#include "io/corpus/record_mapper.h"
#include "io/datasets/gold.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr std::string_view kQuestionForms =
    "task.examples must name questions with their contexts and \"answers\" (.jsonl, .csv or .parquet), or a "
    "dataset as downloaded";
constexpr size_t kLongestShown = 60;

std::string text_of_id(const json& id) {
  return id.is_string() ? id.get<std::string>() : id.dump();
}

const json* cell_in(const json& of, const std::string& name) {
  const auto found = name.empty() ? of.end() : of.find(name);
  return found == of.end() || found->is_null() ? nullptr : &*found;
}

class QuestionExampleReader {
 public:
  explicit QuestionExampleReader(const Job& job)
      : job_(job), choice_(job.task.examples.per_category, job.task.examples.seed) {}

  Examples read() {
    const std::string& path = job_.task.examples.path;
    const auto rows = open_gold("auto", path, kQuestionForms);
    while (const auto row = rows->next()) {
      try {
        if (!row->error.empty()) throw BadText(row->error);
        if (!row->cells.is_object()) reject("this is not a JSON object");
        add(json(row->cells), *row);
      } catch (const BadText& bad) {
        refuse("{}: task.examples: {}", place_text(*row), bad.reason);
      } catch (const Error& error) {
        if (error.fault() != Fault::input) throw;
        refuse("{}: task.examples: {}", place_text(*row), error.what());
      }
    }
    join_corpus();
    Examples examples{choice_.take()};
    if (!examples.by_category.empty() || job_.task.examples.per_category == 0) return examples;
    if (!waiting_.empty())
      refuse("{}: task.examples: no record of {} has the question of an example, such as {}", path,
             job_.input.path, shorten_text(waiting_.begin()->first, kLongestShown));
    refuse("{}: task.examples: no question has an answer that can be shown; {}", path, kQuestionForms);
  }

  void tell(std::vector<std::string>& notices) const {
    const std::string& path = job_.task.examples.path;
    if (!waiting_.empty())
      notices.push_back(fmt::format("{}: {} left out, because no record of {} has the question: {}{}", path,
                                    counted(std::ssize(waiting_), "example"), job_.input.path,
                                    shorten_text(waiting_.begin()->first, kLongestShown),
                                    waiting_.size() > 1 ? ", …" : ""));
    if (unusable_ > 0)
      notices.push_back(fmt::format(
          "{}: sheaf leaves out {}: an answer must be one of the options or stand in the context; correct {}",
          path, counted(unusable_, "example"), first_unusable_));
  }

 private:
  /// The first of the columns that the row has.
  static const json* either(const json& cells, const std::string& own, const char* usual) {
    const json* found = cell_in(cells, own);
    return found ? found : cell_in(cells, usual);
  }

  static const json* answers_of(const json& from) {
    for (const char* name : {"answers", "answer"})
      if (const auto found = from.find(name); found != from.end()) return &*found;
    return nullptr;
  }

  void add(const json& cells, const DatasetRow& row) {
    const json* const context = either(cells, job_.input.context, "context");
    if (!context) {
      const json* const id = either(cells, "", "id");
      const json* const answers = answers_of(cells);
      if (!id || !answers)
        reject(
            "column \"{}\" is missing; an example needs a context and a question, or the \"id\" of a "
            "question "
            "of the corpus",
            job_.input.context);
      waiting_.emplace(text_of_id(*id), std::pair(*answers, place_text(row)));
      return;
    }
    const std::string text =
        read_html(joined_text_of(*context, "the context of an example"), job_.input.html).text;
    const json* const list = either(cells, job_.input.questions, "questions");
    if (list && list->is_array()) {
      for (const json& each : *list)
        if (each.is_object()) add_question(text, each, "question");
      return;
    }
    json one = cells;
    for (const auto& [own, usual] :
         {std::pair(job_.input.question, "question"), std::pair(job_.input.options, "options"),
          std::pair(job_.input.answer_kind, "answer_kind")})
      if (const json* const found = cell_in(cells, own)) one[usual] = *found;
    add_question(text, one, "question");
  }

  void add_question(const std::string& context, const json& from, const char* key) {
    const json* const answers = answers_of(from);
    if (!answers) return;  // nobody said what is right
    Question question;
    const json* const text = cell_in(from, key);
    if (!text) reject("a question of an example has no \"question\"");
    question.text = text_of(*text, "a question of an example");
    if (const json* const options = cell_in(from, "options"); options && options->is_array())
      for (const json& option : *options) question.options.push_back(text_of(option, "an option"));
    if (const json* const kind = cell_in(from, "answer_kind"))
      question.kind = read_word<AnswerKind>(text_of(*kind, "\"answer_kind\" of an example"));
    use(context, question, *answers);
  }

  void use(const std::string& context, const Question& question, const json& answers) {
    const json* first = &answers;
    if (answers.is_array()) first = answers.empty() ? nullptr : &answers.front();
    ShownQuestion shown{mix(job_.task.examples.seed, hash_text(question.text)), question.text,
                        question.options};
    if (first && !first->is_null()) {
      std::string answer = text_of(*first, "an answer of an example");
      if (!blank(answer)) {
        shown.answer = usable(context, question, answer);
        if (!shown.answer) {
          if (unusable_++ == 0) first_unusable_ = fmt::format("\"{}\"", shorten_text(answer, kLongestShown));
          return;
        }
      }
    }
    if (!shown.answer && !question.options.empty()) return;  // one of the options is always chosen
    choice_.add("", {context, shown_json(shown)});
  }

  /// The answer as the model should write it; nothing where it cannot.
  std::optional<std::string> usable(const std::string& context, const Question& question,
                                    const std::string& answer) const {
    for (size_t i = 0; i < question.options.size(); ++i)
      if (answer == option_letter(i) || answer == question.options[i]) return option_letter(i);
    if (!question.options.empty()) return std::nullopt;
    if (question.kind.value_or(job_.task.answers) != AnswerKind::span) return answer;
    Record record;
    record.document = context;
    const auto place = find_text(record, answer);
    if (!place) return std::nullopt;
    return context.substr(place->begin, place->end - place->begin);
  }

  /// Adds the rows of which only the id of a question is known, with the contexts of the corpus.
  void join_corpus() {
    if (waiting_.empty()) return;
    if (job_.input.path == "-")
      refuse(
          "{}: task.examples: its records have no context, and standard input cannot be searched for their "
          "ids; "
          "add the columns of the context and the question",
          job_.task.examples.path);
    Job job = job_;
    job.input.keep.clear();
    job.input.limit = 0;
    const auto corpus = open_corpus(job, nullptr);
    while (!waiting_.empty()) {
      const auto row = corpus->next();
      if (!row) break;
      const auto* record = std::get_if<Record>(&*row);
      if (!record) continue;
      for (const Question& question : record->questions) {
        const auto found = waiting_.find(text_of_id(question.id.is_null() ? record->id : question.id));
        if (found == waiting_.end()) continue;
        try {
          use(whole_document(*record), question, found->second.first);
        } catch (const BadText& bad) {
          refuse("{}: task.examples: {}", found->second.second, bad.reason);
        }
        waiting_.erase(found);
      }
    }
  }

  const Job& job_;
  ExampleChoice choice_;
  std::map<std::string, std::pair<json, std::string>>
      waiting_;  ///< by id of a question: answers, and their place
  int64_t unusable_ = 0;
  std::string first_unusable_;
};

}  // namespace

Examples read_question_examples(const Job& job, std::vector<std::string>& notices) {
  QuestionExampleReader reader(job);
  Examples examples = reader.read();
  reader.tell(notices);
  return examples;
}

}  // namespace sheaf
