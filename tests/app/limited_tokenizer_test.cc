// Tokenizers that lack what prompts are made of: a job is done or refused with the tokenizer's name, whatever
// its task and method; it never crashes.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf;

/// One token a byte, of the bytes that are in `kept`, or are not in it where `all_but`.
json byte_tokens(const std::string& kept, bool all_but, bool with_end = true) {
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    const bool named = kept.find(static_cast<char>(byte)) != std::string::npos;
    if (named != all_but) vocab[byte_spelling(static_cast<unsigned char>(byte))] = vocab.size();
  }
  json file = tiny_json({});
  file["added_tokens"] = json::array();
  if (with_end)
    file["added_tokens"].push_back({{"id", vocab.size()}, {"content", "<|endoftext|>"}, {"special", true}});
  file["model"]["vocab"] = std::move(vocab);
  return file;
}

/// Whatever has no token is the unknown one.
json unknown_for_rest(const std::string& kept) {
  json file = byte_tokens("?" + kept, false);
  file["model"]["unk_token"] = "?";
  return file;
}

/// Over characters, as SentencePiece's models are; spaces are U+2581.
json characters(const std::vector<std::string>& kept) {
  json vocab = json::object();
  for (const std::string& piece : kept) vocab[piece] = vocab.size();
  return {{"added_tokens", json::array()},
          {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}}};
}

std::vector<std::pair<std::string, json>> tokenizers() {
  return {{"everything", byte_tokens("", true)},
          {"no end", byte_tokens("", true, false)},
          {"no line break", byte_tokens("\n", true)},
          {"no line break, no end", byte_tokens("\n", true, false)},
          {"no quotes", byte_tokens("\"", true)},
          {"no braces", byte_tokens("{}", true)},
          {"no line break, no brace", byte_tokens("\n{", true)},
          {"no spaces", byte_tokens(" ", true)},
          {"no letter B", byte_tokens("B", true)},
          {"only e", byte_tokens("e", false)},
          {"only z", byte_tokens("z", false)},
          {"only digits", byte_tokens("0123456789", false)},
          {"only an end", byte_tokens("", false)},
          {"nothing", byte_tokens("", false, false)},
          {"all unknown", unknown_for_rest("")},
          {"e, the rest unknown", unknown_for_rest("e")},
          {"characters", characters({"\u2581", "a", "e", "o", "n", "A", ":"})},
          {"one character", characters({"e"})},
          {"one space", characters({"\u2581"})}};
}

class LimitedTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    scratch_.write("rows.jsonl", R"({"n": 1, "c": "One tea.", "q": "How many?", "d": ["One tea.", "Two."]}
{"n": 2, "c": "Ä\n{\"}", "q": "?", "o": ["red", "blue"], "d": ["Ä"]}
)");
    scratch_.write("batch.jsonl",
                   R"({"custom_id": "r", "body": {"messages": [{"role": "user", "content": "Tell me."}]}}
)");
    scratch_.write(
        "schema.yaml",
        "categories: {Tea: [{name: Brand}, {name: \"{\"}, {name: Kind, type: enum, options: [a, ab, "
        "\"\\n\"]}]}\n");
  }

  std::string job(const std::string& kind, const std::string& method, const std::string& chat) const {
    std::string input = "path: " + scratch_.path("rows.jsonl") + ", id: n, ", task = "kind: " + kind;
    if (kind == "ask") input += "question: q, options: o, ";
    if (kind == "ask") input += method.find("pced") != std::string::npos ? "documents: d" : "context: c";
    if (kind == "extract") input += "document: c";
    if (kind == "extract") task += ", schema: " + scratch_.path("schema.yaml");
    if (kind == "chat") input = "path: " + scratch_.path("batch.jsonl") + ", format: openai-batch";
    return scratch_.write("job.yaml", "model: {path: " + model_ + ", chat: " + chat + "}\ninput: {" + input +
                                          "}\ntask: {" + task + "}\nmethod: {name: " + method +
                                          ", max_value_tokens: 4}\nengine: {device: cpu, threads: 1, "
                                          "kv_memory_gb: 0.01}\noutput: {path: " +
                                          scratch_.path("out") + "}\n");
  }

  /// What the user is told where not everything was done.
  std::string complaint(const Ran& ran) const {
    return ran.exit_code == 1 ? read_text(scratch_.path("out") + "/rejects.jsonl") : ran.err;
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(LimitedTokenizer, EveryTaskAndMethodIsDoneOrRefused) {
  const std::vector<std::pair<std::string, std::string>> jobs = {
      {"ask", "standard"},
      {"ask", "prefix"},
      {"ask", "ippd"},
      {"ask", "parallel-prompting"},
      {"ask", "pced"},
      {"extract", "standard"},
      {"extract", "prefix"},
      {"extract", "separate"},
      {"extract", "hpd"},
      {"extract", "hpd, stacking: joint"},
      {"extract", "hpd, values: positional"},
      {"extract", "hpd, values: positional, stacking: joint"},
      {"chat", "ippd"},
      {"chat", "prefix"}};
  int done = 0, refused = 0;
  size_t count = 0;
  for (const auto& [name, tokenizer] : tokenizers()) {
    scratch_.write("model/tokenizer.json", tokenizer.dump());
    for (const auto& [kind, method] : jobs) {
      // Every job and every tokenizer several times, not all of both: a program start is not free.
      if (count++ % 3 != 0 && name != "everything" && name != "no line break") continue;
      const std::string chat = done % 2 == 0 ? "plain" : "chatml";
      const Ran ran = run_sheaf(scratch_, "run " + job(kind, method, chat) + " --quiet --restart");
      ASSERT_TRUE(ran.exit_code >= 0 && ran.exit_code <= 2)
          << name << ": " << kind << " with " << method << ": exit code " << ran.exit_code << "\n"
          << ran.err;
      if (ran.exit_code == 0)
        ++done;
      else
        ++refused;
      const std::string why = complaint(ran);
      EXPECT_TRUE(ran.exit_code == 0 || why.find("tokenizer") != std::string::npos)
          << name << ": " << kind << " with " << method << ": " << why;
      EXPECT_TRUE(ran.exit_code == 0 || (name != "everything" && name != "no end"))
          << kind << " with " << method << ": " << why;
    }
  }
  EXPECT_GT(done, 50);
  EXPECT_GT(refused, 25);
}

TEST_F(LimitedTokenizer, WithoutALineBreakQuestionsAreAnswered) {
  scratch_.write("model/tokenizer.json", byte_tokens("\n", true).dump());
  const Ran ran = run_sheaf(scratch_, "run " + job("ask", "ippd", "plain") + " --quiet");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const auto rows = test::read_json_lines(read_text(scratch_.path("out") + "/rows-00000.jsonl"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[1]["answer"] == "A" || rows[1]["answer"] == "B") << rows[1];
}

TEST_F(LimitedTokenizer, WhatItCannotSpellIsNamed) {
  scratch_.write("model/tokenizer.json", byte_tokens("B", true).dump());
  Ran ran = run_sheaf(scratch_, "run " + job("ask", "ippd", "chatml") + " --quiet");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(complaint(ran).find("a question has 2 options"), std::string::npos) << complaint(ran);
  scratch_.write("model/tokenizer.json", unknown_for_rest("abcdefghijklmnopqrstuvwxyz").dump());
  ran = run_sheaf(scratch_, "run " + job("extract", "hpd", "plain") + " --quiet --restart");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  scratch_.write("model/tokenizer.json", unknown_for_rest("z").dump());
  ran = run_sheaf(scratch_, "run " + job("extract", "hpd", "plain") + " --quiet --restart");
  EXPECT_EQ(ran.exit_code, 2) << ran.err;
  EXPECT_NE(ran.err.find("the same tokens"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(model_), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace sheaf
