#include "core/task/spelled_task.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/task/find_text.h"
#include "core/task/prompt_text.h"
#include "core/task/record_row.h"
#include "core/text/json_reader.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

// The turns of a dialog as markup of one byte each.
constexpr char kSystem = 1, kSystemEnd = 2, kUser = 3, kAnswer = 4, kAnswerEnd = 5;

ChatTemplate spelled_chat() {
  ChatTemplate chat;
  chat.name = "spelled";
  chat.system_open = kSystem;
  chat.system_close = kSystemEnd;
  chat.user_open = kUser;
  chat.turn = kAnswer;
  chat.answer_close = kAnswerEnd;
  return chat;
}

/// The job as far as it words prompts and reads answers; what is about decoding is left out.
Job spelled_job(Job job) {
  if (job.task.kind != TaskKind::extract && job.task.kind != TaskKind::ask)
    refuse("{}: requests are made for jobs of task.kind extract and ask, not {}", job.file,
           word_of(job.task.kind));
  const Job::Method usual;
  const Numbers numbers = job.method.numbers;
  const CutValues cut = job.method.cut_values;
  job.method = usual;
  job.method.name = "standard";
  job.method.numbers = numbers;
  job.method.cut_values = cut;
  job.task.free_spans = true;  // bound to their contexts once they are read
  job.task.list_attributes = true;
  job.task.trust = {};
  job.output.confidence = job.output.logprobs = job.output.trace = false;
  return job;
}

std::string_view bare_text(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

/// What the tokens of a prompt say, turn by turn; what opens the answer is left out.
Dialog read_dialog(const Tokens& tokens) {
  Dialog dialog;
  std::string text;
  char turn = 0;
  const auto end_turn = [&] {
    if (turn == kSystem) dialog.system = text;
    if (turn == kUser || turn == kAnswer) dialog.turns.push_back(text);
    text.clear();
  };
  for (const TokenId token : tokens) {
    if (token < RawTokenizer::kMarkup) {
      text += static_cast<char>(token);
      continue;
    }
    end_turn();
    turn = static_cast<char>(token - RawTokenizer::kMarkup);
  }
  for (std::string& said : dialog.turns) said = valid_utf8(bare_text(said));
  return dialog;
}

/// The part of a reply in which the object is looked for: what its last <result> holds, or a fenced block.
std::string_view object_part(std::string_view reply) {
  for (const auto& [open, close] :
       {std::pair<std::string_view, std::string_view>("<result>", "</result>"), {"```json", "```"}}) {
    const size_t at = reply.rfind(open);
    if (at == std::string_view::npos) continue;
    const std::string_view inside = reply.substr(at + open.size());
    return inside.substr(0, inside.find(close));
  }
  return reply;
}

bool has_attribute(const WrittenObject& object, const Category& category) {
  const auto letters = [](std::string_view name) { return small_letters(std::string(bare_text(name))); };
  return std::ranges::any_of(object.members, [&](const auto& member) {
    return std::ranges::any_of(category.attributes, [&](const Attribute& attribute) {
      return letters(attribute.name) == letters(member.first);
    });
  });
}

/// "B" for "B", "b)", "(B) Lima", "**B**" and "Lima"; nothing where the reply names no option.
std::optional<std::string> option_of(const Question& question, std::string_view reply) {
  const std::string line(bare_text(reply.substr(0, reply.find('\n'))));
  for (size_t i = 0; i < question.options.size(); ++i)
    if (small_letters(line) == small_letters(std::string(bare_text(question.options[i]))))
      return option_letter(i);
  const size_t at = line.find_first_not_of("(*\"' ");
  if (at == std::string::npos) return std::nullopt;
  // "A boat" begins with a word.
  const bool letter = at + 1 == line.size() || std::string_view(").:*\"',").find(line[at + 1]) < 7;
  for (size_t i = 0; i < question.options.size() && letter; ++i)
    if (small_letter(line[at]) == small_letter(option_letter(i)[0])) return option_letter(i);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> request_ids(const Job& job, const Record& record) {
  if (job.task.kind == TaskKind::extract) return {gold_text(record.id)};
  std::vector<std::string> ids;
  for (const Question& question : record.questions)
    ids.push_back(gold_text(question.id.is_null() ? record.id : question.id));
  return ids;
}

SpelledTask::SpelledTask(const Job& job, const Schema& schema, const Examples& examples)
    : job_(spelled_job(job)), schema_(schema), chat_(spelled_chat()) {
  const bool asks = job_.task.kind == TaskKind::ask;
  TaskContext context{tokenizer_, chat_, job_, {}, &examples};
  if (!asks) context.wording.answers = AnswerForm::object;
  task_ = asks ? make_ask_task(context) : make_extract_task(context, schema_);
}

std::string SpelledTask::last_words(const Record& record) const {
  // The user's own words say what the answer is to look like.
  if (job_.task.kind == TaskKind::ask || job_.task.prompt.instruction || job_.task.prompt.question) return {};
  ordered_json keys = ordered_json::array();
  for (const Attribute& attribute : schema_.of(record.category).attributes) keys.push_back(attribute.name);
  return "\n\nAnswer with one JSON object and nothing else. Its keys are " +
         keys.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + ".";
}

std::vector<SpelledRequest> SpelledTask::requests(const Record& record) {
  const RecordParts parts = task_->parts(record);
  const std::vector<std::string> ids = request_ids(job_, record);
  std::vector<SpelledRequest> all;
  for (size_t i = 0; i < parts.questions().size(); ++i) {
    Tokens tokens = parts.bin->instruction;
    for (const Tokens* part : {&parts.head, &parts.document, &parts.questions()[i].tokens})
      tokens.insert(tokens.end(), part->begin(), part->end());
    all.push_back({ids.at(i), read_dialog(tokens)});
    all.back().dialog.turns.back() += last_words(record);
  }
  return all;
}

Answer SpelledTask::read_object_reply(const Record& record, const SpelledReply& reply) const {
  std::string_view text = object_part(reply.text);
  const size_t open = text.find('{');
  if (open == std::string_view::npos) throw BadText("the reply has no JSON object");
  text.remove_prefix(open + 1);
  const Category& category = schema_.of(record.category);
  WrittenObject object = read_object(text);
  std::string unpacked;
  // A prompt for several documents has an object for each: {"1": {…}}.
  if (object.members.size() == 1 && !has_attribute(object, category) &&
      object.members[0].second.starts_with('{')) {
    unpacked = object.members[0].second.substr(1);
    text = unpacked;
    object = read_object(text);
  }
  if (object.members.empty() && !object.whole) throw BadText("the reply is not JSON");
  if (!has_attribute(object, category))
    throw BadText("the reply's JSON object has none of the attributes as a key");
  Answer answer;
  tokenizer_.encode(text, false, answer.tokens);
  answer.ending = reply.cut ? Ending::length : Ending::delimiter;
  return answer;
}

Answer SpelledTask::read_answer_reply(const Question& question, const SpelledReply& reply) const {
  std::string text(bare_text(reply.text));
  if (text.empty()) throw BadText("the reply is empty");
  if (!question.options.empty()) {
    const auto letter = option_of(question, text);
    if (!letter)
      throw BadText(
          fmt::format("the reply {} is not one of the options", ordered_json(shorten_text(text, 60)).dump()));
    text = *letter;
  }
  Answer answer;
  tokenizer_.encode(text, false, answer.tokens);
  answer.ending = reply.cut ? Ending::length : Ending::end_of_text;
  return answer;
}

Row SpelledTask::row(const Record& record, const std::vector<std::optional<SpelledReply>>& replies) const {
  std::vector<Answer> answers;
  std::vector<std::string> notes(replies.size());
  std::string first_note;
  size_t usable = 0;
  const bool asks = job_.task.kind == TaskKind::ask;
  for (size_t i = 0; i < replies.size(); ++i) {
    Answer& answer = answers.emplace_back();
    // Something that reads, whose value is not taken.
    if (asks && !record.questions[i].options.empty()) tokenizer_.encode("A", false, answer.tokens);
    try {
      if (!replies[i]) throw BadText("the service gave no reply");
      answer =
          asks ? read_answer_reply(record.questions[i], *replies[i]) : read_object_reply(record, *replies[i]);
      ++usable;
    } catch (const BadText& bad) {
      notes[i] = bad.reason;
      if (first_note.empty()) first_note = bad.reason;
    }
  }
  if (usable == 0) throw BadText(first_note);
  Row row = task_->row(record, answers);
  if (asks) {
    Record joined = record;
    if (!record.documents.empty()) joined.document = whole_document(record);
    const std::vector<RowAnswer*> read = answers_of(row.content);
    for (size_t i = 0; i < read.size(); ++i) {
      if (!notes[i].empty())
        *read[i] = {nullptr, notes[i]};
      else if (answer_kind(record.questions[i], job_.task.answers) == AnswerKind::span)
        bind_span(joined, replies[i]->cut, *read[i]);
    }
  }
  if (job_.output.spans) add_spans(record, task_->attributes(record), row);
  row.kept = record.kept;
  return row;
}

}  // namespace sheaf
