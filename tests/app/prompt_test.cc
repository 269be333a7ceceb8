// Prompts in the user's words (task.prompt), through the program.
#include <gtest/gtest.h>
#include <map>
#include <tuple>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::read_json_lines, test::run_sheaf;

class OwnPromptRun : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    std::string lines, products;
    for (int i = 0; i < 8; ++i) {
      const std::string n = std::to_string(i);
      json questions = json::array({{{"id", "a"}, {"question", "Where is bridge " + n + "?"}}});
      if (i % 2 == 0) questions.push_back({{"id", "b"}, {"question", "Which?"}, {"options", {"Oak", "Elm"}}});
      lines += json{{"id", n},
                    {"title", "Bridge " + n},
                    {"c", "Bridge " + n + " is in Oss."},
                    {"docs", {"Bridge " + n + " is in Oss.", "It is new."}},
                    {"qs", questions}}
                   .dump() +
               "\n";
      products += json{{"id", n}, {"text", "Oak tea " + n}, {"maker", "Oak"}}.dump() + "\n";
    }
    scratch_.write("rows.jsonl", lines);
    scratch_.write("products.jsonl", products);
    scratch_.write("schema.yaml", "categories: {Tea: [{name: Brand}, {name: Weight, type: number}]}\n");
  }

  std::string job(const std::string& input, const std::string& task, const std::string& method) const {
    return scratch_.write("job.yaml", "model: {path: " + model_ + ", chat: chatml}\ninput: {" + input +
                                          "}\ntask:\n" + task + "method: {" + method +
                                          ", max_value_tokens: 4}\n"
                                          "engine: {device: cpu, threads: 1, window: 4}\noutput: {path: " +
                                          scratch_.path("out") + "}\n");
  }
  std::string ask(const std::string& prompt, const std::string& method = "name: ippd",
                  const std::string& input = "context: c") const {
    return job("path: " + scratch_.path("rows.jsonl") + ", id: id, questions: qs, " + input,
               "  kind: ask\n" + prompt, method);
  }
  std::string extract(const std::string& prompt, const std::string& method = "name: hpd") const {
    return job("path: " + scratch_.path("products.jsonl") + ", id: id, document: text",
               "  kind: extract\n  schema: " + scratch_.path("schema.yaml") + "\n" + prompt, method);
  }

  std::string text_of_prompt(const std::string& path) const {
    const Ran ran = run_sheaf(scratch_, "plan --prompt 1 " + path);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.out;
  }
  std::string error(const std::string& path) const {
    const Ran ran = run_sheaf(scratch_, "plan " + path);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    return ran.err;
  }

  /// The tokens of each answer's prompt, alone or packed.
  using Prompts = std::map<std::tuple<json, int>, std::vector<int>>;
  Prompts prompts_of(const std::string& path) const {
    const Ran ran = run_sheaf(scratch_, "plan --dump 1000 " + path);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    Prompts prompts;
    for (const json& stack : read_json_lines(ran.out))
      for (const json& slot : stack["slots"]) {
        const json& last = stack["segments"][slot["prompt"].get<size_t>()];
        std::vector<int>& tokens = prompts[{slot["record"], slot["question"]}];
        for (const json& seen : last["sees"])
          for (const json& token : stack["segments"][seen.get<size_t>()]["tokens"]) tokens.push_back(token);
        for (const json& token : last["tokens"]) tokens.push_back(token);
      }
    return prompts;
  }

  void expect_verified(const std::string& path) const {
    const Ran ran = run_sheaf(scratch_, "verify " + path);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.out.find("exact match 1.0000"), std::string::npos) << ran.out;
  }

  TempFolder scratch_;
  std::string model_;
};

constexpr const char* kAsk =
    "  prompt:\n"
    "    system: 'You read {{texts}}.'\n"
    "    instruction: \"Answer in JSON like {{}}.\\n\\n\"\n"
    "    document: \"# {title}\\n{document}\\n\\n\"\n"
    "    question: \"Q: {question}\\n{options}\\nFor {title}:\"\n";

TEST_F(OwnPromptRun, StandsInThePromptAsItIsWritten) {
  const std::string text = text_of_prompt(ask(kAsk, "name: standard"));
  EXPECT_NE(text.find("<|im_start|>system\n    You read {texts}.<|im_end|>\n    <|im_start|>user\n"
                      "    Answer in JSON like {}.\n    \n    # Bridge 0\n    Bridge 0 is in Oss.\n    \n"
                      "    Q: Where is bridge 0?\n    For Bridge 0:<|im_end|>\n    <|im_start|>assistant\n"),
            std::string::npos)
      << text;
  const std::string second = run_sheaf(scratch_, "plan --prompt 2 " + scratch_.path("job.yaml")).out;
  EXPECT_NE(second.find("Q: Which?\n    A) Oak\n    B) Elm\n    For Bridge 0:<|im_end|>"), std::string::npos)
      << second;
  EXPECT_EQ(text_of_prompt(ask("  prompt: {system: ''}\n", "name: standard")).find("system"),
            std::string::npos);
}

TEST_F(OwnPromptRun, PackedAndSeparatePromptsHaveTheSameTokens) {
  const auto separate = prompts_of(ask(kAsk, "name: standard"));
  EXPECT_EQ(separate.size(), 12u);
  for (const char* method : {"name: ippd, documents: 3", "name: prefix"}) {
    EXPECT_EQ(prompts_of(ask(kAsk, method)), separate) << method;
    expect_verified(scratch_.path("job.yaml"));
  }
  for (const char* method : {"name: parallel-prompting", "name: pced", "name: ape"}) {
    const bool documents = std::string(method) != "name: parallel-prompting";
    ask(kAsk, method, documents ? "documents: docs" : "context: c");
    expect_verified(scratch_.path("job.yaml"));
  }
  ask("  prompt: {document: 'Text: {document}', question: 'Q: {question} {options}'}\n", "name: map-reduce",
      "documents: docs");
  expect_verified(scratch_.path("job.yaml"));
}

TEST_F(OwnPromptRun, TheBuiltInWordsGiveTheBuiltInPrompts) {
  const std::string built_in = ask("", "name: ippd, documents: 2");
  Prompts usual = prompts_of(built_in);
  std::erase_if(usual, [](const auto& each) { return std::get<1>(each.first) == 1; });  // with options
  Prompts own = prompts_of(ask(
      "  prompt:\n"
      "    instruction: \"Answer the question about the passage with a few words copied from the passage. "
      "Answer null if the passage does not say.\\n\\n\"\n"
      "    document: \"Passage:\\n{document}\\n\\n\"\n"
      "    question: \"Question: {question}\\n{options}\\n\"\n",
      "name: ippd, documents: 2"));
  std::erase_if(own, [](const auto& each) { return std::get<1>(each.first) == 1; });
  EXPECT_EQ(own, usual);
  const std::string list =
      "    instruction: \"Extract the attributes below from the product text. Copy each value "
      "from the text as it is written there. Write null for an attribute that the text does "
      "not mention.\\n\\nAttributes:\\n{attributes}\\n\\n\"\n";
  for (const char* method : {"name: hpd", "name: standard"})
    EXPECT_EQ(prompts_of(extract("  prompt:\n" + list + "    document: \"Product:\\n{document}\"\n", method)),
              prompts_of(extract("", method)));
  EXPECT_EQ(prompts_of(extract("  prompt:\n" + list, "name: hpd")), prompts_of(extract("", "name: hpd")));
}

TEST_F(OwnPromptRun, ExtractsInItsWords) {
  const std::string prompt =
      "  prompt:\n"
      "    system: \"About {category}.\"\n"
      "    instruction: \"List of {category}:\\n{attributes}\\n\"\n"
      "    document: \"<p>{document} by {maker}</p>\\n\"\n"
      "    question: \"Now {attributes}.\"\n";
  const std::string text = text_of_prompt(extract(prompt, "name: separate"));
  EXPECT_NE(text.find("<|im_start|>system\n    About Tea.<|im_end|>"), std::string::npos) << text;
  EXPECT_NE(text.find("<|im_start|>user\n    List of Tea:\n    - Brand\n    - Weight"), std::string::npos)
      << text;
  EXPECT_NE(text.find("<p>Oak tea 0 by Oak</p>\n    Now - Brand\n"), std::string::npos) << text;
  const auto separate = prompts_of(scratch_.path("job.yaml"));
  EXPECT_EQ(prompts_of(extract(prompt, "name: hpd, documents: 3")), separate);
  expect_verified(scratch_.path("job.yaml"));
  expect_verified(extract(prompt, "name: standard"));
  const std::string alone =
      "  list_attributes: false\n  prompt: {instruction: Take one., question: \"\\nIt is {attributes}\"}\n";
  const std::string one = text_of_prompt(extract(alone, "name: separate"));
  EXPECT_NE(one.find("Take one.\n    \n    Product:\n    Oak tea 0\n    \n    It is - Brand"),
            std::string::npos)
      << one;
  expect_verified(extract(alone, "name: hpd"));
}

TEST_F(OwnPromptRun, DocumentsThatSeeEachOtherHaveNumbers) {
  const std::string prompt =
      "  prompt:\n    instruction: \"{attributes}\\n```\\n\"\n"
      "    document: \"<product id=\\\"{number}\\\">{document}</product>\\n\"\n    question: '```'\n";
  const std::string joint = text_of_prompt(extract(prompt, "name: hpd, stacking: joint, documents: 2"));
  EXPECT_NE(joint.find("<product id=\"1\">Oak tea 0</product>"), std::string::npos) << joint;
  EXPECT_NE(joint.find("<product id=\"2\">Oak tea 1</product>\n    ```<|im_end|>"), std::string::npos)
      << joint;
  const std::string apart = text_of_prompt(extract(prompt, "name: hpd, documents: 2"));
  EXPECT_EQ(apart.find("id=\"2\""), std::string::npos) << apart;
  EXPECT_NE(apart.find("<product id=\"1\">"), std::string::npos) << apart;
}

TEST_F(OwnPromptRun, AnswersOfSeveralLinesEndWhereTheModelEnds) {
  const auto text = [&](const std::string& end) {
    const Ran ran = run_sheaf(
        scratch_, "run -q " +
                      ask("  prompt: {answer_end: " + end + "}\n", "name: ippd, temperature: 1, top_k: 0") +
                      " --restart --set method.max_value_tokens=200 --set output.raw=true");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    std::string all;
    for (const json& row : read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl"))))
      for (const json& answer : row["answers"])
        if (answer["answer"].is_string()) all += answer["answer"].get<std::string>() + "|";
    return all;
  };
  EXPECT_EQ(text("line").find('\n'), std::string::npos);
  EXPECT_NE(text("end_of_text").find('\n'), std::string::npos);
}

TEST_F(OwnPromptRun, AQuestionOfItsOwnNeedsNoColumn) {
  const std::string path =
      job("path: " + scratch_.path("rows.jsonl") + ", id: id, context: c",
          "  kind: ask\n  prompt: {question: 'Summarize {title}.', answer_end: end_of_text}\n", "name: ippd");
  EXPECT_NE(text_of_prompt(path).find("Summarize Bridge 0.<|im_end|>"), std::string::npos);
  ASSERT_EQ(run_sheaf(scratch_, "run -q " + path).exit_code, 0);
  const auto rows = read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl")));
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_TRUE(rows[3].contains("answer"));
  expect_verified(path);
}

TEST_F(OwnPromptRun, MistakesNameTheLine) {
  const std::string at = scratch_.path("job.yaml") + ":5: task.prompt.";
  const auto expect = [&](const std::string& prompt, const std::string& message, const std::string& method) {
    const std::string found = error(ask("  prompt: {" + prompt + "}\n", method));
    EXPECT_NE(found.find(message), std::string::npos) << found;
  };
  expect("question: 'Q {questoin}'", at + "question: {question} is missing", "name: ippd");
  expect(
      "question: '{question} {titel}'",
      at + "question: " + scratch_.path("rows.jsonl") + " has no column \"titel\"; did you mean \"title\"?",
      "name: ippd");
  expect("instruction: '{title}'",
         at + "instruction: {title} has no meaning here; this part can have no fields", "name: ippd");
  expect("document: 'none'", at + "document: {document}, or a column of the corpus, is missing",
         "name: ippd");
  expect("document: '{document} {question}'", at + "document: {question} has no meaning here", "name: ippd");
  expect("question: '{question} {'", at + "question: the brace at \"{\"", "name: ippd");
  expect("example: '{document}'", at + "example: {answer} is missing", "name: ippd");
  expect("sytem: x", "unknown key \"sytem\"; did you mean \"system\"?", "name: ippd");
  expect("system: x", "task.prompt does not work with method.name seqbatch", "name: seqbatch");
  const std::string both = error(ask("  instruction: A\n  prompt: {instruction: B}\n"));
  EXPECT_NE(both.find("task.instruction and task.prompt.instruction are both given"), std::string::npos)
      << both;
  const std::string untold = error(extract("  prompt: {instruction: B}\n"));
  EXPECT_NE(untold.find("{attributes} is missing"), std::string::npos) << untold;
  const std::string answer_end = error(extract("  prompt: {answer_end: end_of_text}\n"));
  EXPECT_NE(answer_end.find("task.prompt.answer_end works only with task.kind ask"), std::string::npos)
      << answer_end;
  const std::string cut = error(
      ask("  prompt: {document: '{title}: {document}'}\n", "name: ippd", "context: c, too_long: split"));
  EXPECT_NE(cut.find("task.prompt.document: {title} would be lost where input.too_long cuts"),
            std::string::npos)
      << cut;
}

TEST_F(OwnPromptRun, ARecordWithoutWhatTheWordsNeedIsAReject) {
  scratch_.write("rows.jsonl", R"({"id":"a","title":"T","c":"x","qs":["Q"]})"
                               "\n"
                               R"({"id":"b","c":"x","qs":["Q"]})"
                               "\n"
                               R"({"id":"c","title":"T","c":"x","qs":[{"question":"Q","options":["A","B"]}]})"
                               "\n");
  const Ran ran = run_sheaf(
      scratch_, "run -q " + ask("  prompt: {document: '{title} {document}', question: '{question}'}\n"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  const auto rejects = read_json_lines(read_text(scratch_.path("out/rejects.jsonl")));
  ASSERT_EQ(rejects.size(), 2u);
  EXPECT_EQ(rejects[0]["reason"], "column \"title\" is missing");
  EXPECT_EQ(rejects[1]["reason"], "the question has options, but task.prompt.question has no {options}");
}

TEST_F(OwnPromptRun, AFileGivesWhatTheJobDoesNot) {
  scratch_.write("words.yaml", "system: From the file.\ninstruction: 'File: '\n");
  const std::string path = ask("  prompt: {file: words.yaml, instruction: 'Job: '}\n", "name: standard");
  const std::string text = text_of_prompt(path);
  EXPECT_NE(text.find("From the file."), std::string::npos) << text;
  EXPECT_NE(text.find("<|im_start|>user\n    Job:\n    \n    Passage:"), std::string::npos) << text;
  EXPECT_NE(text_of_prompt(ask("  prompt: words.yaml\n")).find("File:"), std::string::npos);
  scratch_.write("words.yaml", "system: x\n\nquestion: 'Q'\n");
  const std::string found = error(path);
  EXPECT_NE(found.find("words.yaml:3: task.prompt.question: {question} is missing"), std::string::npos)
      << found;
}

TEST_F(OwnPromptRun, ExamplesAreInItsWords) {
  scratch_.write("gold.jsonl", R"({"id":"g","text":"Elm tea","gold":{"Brand":"Elm","Weight":null}})"
                               "\n");
  const std::string words =
      "  examples: {path: " + scratch_.path("gold.jsonl") +
      "}\n  prompt:\n    instruction: \"{attributes}\\n\\n\"\n    document: \"Text: {document}\\n\"\n";
  const std::string turns = text_of_prompt(extract(words, "name: separate"));
  EXPECT_NE(
      turns.find("Text: Elm tea\n    <|im_end|>\n    <|im_start|>assistant\n    {\n      \"Brand\": \"Elm\""),
      std::string::npos)
      << turns;
  const std::string texts =
      text_of_prompt(extract(words + "    example: \"Text: {document}\\n{answer}\\n\"\n", "name: separate"));
  EXPECT_NE(
      texts.find("Text: Elm tea\n    {\n      \"Brand\": \"Elm\",\n      \"Weight\": null\n    }\n    \n"
                 "    Text: Oak tea 0\n"),
      std::string::npos)
      << texts;
  expect_verified(extract(words, "name: hpd"));
}

TEST_F(OwnPromptRun, ThePapersPromptsAreAccepted) {
  const std::string folder = std::string(SHEAF_SOURCE_DIR) + "/configs/papers/prompts/";
  scratch_.write("rows.jsonl", R"({"id":"a","c":"Oss has a bridge.","qs":["Where?","Which?"]})"
                               "\n");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() == "hpd-figure-10.yaml") continue;  // of `sheaf discover`, not of a job
    const std::string prompt = "  prompt: " + entry.path().string() + "\n";
    const bool extracts = entry.path().filename().string().starts_with("hpd");
    const std::string path = extracts ? extract(prompt) : ask(prompt);
    expect_verified(path);
    ++seen;
  }
  EXPECT_GE(seen, 5);
}

}  // namespace
}  // namespace sheaf
