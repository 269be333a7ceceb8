// An OpenAI batch through the program: requests in, output and error lines out.
#include <gtest/gtest.h>
#include <regex>
#include <set>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

ordered_json request(const std::string& id, ordered_json more = ordered_json::object(),
                     const std::string& text = "Hello you") {
  ordered_json body{{"model", "some-model"},
                    {"messages", ordered_json::array({{{"role", "user"}, {"content", text}}})}};
  body.update(more);
  return {{"custom_id", id}, {"method", "POST"}, {"url", "/v1/chat/completions"}, {"body", std::move(body)}};
}

ordered_json object_format(const char* schema) {
  return {
      {"response_format",
       {{"type", "json_schema"},
        {"json_schema", {{"name", "thing"}, {"strict", true}, {"schema", ordered_json::parse(schema)}}}}}};
}

class Batch : public testing::Test {
 protected:
  Batch() {
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: chatml}\ninput: {path: batch.jsonl, format: openai-batch}\n"
                                   "task: {kind: chat}\nmethod: {name: ippd, max_value_tokens: 12}\n"
                                   "engine: {device: cpu, window: 4}\noutput: {path: out}\n");
  }

  Ran run(const std::vector<ordered_json>& lines, const std::string& more = "") {
    std::string text;
    for (const ordered_json& line : lines) text += line.dump() + "\n";
    scratch_.write("batch.jsonl", text);
    return again(more);
  }

  Ran again(const std::string& more = "", const std::string& folder = "out") {
    return run_sheaf(scratch_, "run " + scratch_.path("job.yaml") +
                                   " --restart --set output.path=" + scratch_.path(folder) + " " + more);
  }

  std::vector<json> rows(const std::string& folder = "out") const {
    return read_json_lines(read_text(scratch_.path(folder + "/rows-00000.jsonl")));
  }
  std::vector<json> errors(const std::string& folder = "out") const {
    return read_json_lines(read_text(scratch_.path(folder + "/errors.jsonl")));
  }

  TempFolder scratch_;
};

TEST_F(Batch, WritesTheOutputLinesOfTheApi) {
  std::vector<ordered_json> lines;
  for (int i = 0; i < 9; ++i)
    lines.push_back(request("r" + std::to_string(i), {{"max_tokens", 3 + i}}, std::string(5, 'a') + "?"));
  lines[4]["body"]["n"] = 2;
  lines[6].erase("custom_id");
  ASSERT_EQ(run(lines, "--set output.format=jsonl").exit_code, 1);
  const std::vector<json> plain = rows();
  const Ran ran = again("--set output.format=openai-batch");
  ASSERT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(ran.out.find("/rows-*.jsonl, errors.jsonl"), std::string::npos) << ran.out;
  const std::vector<json> written = rows();
  ASSERT_EQ(written.size(), 7u);
  std::set<std::string> ids;
  for (size_t i = 0; i < written.size(); ++i) {
    const json& line = written[i];
    EXPECT_EQ(line["custom_id"], plain[i]["id"]);
    EXPECT_TRUE(line["error"].is_null());
    EXPECT_TRUE(line["id"].get<std::string>().starts_with("batch_req_"));
    ids.insert(line["id"]);
    const json& response = line["response"];
    EXPECT_EQ(response["status_code"], 200);
    EXPECT_TRUE(response["request_id"].is_string());
    const json& body = response["body"];
    EXPECT_EQ(body["object"], "chat.completion");
    EXPECT_EQ(body["model"], "model") << "the one that answered, by its file name";
    EXPECT_GT(body["created"], 1'700'000'000);
    ASSERT_EQ(body["choices"].size(), 1u);
    EXPECT_EQ(body["choices"][0]["index"], 0);
    EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
    EXPECT_EQ(body["choices"][0]["message"]["content"], plain[i]["answer"]);
    EXPECT_EQ(body["choices"][0]["finish_reason"], plain[i]["finish"]);
    const json& usage = body["usage"];
    EXPECT_GT(usage["prompt_tokens"], 6) << "a token a byte, and the turns";
    EXPECT_LE(usage["completion_tokens"], 12);
    EXPECT_EQ(usage["total_tokens"],
              usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  }
  EXPECT_EQ(ids.size(), 7u);
  ASSERT_EQ(errors().size(), 2u);
  EXPECT_EQ(errors()[0]["custom_id"], "r4");
  EXPECT_EQ(errors()[0]["response"]["status_code"], 400);
  EXPECT_EQ(errors()[0]["response"]["body"]["error"]["message"],
            "2 answers are asked for, but at temperature 0 all of them are the same; set a temperature");
  EXPECT_TRUE(errors()[1]["custom_id"].is_null());
}

TEST_F(Batch, ShardsGiveTheSameLines) {
  std::vector<ordered_json> lines;
  for (int i = 0; i < 12; ++i) lines.push_back(request("r" + std::to_string(i), {{"max_tokens", 2}}));
  lines[2]["body"]["n"] = 3;
  lines[9]["body"]["n"] = 3;
  ASSERT_EQ(run(lines, "--set output.format=openai-batch").exit_code, 1);
  std::string folders;
  for (const char* shard : {"0", "1"}) {
    const std::string folder = std::string("shard") + shard;
    EXPECT_EQ(
        again("--set output.format=openai-batch --shard " + std::string(shard) + "/2", folder).exit_code, 1);
    folders += " " + scratch_.path(folder);
  }
  ASSERT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("merged") + folders).exit_code, 1);
  EXPECT_EQ(errors("merged"), errors());
  std::vector<std::string> ids;
  for (const char* file : {"merged/rows-00000.jsonl", "merged/rows-00001.jsonl"})
    for (const json& line : read_json_lines(read_text(scratch_.path(file)))) ids.push_back(line["custom_id"]);
  ASSERT_EQ(ids.size(), rows().size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], rows()[i]["custom_id"].get<std::string>());
}

TEST_F(Batch, OutputOfTheApiIsForRequestsOnly) {
  const Ran logprobs = run({request("r")}, "--set output.format=openai-batch --set output.logprobs=true");
  EXPECT_EQ(logprobs.exit_code, 2);
  EXPECT_NE(logprobs.err.find("output.logprobs works only with output.format jsonl, parquet and arrow"),
            std::string::npos)
      << logprobs.err;
  const Ran ask = run_sheaf(scratch_, "plan configs/ask.yaml --set output.format=openai-batch");
  EXPECT_EQ(ask.exit_code, 2);
  EXPECT_NE(ask.err.find("output.format openai-batch works only with task.kind chat"), std::string::npos)
      << ask.err;
}

TEST_F(Batch, EachRequestIsSampledByItsOwnSettings) {
  const auto sampled = [](int seed) { return ordered_json{{"temperature", 1}, {"seed", seed}}; };
  ASSERT_EQ(run({request("greedy"), request("zero", {{"temperature", 0}}), request("a", sampled(1)),
                 request("b", sampled(2)), request("narrow", {{"temperature", 1}, {"top_p", 1e-6}})})
                .exit_code,
            0);
  const std::vector<json> first = rows();
  EXPECT_EQ(first[0]["answer"], first[1]["answer"]);
  EXPECT_EQ(first[4]["answer"], first[0]["answer"]) << "only the likeliest token is left";
  EXPECT_NE(first[2]["answer"], first[0]["answer"]);
  // The job's own sampling is for requests that do not say. Ids seed too, so it is the same request.
  ASSERT_EQ(run({request("a"), request("greedy", {{"temperature", 0}})},
                "--set method.temperature=1 --set method.seed=1")
                .exit_code,
            0);
  EXPECT_EQ(rows()[0]["answer"], first[2]["answer"]);
  EXPECT_EQ(rows()[1]["answer"], first[0]["answer"]);
  // An answer that was decoded another way is not reused.
  ASSERT_EQ(
      run({request("a", sampled(2)), request("b", sampled(2))}, "--reuse " + scratch_.path("out")).exit_code,
      0);
  EXPECT_NE(rows()[0]["answer"], first[2]["answer"]);
  EXPECT_EQ(rows()[1]["answer"], first[3]["answer"]);
}

TEST_F(Batch, StopTextsEndAnAnswer) {
  const ordered_json hot{{"temperature", 1}, {"seed", 4}};
  ASSERT_EQ(run({request("a", hot)}).exit_code, 0);
  const std::string whole = rows()[0]["answer"];
  std::string stop;
  for (size_t at = 2; at + 2 < whole.size() && stop.empty(); ++at)
    if (const std::string two = whole.substr(at, 2);
        std::ranges::all_of(two, [](char c) { return c >= 0x20 && c < 0x7f; }) && whole.find(two) == at)
      stop = two;
  ASSERT_FALSE(stop.empty()) << whole;
  ordered_json stopped = hot;
  stopped["stop"] = ordered_json::array({"never written", stop});
  ASSERT_EQ(run({request("a", stopped)}).exit_code, 0);
  EXPECT_EQ(rows()[0]["answer"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(rows()[0]["finish"], "stop");
}

const char* const kThing = R"({"type": "object", "properties": {
  "title": {"type": "string", "description": "its name"}, "size": {"enum": ["small", "large"]},
  "count": {"type": "integer"}, "price": {"type": ["number", "null"]}, "used": {"type": "boolean"},
  "made": {"type": "string", "format": "date"}, "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
  "color": {"anyOf": [{"type": "string"}, {"type": "null"}]},
  "tags": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": false})";

/// Why an object does not fit; empty: it does.
std::string unfit(const ordered_json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) keys += key + " ";
  if (keys != "title size count price used made code color tags ") return keys;
  const auto matches = [&](const char* key, const char* pattern) {
    return object[key].is_string() && std::regex_match(object[key].get<std::string>(), std::regex(pattern));
  };
  if (!object["title"].is_string()) return "title";
  if (object["size"] != "small" && object["size"] != "large") return "size";
  if (!object["count"].is_number_integer()) return "count";
  if (!object["price"].is_number() && !object["price"].is_null()) return "price";
  if (!object["used"].is_boolean()) return "used";
  if (!matches("made", "\\d{4}-[01]\\d-[0-3]\\d")) return "made";
  if (!matches("code", "[A-Z]{2}-\\d{3}")) return "code";
  if (!object["color"].is_string() && !object["color"].is_null()) return "color";
  if (!object["tags"].is_array() && !object["tags"].is_null()) return "tags";
  return "";
}

TEST_F(Batch, ObjectsFitTheirSchemaWhateverTheModelWrites) {
  std::vector<ordered_json> lines;
  for (int i = 0; i < 40; ++i) {
    ordered_json more = object_format(kThing);
    if (i > 0) more["temperature"] = i % 8;
    more["seed"] = i;
    lines.push_back(request("r" + std::to_string(i), more, "Thing " + std::to_string(i)));
    ordered_json& messages = lines.back()["body"]["messages"];
    messages.insert(messages.begin(), ordered_json{{"role", "system"}, {"content", "Describe it."}});
  }
  const Ran ran = run(lines);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::vector<json> first = rows();
  ASSERT_EQ(first.size(), 40u);
  std::set<std::string> different;
  int unread = 0;
  for (const json& row : first) {
    const auto object = ordered_json::parse(row["answer"].get<std::string>());
    EXPECT_EQ(unfit(object), "") << row;
    different.insert(row["answer"]);
    // A list that cannot be read is null and told, never an empty list.
    if (!object["tags"].is_null()) continue;
    ++unread;
    EXPECT_NE(row["finish"], "stop") << row;
    EXPECT_NE(row["note"].get<std::string>().find("tags: "), std::string::npos) << row;
  }
  EXPECT_GT(unread, 0);
  EXPECT_GT(different.size(), 30u);
  for (const char* method : {"separate", "prefix", "standard"}) {
    ASSERT_EQ(again(std::string("--set method.name=") + method).exit_code, 0);
    EXPECT_EQ(rows(), first) << method;
  }
  const json plan = json::parse(run_sheaf(scratch_, "plan --json " + scratch_.path("job.yaml") +
                                                        " --set output.path=" + scratch_.path("plan"))
                                    .out);
  EXPECT_LT(plan["tokens_computed"].get<double>() * 5, plan["tokens_one_prompt_per_question"]);
}

constexpr const char* kOrder =
    R"({"$defs": {"Price": {"type": "object", "properties": {"amount": {"type": "number"},
  "currency": {"enum": ["EUR", "USD"]}}}}, "type": "object", "properties": {
  "customer": {"type": "object", "properties": {"name": {"type": "string"}, "vip": {"type": "boolean"}}},
  "lines": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"item": {"type": "string"},
    "pieces": {"type": "integer"}, "price": {"$ref": "#/$defs/Price"}, "parts": {"type": "array", "maxItems": 2, "items":
    {"type": "object", "properties": {"part": {"type": "string"}, "spare": {"type": "boolean"}}}}}}}}})";

TEST_F(Batch, ObjectsMayHoldObjectsAndListsOfThem) {
  std::vector<ordered_json> lines;
  for (int i = 0; i < 30; ++i) {
    ordered_json more = object_format(kOrder);
    more["temperature"] = 1 + i % 3;
    more["seed"] = i;
    lines.push_back(request("r" + std::to_string(i), more, "Order " + std::to_string(i)));
  }
  const Ran ran = run(lines);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::vector<json> first = rows();
  ASSERT_EQ(first.size(), 30u);
  size_t entries = 0, parts = 0;
  for (const json& row : first) {
    const auto object = ordered_json::parse(row["answer"].get<std::string>());
    ASSERT_EQ(object.size(), 2u) << row;
    EXPECT_TRUE(object["customer"]["name"].is_string()) << row;
    EXPECT_TRUE(object["customer"]["vip"].is_boolean()) << row;
    if (object["lines"].is_null()) {
      EXPECT_NE(row["finish"], "stop") << row;
      continue;
    }
    ASSERT_TRUE(object["lines"].is_array()) << row;
    EXPECT_LE(object["lines"].size(), 3u) << row;
    for (const ordered_json& line : object["lines"]) {
      ++entries;
      ASSERT_EQ(line.size(), 4u) << row;
      EXPECT_TRUE(line["item"].is_string()) << row;
      EXPECT_TRUE(line["pieces"].is_number_integer()) << row;
      EXPECT_TRUE(line["price"]["amount"].is_number()) << row;
      EXPECT_TRUE(line["price"]["currency"] == "EUR" || line["price"]["currency"] == "USD") << row;
      if (!line["parts"].is_array()) continue;
      EXPECT_LE(line["parts"].size(), 2u) << row;
      for (const ordered_json& part : line["parts"]) {
        ++parts;
        EXPECT_TRUE(part["part"].is_string() && part["spare"].is_boolean()) << row;
      }
    }
  }
  EXPECT_GT(entries, 10u) << "what a random model writes of a list is taken for entries";
  EXPECT_GT(parts, 3u);
  for (const char* method : {"separate", "prefix", "standard"}) {
    ASSERT_EQ(again(std::string("--set method.name=") + method).exit_code, 0);
    EXPECT_EQ(rows(), first) << method;
  }
}

TEST_F(Batch, AListThatCannotBeReadIsAnError) {
  std::vector<ordered_json> lines;
  for (int i = 0; i < 20; ++i) {
    ordered_json more = object_format(
        R"({"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}})");
    more["temperature"] = 2;
    more["seed"] = i;
    lines.push_back(request("r" + std::to_string(i), more));
  }
  ASSERT_EQ(run(lines, "--set output.format=openai-batch").exit_code, 0);
  int unread = 0;
  for (const json& line : rows()) {
    const json& choice = line["response"]["body"]["choices"][0];
    const json object = json::parse(choice["message"]["content"].get<std::string>());
    const bool failed = choice["finish_reason"] == "error";
    unread += failed;
    EXPECT_EQ(line["error"].is_null(), !failed) << line;
    if (choice["finish_reason"] == "stop") {
      EXPECT_TRUE(object["tags"].is_array()) << line;
    }
    if (!failed) continue;
    EXPECT_TRUE(object["tags"].is_null()) << line;
    EXPECT_EQ(line["error"]["code"], "unreadable_value");
    EXPECT_TRUE(line["error"]["message"].get<std::string>().starts_with("tags: ")) << line;
  }
  EXPECT_GT(unread, 0);
}

TEST_F(Batch, ARefusedSchemaHurtsNoOtherRequest) {
  const Ran ran = run({request("good", object_format(kThing)),
                       request("bad", object_format(R"({"type": "object", "properties": {"size":
                           {"anyOf": [{"type": "number"}, {"type": "string"}]}}})"))},
                      "--set output.format=openai-batch");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  ASSERT_EQ(rows().size(), 1u);
  EXPECT_EQ(unfit(ordered_json::parse(
                rows()[0]["response"]["body"]["choices"][0]["message"]["content"].get<std::string>())),
            "");
  EXPECT_EQ(errors().at(0)["response"]["body"]["error"]["message"],
            "body.response_format.json_schema.schema.properties.size.anyOf is not supported, except for one "
            "type and null; give one type");
}

TEST_F(Batch, TheShippedJobRunsOnItsSample) {
  const Ran ran = run_sheaf(
      scratch_,
      "run configs/chat.yaml --quiet --set engine.device=cpu --set model.path=" + scratch_.path("model") +
          " --set model.chat=chatml --set output.path=" + scratch_.path("out"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(rows().size(), 6u);
  EXPECT_EQ(errors().size(), 2u);
}

}  // namespace
}  // namespace sheaf
