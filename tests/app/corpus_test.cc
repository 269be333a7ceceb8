// Corpora of every kind through the program: standard input, contexts found by id, requests of a batch, and
// files that are cut or damaged.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "core/text/html_text.h"
#include "core/text/utf8.h"
#include "io/base/file_layer.h"
#include "io/base/table_writer.h"
#include "tests/app/running.h"
#include "tests/packed_text.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

json question(int i) {
  return {{"n", i}, {"c", "Box " + std::to_string(i / 3) + " holds tea."}, {"q", "What is in it?"}};
}

std::string questions(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += question(i).dump() + "\n";
  return lines;
}

class CorpusThroughTheProgram : public testing::Test {
 protected:
  void SetUp() override { model_ = test::make_tiny_model(scratch_); }

  /// Writes a job and gives back its path.
  std::string job(const std::string& input, const std::string& task = "{kind: ask, instruction: Tell}",
                  const std::string& more = "") const {
    return scratch_.write("job.yaml", "model: {path: " + model_ + ", chat: chatml}\ninput: {" + input +
                                          "}\ntask: " + task +
                                          "\nmethod: {name: ippd, max_value_tokens: 4}\n"
                                          "engine: {device: cpu, threads: 1, window: 16}\noutput: {path: " +
                                          scratch_.path("out") + "}\n" + more);
  }
  std::string columns(const std::string& path) const {
    return "path: \"" + path + "\", id: n, context: c, question: q";
  }
  std::string to(const std::string& name) const {
    return " --quiet --set output.path=" + scratch_.path(name);
  }
  std::string rows(const std::string& folder) const {
    return read_text(scratch_.path(folder) + "/rows-00000.jsonl");
  }
  std::vector<json> rejects(const std::string& folder) const {
    return read_json_lines(read_text(scratch_.path(folder) + "/rejects.jsonl"));
  }

  Ran run_with(const std::string& input, const std::string& arguments) const {
    return run_sheaf(scratch_, arguments + " <" + input);
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(CorpusThroughTheProgram, StandardInputIsReadLikeAFile) {
  const std::string lines = questions(50) + "broken\n";
  const std::string file = scratch_.write("corpus.jsonl", lines);
  ASSERT_EQ(run_sheaf(scratch_, "run " + job(columns(file)) + to("file")).exit_code, 1);
  const std::string from_input = job(columns("-"));
  const Ran plain = run_with(file, "run " + from_input + to("input"));
  EXPECT_EQ(plain.exit_code, 1) << plain.err;
  EXPECT_EQ(rows("input"), rows("file"));
  ASSERT_EQ(rejects("input").size(), 1u);
  EXPECT_EQ(rejects("input")[0]["file"], "-");
  EXPECT_EQ(rejects("input")[0]["row"], 51);
  for (const char* kind : {"gz", "zst"}) {
    EXPECT_EQ(
        run_with(scratch_.write("packed", test::pack(lines, kind)), "run " + from_input + to(kind)).exit_code,
        1);
    EXPECT_EQ(rows(kind), rows("file"));
  }
  EXPECT_EQ(run_with(file, "plan " + from_input).exit_code, 1);
  const Ran verified = run_with(file, "verify " + from_input);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("20 records, 20 answers, exact match 1.0000"), std::string::npos)
      << verified.out;
  // Parts of it are parts of the whole.
  for (const char* shard : {"0/2", "1/2"})
    EXPECT_LE(run_with(file, "run " + from_input + to(std::string("shard") + shard[0]) + " --shard " + shard)
                  .exit_code,
              1);
  EXPECT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("merged") + " " + scratch_.path("shard0") + " " +
                                    scratch_.path("shard1"))
                .exit_code,
            1);
  EXPECT_EQ(rows("merged") + read_text(scratch_.path("merged/rows-00001.jsonl")), rows("file"));
  // Nothing is left of the copy.
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path("input")))
    EXPECT_EQ(entry.path().filename().string().find("scratch"), std::string::npos) << entry.path();
}

TEST_F(CorpusThroughTheProgram, HtmlIsReadAsItsTextAndSpansPointIntoIt) {
  const std::string html =
      "<ul><li>Kr\u00e4uter <b>&amp;</b> Salz</li><li>Oak</li></ul><script>var x;</script>";
  const std::string schema = scratch_.write(
      "schema.yaml",
      "attributes: {Kind: {type: span}, Wood: {type: span}}\ncategories: {Tea: [Kind, Wood]}\n");
  const auto run = [&](const std::string& name, const std::string& text, const std::string& more) {
    const std::string corpus =
        scratch_.write(name + ".jsonl", json{{"n", 1}, {"t", text}, {"k", "Tea"}}.dump() + "\n");
    const Ran ran = run_sheaf(
        scratch_, "run " +
                      job("path: " + corpus + ", id: n, document: t, category: k, " + more,
                          "{kind: extract, schema: " + schema + "}") +
                      to(name) +
                      " --set method.name=hpd --set method.max_value_tokens=40 --set output.spans=true" +
                      " --set method.null_bias=-100 --set output.logprobs=true");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return read_json_lines(rows(name)).at(0);
  };
  const json plain = run("plain", "Kr\u00e4uter & Salz\nOak", "html: keep"),
             read = run("html", html, "html: text");
  for (const char* same : {"values", "logprobs"}) EXPECT_EQ(read.at(same), plain.at(same)) << read;
  ASSERT_TRUE(read.at("values").at("Kind").is_string()) << read;
  for (const auto& [name, value] : read.at("values").items()) {
    const json& span = read.at("spans").at(name);
    std::vector<std::string> characters;
    for (size_t at = 0; at < html.size(); at += sequence_bytes(html[at]))
      characters.push_back(html.substr(at, sequence_bytes(html[at])));
    std::string there;
    for (size_t c = span.at("start"); c < span.at("end").get<size_t>(); ++c) there += characters.at(c);
    EXPECT_EQ(html_text(there).text, value) << span << there;
  }
  const Ran shown = run_sheaf(scratch_, "show " + scratch_.path("html") + " --json");
  EXPECT_EQ(read_json_lines(shown.out).at(0).at("document"), "Kr\u00e4uter & Salz\nOak")
      << "as the model read it";
}

TEST_F(CorpusThroughTheProgram, ARunFromStandardInputResumesWhenGivenTheSameInput) {
  const std::string file = scratch_.write("corpus.jsonl", questions(600));
  const std::string command = "run " + job(columns("-")) + " --set engine.window=4";
  ASSERT_EQ(run_with(file, command + to("whole")).exit_code, 0);
  test::Running session(command + to("stopped") + " <" + file, test::stop_at_group(20));
  ASSERT_TRUE(session.stopped());
  session.send(SIGKILL);
  ASSERT_EQ(session.end(), 128 + SIGKILL);
  ASSERT_FALSE(std::filesystem::exists(scratch_.path("stopped/_SUCCESS")));
  const Ran other = run_with(scratch_.write("other.jsonl", questions(599)), command + to("stopped"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("the corpus shrank: standard input shrank from"), std::string::npos) << other.err;
  const Ran again = run_with(file, command + " --set output.path=" + scratch_.path("stopped"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("resuming after"), std::string::npos) << again.err;
  EXPECT_EQ(rows("stopped"), rows("whole"));
}

TEST_F(CorpusThroughTheProgram, ContextsFoundByIdGiveTheSameRows) {
  std::vector<json> all;
  for (int i = 0; i < 60; ++i) all.push_back(question(i));
  std::string whole, by_id;
  for (const json& row : all) whole += row.dump() + "\n";
  for (int i = 0; i < 60; ++i) {
    json row = all[static_cast<size_t>(i)];
    row["about"] = "box " + std::to_string(i / 3);
    if (i % 3 != i / 3 % 3) row["c"] = nullptr;  // one row of three has it: the first, second or third
    by_id += row.dump() + "\n";
  }
  ASSERT_EQ(
      run_sheaf(scratch_, "run " + job(columns(scratch_.write("w.jsonl", whole))) + to("whole")).exit_code,
      0);
  const Ran ran =
      run_sheaf(scratch_, "run " + job(columns(scratch_.write("i.jsonl", by_id)) + ", context_id: about") +
                              to("by_id"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(rows("by_id"), rows("whole"));
}

TEST_F(CorpusThroughTheProgram, RowsAboutOneContextShareAPromptInAnyOrder) {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += json{{"n", i}, {"c", "Box " + std::to_string(i % 10)}, {"q", "What?"}}.dump() + "\n";
  const std::string path = scratch_.write("mixed.jsonl", lines);
  const auto prompts = [&](const std::string& window) {
    const Ran ran =
        run_sheaf(scratch_, "plan --json " + job(columns(path)) + " --set engine.window=" + window);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out)["stacks"].get<int>();
  };
  EXPECT_EQ(prompts("40"), 2) << "ten contexts, six a prompt";
  EXPECT_EQ(prompts("10"), 8) << "no two rows of a window are about one context";
}

TEST_F(CorpusThroughTheProgram, RequestsOfABatchAreAnsweredAsOneByOne) {
  std::string lines;
  for (int i = 0; i < 24; ++i) {
    json messages = json::array();
    if (i % 4)
      messages.push_back({{"role", "system"}, {"content", "Speak like box " + std::to_string(i % 4)}});
    if (i % 3 == 0) {
      messages.push_back({{"role", "user"}, {"content", "Hello."}});
      messages.push_back({{"role", "assistant"}, {"content", "Hello you."}});
    }
    messages.push_back({{"role", "user"}, {"content", "Count to " + std::to_string(i)}});
    json body{{"model", "m"}, {"messages", messages}, {"max_tokens", 1 + i % 9}};
    if (i == 7) body["n"] = 2;
    if (i == 8) body["temperature"] = 1;
    if (i % 5 == 0)
      body["response_format"] = {
          {"type", "json_schema"},
          {"json_schema",
           {{"name", "n"},
            {"schema",
             {{"type", "object"},
              {"properties", {{"count", {{"type", "integer"}}}, {"word", {{"type", "string"}}}}}}}}}};
    lines += json{{"custom_id", "request-" + std::to_string(i)},
                  {"method", "POST"},
                  {"url", "/v1/chat/completions"},
                  {"body", body}}
                 .dump() +
             "\n";
  }
  const std::string path = scratch_.write("batch.jsonl", lines);
  const std::string chat = job("path: " + path + ", format: openai-batch", "{kind: chat}") +
                           " --set method.max_value_tokens=6 --set output.logprobs=true";
  for (const char* method : {"separate", "standard", "prefix", "ippd"}) {
    const Ran ran = run_sheaf(scratch_, "run " + chat + to(method) + " --set method.name=" + method);
    ASSERT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_EQ(rows(method), rows("separate"));
  }
  // Without a chat layout nothing stands before the text, and earlier answers have no place.
  for (const char* method : {"separate", "ippd"})
    ASSERT_EQ(run_sheaf(scratch_, "run " + chat + to(std::string("plain-") + method) +
                                      " --set model.chat=plain --set method.name=" + method)
                  .exit_code,
              1);
  EXPECT_EQ(rows("plain-ippd"), rows("plain-separate"));
  EXPECT_EQ(rejects("plain-ippd").size(), 9u);
  const std::vector<json> answers = read_json_lines(rows("ippd"));
  ASSERT_EQ(answers.size(), 23u);
  EXPECT_EQ(answers[0]["id"], "request-0");
  EXPECT_EQ(answers[1]["finish"], "length");
  EXPECT_TRUE(answers[1]["answer"].is_string());
  EXPECT_TRUE(json::parse(answers[0]["answer"].get<std::string>())["count"].is_number_integer());
  EXPECT_TRUE(answers[0]["logprob"].is_number());
  ASSERT_EQ(rejects("ippd").size(), 1u);
  EXPECT_EQ(rejects("ippd")[0]["id"], "request-7");
  const Ran verified = run_sheaf(scratch_, "verify " + chat + " --limit 24");
  EXPECT_NE(verified.out.find("23 records, 28 answers, exact match 1.0000"), std::string::npos)
      << verified.out << verified.err;
  const Ran plan = run_sheaf(scratch_, "plan --json " + chat);
  const json planned = json::parse(plan.out);
  EXPECT_LT(planned["tokens_computed"], planned["tokens_one_prompt_per_question"]);
  // As a table: the columns are those of the rows.
  ASSERT_EQ(run_sheaf(scratch_, "run " + chat + to("table") + " --set output.format=parquet").exit_code, 1);
  const json table =
      json::parse(run_sheaf(scratch_, "inspect --json " + scratch_.path("table/rows-00000.parquet")).out);
  EXPECT_EQ(table["corpus"]["records"], 23);
  std::set<std::string> names;
  for (const json& column : table["corpus"]["columns"]) names.insert(column["name"]);
  EXPECT_EQ(names, (std::set<std::string>{"id", "answer", "finish", "logprob", "samples"}));
  EXPECT_EQ(table["corpus"]["first"]["id"], "request-0");
}

/// A change to a file: cut somewhere, or a few bits flipped.
std::string damage(std::string bytes, std::mt19937& random) {
  if (random() % 2) return bytes.substr(0, random() % bytes.size());
  for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
  return bytes;
}

TEST_F(CorpusThroughTheProgram, DamagedFilesChangeNoOtherRow) {
  const std::string lines = questions(60), source = scratch_.write("lines", lines);
  ASSERT_EQ(
      run_sheaf(scratch_, "run " + job(columns(scratch_.write("good.jsonl", lines))) + to("good")).exit_code,
      0);
  std::map<std::string, json> good;  // row by id
  for (const json& row : read_json_lines(rows("good"))) good[row["id"].dump()] = row;
  std::map<std::string, std::string> files{
      {"jsonl", lines}, {"jsonl.gz", test::pack(lines, "gz")}, {"jsonl.zst", test::pack(lines, "zst")}};
  {
    using Type = TableColumn::Type;
    const auto target = real_files().open(scratch_.path("good.parquet"));
    write_parquet_lines(source, {{"n", Type::integer}, {"c", Type::text}, {"q", Type::text}}, *target);
  }
  files["parquet"] = read_text(scratch_.path("good.parquet"));

  std::mt19937 random(11);
  std::map<int, int> codes;
  for (const auto& [kind, bytes] : files) {
    for (int seed = 0; seed < 8; ++seed) {
      const std::string damaged = damage(bytes, random), name = kind + std::to_string(seed);
      const std::string path = scratch_.write("bad." + kind, damaged);
      const Ran ran = run_sheaf(scratch_, "run " + job(columns(path)) + to(name));
      ++codes[ran.exit_code];
      ASSERT_TRUE(ran.exit_code >= 0 && ran.exit_code <= 2)
          << kind << " seed " << seed << ": " << ran.exit_code << ran.err;
      if (ran.exit_code == 2) {
        EXPECT_NE(ran.err.find("bad." + kind), std::string::npos) << "the file is named: " << ran.err;
        continue;
      }
      const std::vector<json> found = read_json_lines(rows(name));
      // What is left of the lines tells which rows must have come out as they were.
      size_t same = 0, untouched = 0;
      if (kind == "jsonl")
        for (const json& row : found) {
          const auto at = good.find(row["id"].dump());
          same += at != good.end() && at->second == row;
        }
      std::istringstream left(kind == "jsonl" ? damaged : "");
      for (std::string line; std::getline(left, line);)
        untouched += !line.empty() && lines.find(line + "\n") != std::string::npos;
      EXPECT_GE(same, untouched) << name;
      // Cut files give a beginning of the rows, and pages of a table have a sum.
      if (kind == "parquet" || damaged.size() < bytes.size()) {
        for (const json& row : found) EXPECT_EQ(good[row["id"].dump()], row) << name;
      }
      if (damaged.size() < bytes.size() && kind != "jsonl") {
        ASSERT_EQ(rejects(name).size(), 1u) << name;
        EXPECT_EQ(rejects(name)[0]["row"], static_cast<int>(found.size()) + 1);
      }
    }
  }
  EXPECT_GT(codes[1], 5);
}

}  // namespace
}  // namespace sheaf
