#include <gtest/gtest.h>

#include "tests/io/corpus_records.h"
#include "tests/io/temp_folder.h"

namespace sheaf {
namespace {

using nlohmann::json;

Job chat_job(const std::string& path) {
  Job job;
  job.file = "job.yaml";
  job.task.kind = TaskKind::chat;
  job.input.path = path;
  job.input.format = "openai-batch";
  job.input.id = "custom_id";
  return job;
}

json user(const json& content) {
  return {{"role", "user"}, {"content", content}};
}

json request(const json& body) {
  return {{"custom_id", "r"}, {"method", "POST"}, {"url", "/v1/chat/completions"}, {"body", body}};
}

/// Why a request is a reject; "none" where it is none.
std::string reason_of(const json& line, const std::function<void(Job&)>& change = {}) {
  TempFolder folder;
  Job job = chat_job(folder.write(
      "b.jsonl", request({{"messages", json::array({user("first")})}}).dump() + "\n" + line.dump()));
  if (change) change(job);
  const CorpusRecords rows = read_all(job, nullptr);
  EXPECT_EQ(rows.records.size() + rows.rejects.size(), 2u);
  return rows.rejects.empty() ? "none" : rows.rejects[0].reason;
}

/// The same of a request with one user message and these keys beside it.
std::string reason_with(const json& more, const std::function<void(Job&)>& change = {}) {
  json body{{"messages", {user("hello")}}};
  body.update(more);
  return reason_of(request(body), change);
}

std::string reason_for(const json& messages) {
  return reason_of(request({{"messages", messages}}));
}

TEST(BatchLine, ReadsDialogs) {
  TempFolder folder;
  const json parts = {{{"type", "text"}, {"text", "two"}}, {{"type", "text"}, {"text", "parts"}}};
  const json dialog = {{{"role", "system"}, {"content", "Be brief."}},
                       user("One?"),
                       {{"role", "assistant"}, {"content", "One."}, {"tool_calls", nullptr}},
                       user(parts)};
  json number = request({{"messages", {user("hello")}}});
  number["custom_id"] = 7;
  const std::string path = folder.write(
      "b.jsonl",
      request({{"model", "m"}, {"messages", dialog}, {"max_tokens", 12}, {"max_completion_tokens", 9}})
              .dump() +
          "\n" + number.dump() + "\n");
  const CorpusRecords rows = read_all(chat_job(path), nullptr);
  ASSERT_EQ(rows.records.size(), 2u);
  EXPECT_EQ(rows.records[0].id, "r");
  EXPECT_EQ(rows.records[0].dialog.system, "Be brief.");
  EXPECT_EQ(rows.records[0].dialog.turns, (std::vector<std::string>{"One?", "One.", "two\nparts"}));
  EXPECT_EQ(rows.records[0].max_tokens, 9);
  EXPECT_EQ(rows.records[1].id, 7);
  EXPECT_FALSE(rows.records[1].dialog.system);
  EXPECT_EQ(rows.records[1].max_tokens, 0);
}

TEST(BatchLine, WhatAsksForNothingElseIsFine) {
  EXPECT_EQ(reason_with({{"n", 1},
                         {"stream", false},
                         {"tools", json::array()},
                         {"logit_bias", json::object()},
                         {"stop", nullptr},
                         {"frequency_penalty", 0},
                         {"response_format", {{"type", "text"}}},
                         {"tool_choice", "none"},
                         {"temperature", 0},
                         {"top_p", 0.3},
                         {"seed", 5},
                         {"user", "u"}}),
            "none");
  const auto sampled = [](Job& job) {
    job.method.temperature = 0.7F, job.method.top_p = 0.9F, job.method.seed = 5;
  };
  EXPECT_EQ(reason_with({{"temperature", 0.7}, {"top_p", 0.9}, {"seed", 5}}, sampled), "none");
  EXPECT_EQ(reason_with({{"temperature", 0.7}, {"top_p", 0.8}}, sampled),
            "body.top_p is 0.8, but the job's method.top_p is 0.9; a job uses one value for all requests");
}

TEST(BatchLine, WhatIsNotDoneHereIsNamed) {
  EXPECT_EQ(reason_with({{"temperature", 0.5}}),
            "body.temperature is 0.5, but the job's method.temperature is 0; a job uses one value for all "
            "requests");
  EXPECT_EQ(reason_with({{"n", 2}}), "body.n is 2; only 1 answer per request is supported");
  EXPECT_EQ(reason_with({{"tools", {{{"type", "function"}}}}}), "body.tools is not supported");
  EXPECT_EQ(reason_with({{"stop", {"\n"}}}), "body.stop is not supported");
  EXPECT_EQ(reason_with({{"logprobs", true}}), "body.logprobs is not supported");
  EXPECT_EQ(reason_with({{"response_format", {{"type", "json_object"}}}}),
            "body.response_format must have the type text; no other is supported");
  EXPECT_EQ(reason_with({{"max_tokens", 0}}), "body.max_tokens must be a whole number above 0");
  EXPECT_EQ(reason_with({{"max_tokens", 1.5}}), "body.max_tokens must be a whole number above 0");
  EXPECT_EQ(reason_for(json::array({user({{{"type", "text"}, {"text", "x"}}, {{"type", "image_url"}}})})),
            "body.messages[0].content[1].type is \"image_url\"; only text is supported");
  EXPECT_EQ(reason_for(json::array({{{"role", "user"}, {"content", "x"}, {"audio", {{"id", 1}}}}})),
            "body.messages[0].audio is not supported");
}

TEST(BatchLine, WhatIsNoRequestIsARow) {
  EXPECT_EQ(reason_for(json::array()), "body.messages must end with a user message");
  EXPECT_EQ(reason_for("hello"), "body.messages is text, not a list");
  EXPECT_EQ(reason_for(json::array({user(nullptr)})), "body.messages[0].content is null, not text");
  EXPECT_EQ(reason_for({user("a"), {{"role", "assistant"}, {"content", "b"}}}),
            "body.messages must end with a user message");
  EXPECT_EQ(reason_for({user("a"), user("b")}),
            "body.messages[1].role is \"user\", but must be assistant: after an optional system message, "
            "user and assistant take turns");
  EXPECT_EQ(reason_for(json::array({{{"content", "b"}}})), "body.messages[0].role is missing");
  json line = request({{"messages", {user("x")}}});
  line.erase("custom_id");
  EXPECT_EQ(reason_of(line), "column \"custom_id\" is missing");
  line["custom_id"] = "r";
  line["url"] = "/v1/embeddings";
  EXPECT_EQ(reason_of(line), "url is \"/v1/embeddings\", not \"/v1/chat/completions\"");
  line.erase("url");
  line["method"] = "GET";
  EXPECT_EQ(reason_of(line), "method is \"GET\", not \"POST\"");
  line["method"] = nullptr;
  EXPECT_EQ(reason_of(line), "none");
  line["body"] = 5;
  EXPECT_EQ(reason_of(line), "body is a number, not an object");
}

TEST(BatchLine, AFileOfSomethingElseIsRefused) {
  TempFolder folder;
  const std::string path = folder.write("b.jsonl", "{\"id\": 1, \"prompt\": \"x\"}\n");
  EXPECT_EQ(
      error_of([&] { open_corpus(chat_job(path), nullptr); }),
      fmt::format("job.yaml: input.format: {} has no column \"custom_id\"; use one of id, prompt", path));
}

}  // namespace
}  // namespace sheaf
