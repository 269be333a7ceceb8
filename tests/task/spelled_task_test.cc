// Prompts as texts for a service, and rows from its replies.
#include "core/task/spelled_task.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

using nlohmann::json;

const Schema& tea() {
  static const Schema schema{
      {{"Tea",
        {{"Brand", "who makes it"}, {"Weight", "", ValueType::number}, {"Notes", "", ValueType::list}}}}};
  return schema;
}

Job extract_job() {
  Job job;
  job.file = "job.yaml";
  job.task.kind = TaskKind::extract;
  return job;
}

Record product(const std::string& text) {
  Record record;
  record.id = "t1";
  record.category = "Tea";
  record.document = text;
  return record;
}

Examples none() {
  return {};
}

TEST(SpelledTask, AnExtractPromptIsTheJobsOwn) {
  const Examples examples = none();
  SpelledTask task(extract_job(), tea(), examples);
  const auto requests = task.requests(product("Oak tea, 20 g \x01\x04"));
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].id, "t1");
  EXPECT_FALSE(requests[0].dialog.system);
  ASSERT_EQ(requests[0].dialog.turns.size(), 1u);
  EXPECT_EQ(
      requests[0].dialog.turns[0],
      "Extract the attributes below from the product text. Copy each value from the text as it is written "
      "there. Write null for an attribute that the text does not mention.\n\nAttributes:\n- Brand: who makes "
      "it\n- Weight (a number)\n- Notes (a list)\n\nProduct:\nOak tea, 20 g \x01\x04\n\nAnswer with one JSON "
      "object and nothing else. Its keys are [\"Brand\",\"Weight\",\"Notes\"].")
      << "bytes of a document are never taken for markup";
}

TEST(SpelledTask, ExamplesAreEarlierTurnsAndTheSystemTextStandsApart) {
  Job job = extract_job();
  job.task.prompt.system = "Be brief.";
  Examples examples;
  examples.by_category["Tea"] = {{"Elm tea", {{"Brand", "Elm"}, {"Weight", nullptr}}}};
  SpelledTask task(job, tea(), examples);
  const Dialog dialog = task.requests(product("Oak tea"))[0].dialog;
  EXPECT_EQ(dialog.system, "Be brief.");
  ASSERT_EQ(dialog.turns.size(), 3u);
  EXPECT_TRUE(dialog.turns[0].ends_with("Product:\nElm tea")) << dialog.turns[0];
  EXPECT_EQ(json::parse(dialog.turns[1]), (json{{"Brand", "Elm"}, {"Weight", nullptr}}));
  EXPECT_TRUE(dialog.turns[2].starts_with("Product:\nOak tea\n\nAnswer with one JSON")) << dialog.turns[2];
}

TEST(SpelledTask, TheUsersOwnWordsEndThePrompt) {
  Job job = extract_job();
  job.task.prompt.instruction = "Find {attributes}.";
  const Examples examples = none();
  SpelledTask task(job, tea(), examples);
  const std::string text = task.requests(product("Oak tea"))[0].dialog.turns[0];
  EXPECT_EQ(text.find("Answer with one JSON object"), std::string::npos) << text;
}

/// The values that a reply gives, or why it is of no use.
json read(const std::string& text, bool cut = false) {
  const Examples examples = none();
  const SpelledTask task(extract_job(), tea(), examples);
  try {
    const Row row = task.row(product("Oak tea, 20 g"), {SpelledReply{text, cut}});
    json values = json::object();
    for (const AttributeValue& value : std::get<ExtractedValues>(row.content).values) {
      json told;
      told = value_json(value.answer.value);
      values[value.name] = value.answer.note.empty() ? told : json{told, value.answer.note};
    }
    return values;
  } catch (const BadText& bad) {
    return bad.reason;
  }
}

TEST(SpelledTask, AnObjectIsFoundInWhateverStandsAroundIt) {
  const json right = {{"Brand", "Oak"}, {"Weight", 20}, {"Notes", {"a", "b"}}};
  const std::string object = R"({"Brand": "Oak", "Weight": 20, "Notes": ["a", "b"]})";
  EXPECT_EQ(read(object), right);
  EXPECT_EQ(read("Sure:\n```json\n" + object + "\n```\nDone."), right);
  EXPECT_EQ(read("<result>[" + object + "]</result> {\"x\": 1}"), right);
  EXPECT_EQ(read("{\"1\": " + object + "}"), right) << "one product of one";
  EXPECT_EQ(read(R"({"brand": "Oak", "Weight": "20 g", "Notes": "a, b"})")["Brand"], "Oak")
      << "other letters";
  EXPECT_EQ(read(R"({"Brand": "Oak"})")["Weight"], (json{nullptr, "the model left it out"}));
}

TEST(SpelledTask, ValuesHaveTheirTypesOrANote) {
  const json values = read(R"({"Brand": null, "Weight": "heavy", "Notes": []})");
  EXPECT_EQ(values["Brand"], nullptr);
  EXPECT_EQ(values["Weight"][0], nullptr);
  const json cut = read(R"({"Brand": "Oak", "Weight": 2)", true);
  EXPECT_EQ(cut["Brand"], "Oak");
  EXPECT_EQ(cut["Weight"][0], nullptr);
}

TEST(SpelledTask, AReplyOfNoUseIsRejected) {
  EXPECT_EQ(read("I cannot help."), "the reply has no JSON object");
  EXPECT_EQ(read(""), "the reply has no JSON object");
  EXPECT_EQ(read("{nothing}"), "the reply is not JSON");
  EXPECT_EQ(read("{}"), "the reply's JSON object has none of the attributes as a key");
  EXPECT_EQ(read(R"({"Maker": "Oak"})"), "the reply's JSON object has none of the attributes as a key");
  EXPECT_EQ(read(R"({"1": {"Maker": "Oak"}})"),
            "the reply's JSON object has none of the attributes as a key");
}

Job ask_job() {
  Job job;
  job.file = "job.yaml";
  job.task.kind = TaskKind::ask;
  job.input.questions = "questions";
  return job;
}

Record mill() {
  Record record;
  record.id = "m";
  record.document = "The mill of Arn was built in 1802.";
  Question when, who, where;
  when.id = "q1";
  when.text = "When was it built?";
  who.id = "q2";
  who.text = "Who owns it?";
  where.id = "q3";
  where.text = "Where is it?";
  where.options = {"Arn", "Oss"};
  record.questions = {when, who, where};
  return record;
}

std::vector<std::string> answers(const Job& job, const Record& record,
                                 const std::vector<std::optional<SpelledReply>>& replies) {
  const Examples examples = none();
  const Schema schema;
  const SpelledTask task(job, schema, examples);
  std::vector<std::string> told;
  const Row row = task.row(record, replies);
  for (const QuestionAnswer& each : std::get<std::vector<QuestionAnswer>>(row.content)) {
    const auto* text = std::get_if<std::string>(&each.answer.value);
    told.push_back((text ? *text : "null") + (each.answer.note.empty() ? "" : " (" + each.answer.note + ")"));
  }
  return told;
}

TEST(SpelledTask, QuestionsAreAskedOneByOne) {
  const Examples examples = none();
  const Schema schema;
  SpelledTask task(ask_job(), schema, examples);
  const auto requests = task.requests(mill());
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].id, "q2");
  EXPECT_TRUE(requests[1].dialog.turns[0].ends_with(
      "Passage:\nThe mill of Arn was built in 1802.\n\nQuestion: Who owns it?"))
      << requests[1].dialog.turns[0];
  EXPECT_NE(requests[2].dialog.turns[0].find("A) Arn\nB) Oss\nAnswer with the letter"), std::string::npos);
}

TEST(SpelledTask, AnswersAreReadAsTheJobsOwn) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(answers(ask_job(), mill(), {{{"\n 1802\nor so"}}, {{"null"}}, {{"A"}}}),
            (Texts{"1802", "null", "A"}));
  for (const char* letter : {"B", "b", "(B)", "B) Oss", "**B**", "Oss", "oss\n"})
    EXPECT_EQ(answers(ask_job(), mill(), {{{"x"}}, {{"y"}}, {{letter}}})[2], "B") << letter;
  EXPECT_EQ(answers(ask_job(), mill(), {std::nullopt, {{"the crown"}}, {{"C"}}}),
            (Texts{"null (the service gave no reply)", "the crown",
                   "null (the reply \"C\" is not one of the options)"}));
  EXPECT_EQ(answers(ask_job(), mill(), {{{"x"}}, {{" "}}, {{"A boat"}}})[1], "null (the reply is empty)");
  Job spans = ask_job();
  spans.task.answers = AnswerKind::span;
  Record record = mill();
  record.questions.pop_back();
  EXPECT_EQ(answers(spans, record, {{{"The Mill of arn"}}, {{"a miller"}}}),
            (Texts{"The mill of Arn", "null (not in the document: \"a miller\")"}));
}

TEST(SpelledTask, ARecordWithoutAnyUsableReplyIsRejected) {
  const Examples examples = none();
  const Schema schema;
  const SpelledTask task(ask_job(), schema, examples);
  EXPECT_THROW(task.row(mill(), {std::nullopt, std::nullopt, SpelledReply{"Z"}}), BadText);
}

TEST(SpelledTask, ChatJobsAreRefused) {
  Job job;
  job.file = "job.yaml";
  job.task.kind = TaskKind::chat;
  const Examples examples = none();
  EXPECT_THROW(SpelledTask(job, tea(), examples), Error);
}

}  // namespace
}  // namespace sheaf
