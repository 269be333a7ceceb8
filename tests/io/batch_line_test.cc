#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/corpus_records.h"

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

TEST(BatchLine, OptionsThatChangeNothingAreAccepted) {
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
}

/// The only record of a line.
Record record_of(const std::string& line, const std::function<void(Job&)>& change = {}) {
  TempFolder folder;
  Job job = chat_job(folder.write("b.jsonl", line + "\n"));
  if (change) change(job);
  CorpusRecords rows = read_all(job, nullptr);
  EXPECT_EQ(rows.rejects.size(), 0u) << (rows.rejects.empty() ? "" : rows.rejects[0].reason);
  return rows.records.empty() ? Record() : std::move(rows.records[0]);
}

Record record_with(const json& more, const std::function<void(Job&)>& change = {}) {
  json body{{"messages", {user("hello")}}};
  body.update(more);
  return record_of(request(body).dump(), change);
}

TEST(BatchLine, ARequestMaySetItsSampling) {
  const auto sampled = [](Job& job) {
    job.method.temperature = 0.7F, job.method.top_p = 0.9F, job.method.top_k = 3, job.method.seed = 5;
  };
  EXPECT_EQ(record_with(json::object(), sampled).decoding, nullptr);
  EXPECT_EQ(record_with({{"temperature", 0.7}, {"seed", 5}, {"stop", nullptr}}, sampled).decoding, nullptr);
  const auto own = record_with({{"top_p", 0.5}, {"seed", -1}, {"stop", "\n"}}, sampled).decoding;
  ASSERT_NE(own, nullptr);
  EXPECT_FLOAT_EQ(own->temperature, 0.7F) << "what it does not say is the job's";
  EXPECT_FLOAT_EQ(own->top_p, 0.5F);
  EXPECT_EQ(own->top_k, 3);
  EXPECT_EQ(own->seed, UINT64_MAX);
  EXPECT_EQ(own->stops, std::vector<std::string>{"\n"});
  EXPECT_FLOAT_EQ(record_with({{"temperature", 0}}, sampled).decoding->temperature, 0);
  EXPECT_EQ(record_with({{"stop", {"a", "b"}}}).decoding->stops, (std::vector<std::string>{"a", "b"}));
}

json object_format(const json& schema) {
  return {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"strict", true}, {"schema", schema}}}};
}

TEST(BatchLine, TheKeysOfAnObjectKeepTheirOrder) {
  std::string line =
      R"({"custom_id": "r", "body": {"messages": [{"role": "developer", "content": "Be brief."}, {"role":
          "user", "content": "x"}], "response_format": {"type": "json_schema", "json_schema": {"name": "n",
          "schema": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}, "k":
          {"type": ["boolean", "null"]}}}}}}})";
  std::erase(line, '\n');
  const Record record = record_of(line);
  EXPECT_EQ(record.dialog.system, "Be brief.");
  ASSERT_NE(record.object, nullptr);
  const std::vector<Attribute>& attributes = record.object->attributes;
  ASSERT_EQ(attributes.size(), 3u);
  EXPECT_EQ(attributes[0].name, "z");
  EXPECT_FALSE(attributes[0].nullable);
  EXPECT_EQ(attributes[1].name, "a");
  EXPECT_EQ(attributes[1].type, ValueType::integer);
  EXPECT_TRUE(attributes[2].nullable);
  EXPECT_EQ(record_with({{"response_format", {{"type", "text"}}}}).object, nullptr);
}

TEST(BatchLine, WrongOrUnsupportedOptionsAreRefusedByName) {
  EXPECT_EQ(reason_with({{"temperature", -0.5}}), "body.temperature is -0.5, but must be from 0 to 1000");
  EXPECT_EQ(reason_with({{"temperature", "hot"}}), "body.temperature is text, not a number");
  EXPECT_EQ(reason_with({{"top_p", 0}}), "body.top_p must be above 0");
  EXPECT_EQ(reason_with({{"seed", 1.5}}), "body.seed must be a whole number");
  EXPECT_EQ(reason_with({{"top_k", -1}}), "body.top_k must be a whole number from 0");
  EXPECT_EQ(reason_with({{"n", 0}}), "body.n is 0; it must be from 1 to 1024");
  EXPECT_EQ(reason_with({{"n", 1025}}), "body.n is 1025; it must be from 1 to 1024");
  EXPECT_EQ(reason_with({{"n", UINT64_MAX}}), "body.n is 18446744073709551615; it must be from 1 to 1024");
  EXPECT_EQ(reason_with({{"n", 1.5}}), "body.n must be a whole number from 1");
  EXPECT_EQ(reason_with({{"tools", {{{"type", "function"}}}}}), "body.tools is not supported");
  EXPECT_EQ(reason_with({{"stop", {"a", 1}}}), "body.stop is a number, not a text or a list of texts");
  EXPECT_EQ(reason_with({{"stop", ""}}), "body.stop has an empty text");
  EXPECT_EQ(reason_with({{"stop", {"a", "b", "c", "d", "e"}}}),
            "body.stop has 5 entries; at most 4 are allowed");
  EXPECT_EQ(reason_with({{"logprobs", true}}), "body.logprobs is not supported");
  EXPECT_EQ(reason_with({{"response_format", {{"type", "json_object"}}}}),
            "body.response_format.type is \"json_object\"; use json_schema with the schema of an object, "
            "or text");
  const json flat{{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}};
  EXPECT_EQ(reason_with({{"response_format", object_format(flat)}}), "none");
  EXPECT_EQ(
      reason_with({{"response_format", object_format(flat)}, {"stop", "x"}}),
      "body.stop does not work with response_format json_schema, whose object ends by itself; remove it");
  EXPECT_EQ(reason_with({{"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "n"}}}}}}),
            "body.response_format.json_schema.schema is missing");
  const auto property = [&](const json& schema) {
    return reason_with(
        {{"response_format", object_format({{"type", "object"}, {"properties", {{"size", schema}}}})}});
  };
  const std::string path = "body.response_format.json_schema.schema.properties.size";
  EXPECT_EQ(property({{"anyOf", {{{"type", "number"}}, {{"type", "string"}}}}}),
            path + ".anyOf is not supported, except for one type and null; give one type");
  EXPECT_EQ(property({{"type", "object"}, {"properties", {{"w", {{"type", "number"}}}}}}), "none");
  EXPECT_EQ(
      property({{"type", "object"}, {"properties", {{"w", {{"type", "string"}, {"pattern", "^.+$"}}}}}}),
      path +
          ".properties.w.pattern: values cannot be decoded under it; use a pattern of letters, digits and "
          "classes such as [A-Z]{2}-\\d{4}, or allow null, which stands for what does not match");
  EXPECT_EQ(property({{"type", "string"}, {"pattern", "^.+$"}}),
            path +
                ".pattern: values cannot be decoded under it; use a pattern of letters, digits and classes "
                "such as [A-Z]{2}-\\d{4}, or allow null, which stands for what does not match");
  EXPECT_EQ(property({{"type", {"string", "null"}}, {"pattern", "^.+$"}}), "none");
  EXPECT_EQ(reason_with({{"max_tokens", 0}}), "body.max_tokens must be a whole number above 0");
  EXPECT_EQ(reason_with({{"max_tokens", 1.5}}), "body.max_tokens must be a whole number above 0");
  EXPECT_EQ(reason_for(json::array({user({{{"type", "text"}, {"text", "x"}}, {{"type", "image_url"}}})})),
            "body.messages[0].content[1].type is \"image_url\"; only text is supported");
  EXPECT_EQ(reason_for(json::array({{{"role", "user"}, {"content", "x"}, {"audio", {{"id", 1}}}}})),
            "body.messages[0].audio is not supported");
}

TEST(BatchLine, MalformedRequestsAreRejects) {
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
  const std::string message = error_of([&] { open_corpus(chat_job(path), nullptr); });
  EXPECT_TRUE(message.starts_with(fmt::format(
      "job.yaml: input.path: {} is not a batch file: its lines have no \"custom_id\"; task.kind chat wants "
      "a request on each line, such as {{\"custom_id\": \"1\", ",
      path)))
      << message;
}

}  // namespace
}  // namespace sheaf
