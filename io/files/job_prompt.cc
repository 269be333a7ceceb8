#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/task/prompt_template.h"
#include "core/text/spelling.h"
#include "io/files/job_file.h"
#include "io/files/job_keys.h"
#include "io/files/job_paths.h"

namespace sheaf {
namespace {

using OwnWords = Job::Task::Prompt;
using FieldNames = std::vector<std::string_view>;

/// A text of the prompt, and the fields that it may have.
struct PromptPart {
  std::string_view name;
  std::optional<std::string> OwnWords::*text;
  FieldNames asks, extracts;  ///< fields of each task
  bool columns = false;       ///< also those of the corpus; of ask alone where it is the question
};

const std::vector<PromptPart>& all_parts() {
  static const std::vector<PromptPart> parts = {
      {"system", &OwnWords::system, {}, {"category", "attributes"}},
      {"instruction", &OwnWords::instruction, {}, {"category", "attributes"}},
      {"document", &OwnWords::document, {"document"}, {"document", "category", "number"}, true},
      {"question", &OwnWords::question, {"question", "options"}, {"category", "attributes"}, true},
      {"example",
       &OwnWords::example,
       {"document", "question", "options", "answer"},
       {"document", "category", "answer"}},
  };
  return parts;
}

/// Names that stand for something in one part or another, so that no column can be meant.
bool has_meaning(std::string_view field, bool asks) {
  return std::ranges::any_of(all_parts(), [&](const PromptPart& part) {
    const FieldNames& names = asks ? part.asks : part.extracts;
    return std::ranges::find(names, field) != names.end();
  });
}

std::string in_braces(const FieldNames& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{{{}}}", i == 0 ? "" : i + 1 < names.size() ? ", " : " and ", names[i]);
  return text;
}

/// Checks the fields of a part, and keeps the columns that it names.
void check_fields(const PromptPart& part, const std::string& text, const std::string& place, TaskKind kind,
                  OwnWords& prompt) {
  const bool asks = kind == TaskKind::ask;
  const FieldNames& names = asks ? part.asks : part.extracts;
  const bool columns = part.columns && (asks || part.name == "document");
  const PromptTemplate words(text, place);
  for (const std::string& field : words.fields()) {
    if (std::ranges::find(names, field) != names.end()) continue;
    if (columns && !has_meaning(field, asks)) {
      if (std::ranges::find(prompt.columns, field, &OwnWords::Column::name) == prompt.columns.end())
        prompt.columns.push_back({field, place});
      continue;
    }
    refuse("{}: {{{}}} has no meaning here; {}", place, shorten_text(field, 60),
           names.empty() ? "this part can have no fields ({{ stands for a brace)"
                         : fmt::format("it can have {}{}", in_braces(names),
                                       columns ? " and columns of the corpus" : ""));
  }
  const auto needs_field = [&](std::string_view field) {
    if (!words.has(field)) refuse("{}: {{{}}} is missing", place, field);
  };
  if (part.name == "example") needs_field("answer");
  if (part.name == "document" && words.fields().empty())
    refuse("{}: {{document}}, or a column of the corpus, is missing", place);
}

/// The parts that a map gives. Those that are there already stay.
void read_parts(YamlMap& map, Job& job, MistakeList& found) {
  OwnWords& prompt = job.task.prompt;
  for (const PromptPart& part : all_parts())
    found.attempt([&] {
      if (const YamlPtr given = map.node(part.name); !given || given->kind == YamlNode::Kind::null)
        return;
      else if (given->kind == YamlNode::Kind::map)
        refuse("{}: {} must be text, not a map: put words with braces in quotes", map.where(part.name),
               map.path(part.name));
      std::string text;
      map.text(part.name, text);
      if (prompt.*part.text) return;
      const std::string place = fmt::format("{}: {}", map.where(part.name), map.path(part.name));
      if (job.task.kind != TaskKind::none) check_fields(part, text, place, job.task.kind, prompt);
      prompt.*part.text = std::move(text);
      if (part.name == "document") prompt.document_place = place;
      if (part.name == "question") job.input.places["task.prompt.question"] = place;
    });
}

/// The model must be told of the attributes somewhere.
void check_attributes(const YamlMap& map, const Job& job) {
  const OwnWords& prompt = job.task.prompt;
  const auto lists = [](const std::optional<std::string>& text) {
    return text && PromptTemplate(*text).has("attributes");
  };
  if (!job.task.list_attributes) {
    for (const auto& [name, part] :
         {std::pair{"system", &prompt.system}, {"instruction", &prompt.instruction}})
      if (lists(*part))
        refuse(
            "{}: task.prompt.{} has {{attributes}}, but task.list_attributes is false: each stands where it "
            "is "
            "asked for, in task.prompt.question",
            map.where(name), name);
    if (prompt.question && !lists(prompt.question))
      refuse("{}: task.prompt.question needs {{attributes}} where task.list_attributes is false",
             map.where("question"));
    return;
  }
  if (prompt.instruction && !lists(prompt.instruction) && !lists(prompt.system) && !lists(prompt.question))
    refuse("{}: {{attributes}} is missing: neither task.prompt.instruction nor task.prompt.question has it",
           map.where("instruction"));
}

/// A field that looks like {question}.
std::string misspelled_question(const std::string& words) {
  const std::vector<std::string> known{"question"};
  for (const std::string& field : PromptTemplate(words).fields())
    if (!nearest_spelling(field, known).empty())
      return fmt::format(", but {{{}}} is there: did you mean {{question}}", field);
  return "";
}

}  // namespace

void read_prompt(YamlMap& task, Job& job, MistakeList& found) {
  if (!task.has("prompt")) {
    task.node("prompt");
    return;
  }
  found.attempt([&] {
    const size_t before = found.size();
    YamlMap own = task.map_or("prompt", "file");
    read_keys("task.prompt", own, job, found);
    read_parts(own, job, found);
    found.attempt([&] { own.finish(); });
    OwnWords& prompt = job.task.prompt;
    if (job.task.kind != TaskKind::none) check_scopes("task.prompt", own, job, found);
    if (!prompt.file.empty() && found.attempt([&] { check_exists(own, "file", prompt.file); })) {
      YamlMap file(read_yaml(prompt.file, "a prompt"), "task.prompt");
      Job theirs = job;
      read_keys("task.prompt", file, theirs, found);
      if (!own.has("answer_end")) prompt.answer_end = theirs.task.prompt.answer_end;
      read_parts(file, job, found);
      if (file.has("file"))
        found.add(fmt::format("{}: a prompt's file cannot name another one", file.where("file")));
      found.attempt([&] { file.finish(); });
      if (job.task.kind != TaskKind::none) check_scopes("task.prompt", file, job, found);
    }
    if (found.size() != before) return;
    if (prompt.instruction && !job.task.instruction.empty())
      refuse("{}: task.instruction and task.prompt.instruction are both given; keep one",
             task.where("instruction"));
    if (job.task.kind == TaskKind::extract) check_attributes(own, job);
  });
}

void check_prompt(const Job& job) {
  const OwnWords& prompt = job.task.prompt;
  const bool columns = !job.input.questions.empty() || !job.input.question.empty();
  if (prompt.question && columns && job.task.kind == TaskKind::ask &&
      !PromptTemplate(*prompt.question).has("question"))
    refuse("{}: {{question}} is missing{}; put it in, or leave out the column of the questions",
           job.input.places.at("task.prompt.question"), misspelled_question(*prompt.question));
  if (prompt.question && !prompt.example && !job.task.examples.path.empty() && job.task.kind == TaskKind::ask)
    for (const std::string& field : PromptTemplate(*prompt.question).fields())
      if (field != "question" && field != "options")
        refuse("{}: {{{}}} is not known of examples; give task.prompt.example, too",
               job.input.places.at("task.prompt.question"), field);
  if (!prompt.document) return;
  std::vector<std::string> fields = PromptTemplate(*prompt.document).fields();
  std::erase_if(fields, [&](const std::string& field) { return field == "document" || field == "number"; });
  if (fields.empty()) return;
  const std::string& field = fields.front();
  const auto refuse_field = [&](const std::string& why) {
    refuse("{}: {{{}}} {}", prompt.document_place, field, why);
  };
  if (job.input.too_long != TooLong::refuse)
    refuse_field("would be lost where input.too_long cuts a document; leave out one of them");
  if (job.method.stacking == Stacking::joint)
    refuse_field("has no place where method.stacking is joint, which labels documents by {number} alone");
  if (find_method(job.method.name).wording.findings)
    refuse_field(fmt::format("is not known of the findings of method {}; put it into task.prompt.question",
                             job.method.name));
  if (!job.task.examples.path.empty() && !prompt.example && field != "category")
    refuse_field("is not known of examples; give task.prompt.example, too");
}

}  // namespace sheaf
