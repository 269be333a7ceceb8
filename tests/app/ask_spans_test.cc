// Questions whose answers are copied from their contexts, from the job to rows, scores, calibration and
// review.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/text/utf8.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

constexpr int kContexts = 24;

class AskSpans : public testing::Test {
 protected:
  void SetUp() override {
    std::string corpus, single, gold;
    for (int i = 0; i < kContexts; ++i) {
      const std::string text = fmt::format("Ann {} lived in \u00d6st {} until {}.\nShe had {} cats.",
                                           i * 7 % 50, i * 31 % 90, 1900 + i, i % 5);
      json questions =
          json::array({{{"id", fmt::format("{}a", i)}, {"question", "Who?"}},
                       {{"id", fmt::format("{}b", i)}, {"question", "Where?"}},
                       {{"id", fmt::format("{}c", i)}, {"question", "How?"}, {"options", {"Well", "Badly"}}},
                       {{"id", fmt::format("{}d", i)}, {"question", "What for?"}, {"answer_kind", "free"}}});
      corpus += json{{"id", i}, {"text", text}, {"questions", questions}}.dump() + "\n";
      single += json{{"id", i}, {"text", text}, {"q", "Who?"}, {"kind", i % 2 == 0 ? json("span") : json()}}
                    .dump() +
                "\n";
      gold += json{{"id", fmt::format("{}a", i)}, {"answers", {"Ann"}}}.dump() + "\n" +
              json{{"id", fmt::format("{}b", i)}, {"answers", json::array()}}.dump() + "\n";
    }
    scratch_.write("corpus.jsonl", corpus);
    scratch_.write("single.jsonl", single);
    scratch_.write("gold.jsonl", gold);
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                   ", id: id, context: text, questions: questions}\n"
                                   "task: {kind: ask, answers: span, instruction: Tell}\n"
                                   "method: {max_value_tokens: 12}\nengine: {device: cpu, window: 7}\n"
                                   "output: {path: " +
                                   scratch_.path("out") + ", spans: true, confidence: true}\n");
  }

  Ran run(const std::string& folder, const std::string& more = "") const {
    return run_sheaf(scratch_, "run " + scratch_.path("job.yaml") +
                                   " --quiet --set output.path=" + scratch_.path(folder) + " " + more);
  }
  std::vector<json> rows(const std::string& folder) const {
    return read_json_lines(read_text(scratch_.path(folder + "/rows-00000.jsonl")));
  }
  /// "A) Well", of the question that has options.
  static std::string with_option(const json& row) {
    const json& answer = row["answers"][2];
    return answer["answer"].get<std::string>() + ") " + answer["option"].get<std::string>();
  }
  std::string text_of(size_t record) const {
    return read_json_lines(read_text(scratch_.path("corpus.jsonl")))[record]["text"];
  }

  /// The answer stands where its row says.
  static void expect_place(const json& answer, const std::string& text) {
    if (answer["answer"].is_null()) {
      EXPECT_TRUE(answer["spans"].is_null()) << answer;
      return;
    }
    const json& place = answer.at("spans");
    ASSERT_TRUE(place.is_object()) << answer;
    EXPECT_EQ(place["column"], "text");
    size_t from = 0;
    for (int i = 0; i < place["start"].get<int>(); ++i) from += decode_valid(text.data() + from).bytes;
    EXPECT_EQ(text.substr(from, answer["answer"].get<std::string>().size()), answer["answer"]);
  }

  TempFolder scratch_;
};

TEST_F(AskSpans, StandInTheirContextsWithTheirPlace) {
  int spans = 0;
  for (const char* search : {"greedy", "likeliest"}) {
    const std::string folder = search,
                      set = fmt::format("--set method.search={} --set method.null_bias=-20", search);
    const Ran ran = run(folder, set);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const auto all = rows(folder);
    ASSERT_EQ(all.size(), static_cast<size_t>(kContexts));
    for (size_t i = 0; i < all.size(); ++i) {
      const json& answers = all[i].at("answers");
      ASSERT_EQ(answers.size(), 4u);
      for (const size_t q : {0, 1}) {
        expect_place(answers[q], text_of(i));
        spans += answers[q]["answer"].is_string();
        EXPECT_GE(answers[q]["confidence"], 0.0);
        EXPECT_TRUE(answers[q].contains("null_margin"));
      }
      EXPECT_TRUE(answers[2].contains("option") && answers[2]["spans"].is_null())
          << "a letter stands nowhere";
      EXPECT_FALSE(answers[2].contains("null_margin"));
    }
    // One prompt per question gives the same, to the bit; so does Parquet.
    ASSERT_EQ(run(folder + "-alone", set + " --set method.name=separate").exit_code, 0);
    EXPECT_EQ(rows(folder + "-alone"), all);
    const Ran verified = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml") + " " + set);
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
    ASSERT_EQ(run(folder + "-table", set + " --set output.format=parquet").exit_code, 0);
    for (const char* form : {"", "-table"}) {
      const Ran scored =
          run_sheaf(scratch_, "score --metric squad --resamples 0 --json --gold " +
                                  scratch_.path("gold.jsonl") + " --pred " + scratch_.path(folder + form));
      ASSERT_EQ(scored.exit_code, 0) << scored.err;
      EXPECT_TRUE(json::parse(scored.out)["confidence"].contains("values")) << scored.out;
    }
  }
  EXPECT_GT(spans, 3 * kContexts);
  const json report = json::parse(read_text(scratch_.path("likeliest/report.json")));
  EXPECT_EQ(report["search"]["answers"], 2 * kContexts);
  EXPECT_GT(report["search"]["tokens"], 0);
  EXPECT_FALSE(json::parse(read_text(scratch_.path("greedy/report.json"))).contains("search"));
}

TEST_F(AskSpans, AColumnSaysWhatEachAnswerIs) {
  const std::string set = "--set input.path=" + scratch_.path("single.jsonl") +
                          " --set input.questions=null --set input.question=q --set input.answer_kind=kind "
                          "--set task.answers=free --set method.null_bias=-20";
  const Ran ran = run("single", set);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto all = rows("single");
  for (size_t i = 0; i < all.size(); i += 2) expect_place(all[i], text_of(i));
  // A kind that is none, and a choice without options, reject their records.
  scratch_.write("single.jsonl", R"({"id": 1, "text": "Ann.", "q": "Who?", "kind": "text"})"
                                 "\n"
                                 R"({"id": 2, "text": "Ann.", "q": "Who?", "kind": "choice"})"
                                 "\n"
                                 R"({"id": 3, "text": "Ann.", "q": "Who?", "kind": "span"})"
                                 "\n");
  const Ran bad = run("bad", set);
  EXPECT_EQ(bad.exit_code, 1) << bad.err;
  EXPECT_EQ(rows("bad").size(), 1u);
  const std::string rejects = read_text(scratch_.path("bad/rejects.jsonl"));
  EXPECT_NE(rejects.find("it must be free, span or choice"), std::string::npos) << rejects;
  EXPECT_NE(rejects.find("to be answered by choice and has no options"), std::string::npos) << rejects;
}

TEST_F(AskSpans, ABiasAboveTheMarginMakesAnAnswerNull) {
  for (const char* search : {"greedy", "likeliest"}) {
    const std::string folder = search, set = fmt::format("--set method.search={}", search);
    ASSERT_EQ(run(folder, set + " --set method.null_bias=-100").exit_code, 0);
    const auto before = rows(folder);
    double middle = 0;
    int known = 0;
    for (const json& row : before)
      if (const json& margin = row["answers"][0]["null_margin"]; margin.is_number()) {
        middle += margin.get<double>();
        ++known;
      }
    if (known == 0) continue;  // null has a token a byte, and greedy decoding does not follow it
    middle /= known;
    ASSERT_EQ(run(folder + "-more", set + fmt::format(" --set method.null_bias={}", middle)).exit_code, 0);
    const auto after = rows(folder + "-more");
    for (size_t i = 0; i < before.size(); ++i)
      for (const size_t q : {0, 1}) {
        const json &was = before[i]["answers"][q], &now = after[i]["answers"][q];
        if (!was["null_margin"].is_number() || was["answer"].is_null()) continue;
        const double margin = was["null_margin"];
        if (std::abs(margin - middle) < 1e-4) continue;
        EXPECT_EQ(now["answer"].is_null(), margin < middle) << was << now;
        if (margin > middle) {
          EXPECT_EQ(now["answer"], was["answer"]);
        }
      }
    if (folder == "likeliest") {
      EXPECT_EQ(known, kContexts) << "the search knows every margin";
    }
  }
}

TEST_F(AskSpans, CalibrateFindsTheBias) {
  ASSERT_EQ(run("out", "--set method.search=likeliest --set method.null_bias=-30").exit_code, 0);
  const Ran fitted = run_sheaf(scratch_, "calibrate " + scratch_.path("out") + " --metric squad --gold " +
                                             scratch_.path("gold.jsonl") + " -o " + scratch_.path("c.json"));
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_NE(fitted.out.find("null_bias"), std::string::npos) << fitted.out;
  EXPECT_NE(fitted.out.find("best f1"), std::string::npos) << fitted.out;
  EXPECT_NE(fitted.out.find("HasAns_f1"), std::string::npos) << fitted.out;
  const Ran scaled =
      run("scaled", "--set method.search=likeliest --set output.calibration=" + scratch_.path("c.json"));
  EXPECT_EQ(scaled.exit_code, 0) << scaled.err;
}

TEST_F(AskSpans, APageForReviewKnowsTheQuestions) {
  std::vector<json> shown;
  for (const char* format : {"jsonl", "parquet"}) {
    const std::string folder = fmt::format("out-{}", format);
    ASSERT_EQ(run(folder, fmt::format("--set output.format={}", format)).exit_code, 0);
    const Ran made = run_sheaf(
        scratch_, "review " + scratch_.path(folder) + " --count 1000 -o " + scratch_.path(folder + ".html"));
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_NE(
        made.out.find(fmt::format("{} values of {} records, least sure first", 4 * kContexts, kContexts)),
        std::string::npos)
        << made.out;
    const std::string page = read_text(scratch_.path(folder + ".html"));
    const size_t from = page.find("id=\"data\">") + 10;
    const json data = json::parse(page.substr(from, page.find("</script>", from) - from));
    ASSERT_EQ(data["items"].size(), 4u * kContexts);
    int choices = 0;
    for (const json& item : data["items"]) {
      EXPECT_TRUE(item["question"].is_string());
      choices += item["type"] == "enum";
      if (item["type"] == "enum") {
        EXPECT_EQ(item["choices"], json::array({"Well", "Badly"}));
      }
    }
    EXPECT_EQ(choices, kContexts);
    shown.push_back(data["items"]);
  }
  EXPECT_EQ(shown[0], shown[1]) << "a run's format does not matter";
  const Ran refused = run_sheaf(
      scratch_, "review " + scratch_.path("out-jsonl") + " --attributes Brand -o " + scratch_.path("a.html"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("has no attributes"), std::string::npos) << refused.err;
}

TEST_F(AskSpans, PromptsWithFewQuestionsGiveTheSameRows) {
  ASSERT_EQ(run("all").exit_code, 0);
  for (const char* most : {"1", "2", "3", "5"}) {
    const std::string folder = std::string("most-") + most;
    ASSERT_EQ(run(folder, std::string("--set method.questions=") + most).exit_code, 0);
    EXPECT_EQ(read_text(scratch_.path(folder + "/rows-00000.jsonl")),
              read_text(scratch_.path("all/rows-00000.jsonl")))
        << most;
  }
  const auto prompts = [&](const char* set) {
    const json plan = json::parse(
        run_sheaf(scratch_, "plan " + scratch_.path("job.yaml") + " --json --set method.documents=1" + set)
            .out);
    return plan["stacks"].get<int>();
  };
  EXPECT_EQ(prompts(""), kContexts);
  EXPECT_EQ(prompts(" --set method.questions=3"), 2 * kContexts);
}

TEST_F(AskSpans, ShowPrintsAnswersUnderTheirQuestions) {
  ASSERT_EQ(run("out").exit_code, 0);
  const Ran shown = run_sheaf(scratch_, "show " + scratch_.path("out") + " --json --sample 3");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const std::vector<json> printed = read_json_lines(shown.out), made = rows("out");
  ASSERT_EQ(printed.size(), 3u);
  for (const json& row : printed) {
    const size_t record = std::stoul(row["id"].get<std::string>());
    EXPECT_EQ(row["document"], text_of(record));
    ASSERT_EQ(row["answers"].size(), 4u);
    EXPECT_EQ(row["answers"][0]["question"], "Who?");
    EXPECT_EQ(row["answers"][0]["answer"], made[record]["answers"][0]["answer"]);
    EXPECT_FALSE(row["answers"][0].contains("option"));
    EXPECT_EQ(row["answers"][2]["answer"], made[record]["answers"][2]["answer"]);
    EXPECT_EQ(row["answers"][2]["option"], made[record]["answers"][2]["option"]);
  }
  const Ran text = run_sheaf(scratch_, "show " + scratch_.path("out") + " --sample 100");
  EXPECT_NE(text.out.find("Who?: "), std::string::npos) << text.out;
  for (const json& row : made)
    EXPECT_NE(text.out.find("How?: " + with_option(row)), std::string::npos) << row;
  const json report = json::parse(read_text(scratch_.path("out/report.json")));
  for (const json& row : report["sample"])
    EXPECT_EQ(row["values"][2]["value"], with_option(made[std::stoul(row["id"].get<std::string>())]));
  const Ran nulls = run_sheaf(scratch_, "show " + scratch_.path("out") + " --json --where answer=null");
  EXPECT_EQ(nulls.exit_code, 0) << nulls.err;
  // Every question's answer counts, not only the first.
  for (size_t question = 0; question < 4; ++question) {
    const json& answer = made[0]["answers"][question]["answer"];
    if (!answer.is_string() || answer.get<std::string>().find('\'') != std::string::npos) continue;
    const auto has = [&](const json& row) {
      return std::ranges::any_of(row["answers"], [&](const json& each) { return each["answer"] == answer; });
    };
    const Ran found =
        run_sheaf(scratch_, "show " + scratch_.path("out") +
                                " --json --sample 100 --where 'answer=" + answer.get<std::string>() + "'");
    EXPECT_EQ(std::ranges::count(found.out, '\n'), std::ranges::count_if(made, has)) << answer << found.err;
  }
  for (const char* wrong : {" --where Brand=x", " --category Tea"})
    EXPECT_EQ(run_sheaf(scratch_, "show " + scratch_.path("out") + wrong).exit_code, 2) << wrong;
}

TEST_F(AskSpans, TwoRunsAreComparedQuestionByQuestion) {
  ASSERT_EQ(run("out").exit_code, 0);
  ASSERT_EQ(run("other", "--set method.null_bias=3").exit_code, 0);
  const std::string both = "review " + scratch_.path("out") + " " + scratch_.path("other");
  const Ran made = run_sheaf(scratch_, both + " -o " + scratch_.path("pair.html"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string page = read_text(scratch_.path("pair.html")), open = "id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  const json data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  ASSERT_FALSE(data["items"].empty());
  const std::vector<json> first = rows("out");
  std::string lines;
  for (const json& item : data["items"]) {
    EXPECT_EQ(item["values"].size(), 1u);
    EXPECT_NE(item["values"][0]["left"], item["values"][0]["right"]);
    EXPECT_GE(item["question"].get<int>(), 0);
    const json& record = data["records"][item["record"].get<size_t>()];
    const json id = json::parse(record["id"].get<std::string>());
    const json& said = first[id.get<size_t>()]["answers"][item["question"].get<size_t>()]["answer"];
    lines += json{{"pair", data["key"]},
                  {"seed", data["seed"]},
                  {"id", id},
                  {"question", item["question"]},
                  {"verdict", item["values"][0]["left"]["value"] == said.dump() ? "left" : "right"}}
                 .dump() +
             "\n";
  }
  const Ran counted =
      run_sheaf(scratch_, both + " --json --verdicts " + scratch_.write("verdicts.jsonl", lines));
  ASSERT_EQ(counted.exit_code, 0) << counted.err;
  const json counts = json::parse(counted.out);
  EXPECT_EQ(counts["wins"], data["items"].size());
  EXPECT_EQ(counts["losses"], 0);
}

TEST_F(AskSpans, QuestionsThatShareAnIdAreToldWithBothPlaces) {
  const auto record = [](int id, const char* first, const char* second) {
    return json{{"id", id},
                {"text", "Ann lived here."},
                {"questions",
                 {{{"id", first}, {"question", "Who?"}}, {{"id", second}, {"question", "Where?"}}}}}
               .dump() +
           "\n";
  };
  scratch_.write("corpus.jsonl", record(1, "a", "a") + record(2, "b", "c") + record(3, "d", "b"));
  const Ran kept =
      run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " --set output.path=" + scratch_.path("kept"));
  EXPECT_EQ(kept.exit_code, 1);
  EXPECT_NE(
      read_text(scratch_.path("kept/rejects.jsonl")).find("questions 1 and 2 have the same id, \\\"a\\\""),
      std::string::npos);
  EXPECT_NE(kept.err.find("1 record has a duplicate id: record 3 has question \"b\" (first in record 2)"),
            std::string::npos)
      << kept.err;
  ASSERT_EQ(run("refused", "--set input.duplicate_ids=refuse").exit_code, 1);
  EXPECT_NE(read_text(scratch_.path("refused/rejects.jsonl"))
                .find("duplicate question id \\\"b\\\" (first in record 2)"),
            std::string::npos);
}

TEST_F(AskSpans, VerdictsOnWrongAnswersCount) {
  ASSERT_EQ(run("out", "--set method.null_bias=-20").exit_code, 0);
  const auto all = rows("out");
  scratch_.write(
      "verdicts.jsonl",
      json{{"id", "0a"}, {"question", "Who?"}, {"wrong", {all[0]["answers"][0]["answer"]}}}.dump() + "\n" +
          json{{"id", "1a"}, {"question", "Who?"}, {"wrong", {"something else"}}}.dump() + "\n" +
          json{{"id", "2a"}, {"question", "Who?"}, {"answers", {all[2]["answers"][0]["answer"]}}}.dump() +
          "\n");
  const Ran scored =
      run_sheaf(scratch_, "score --metric squad --resamples 0 --json --gold " +
                              scratch_.path("verdicts.jsonl") + " --pred " + scratch_.path("out"));
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const json scores = json::parse(scored.out);
  EXPECT_EQ(scores["total"], 2) << "of the other nothing is known: " << scored.out;
  EXPECT_EQ(scores["exact"], 50.0) << scored.out;
}

TEST_F(AskSpans, ExamplesAreEarlierTurns) {
  const std::string chat = " --set model.chat=chatml --set task.examples.path=";
  // Those of the corpus, by the ids of the gold file.
  const Ran joined =
      run("joined", chat + scratch_.path("gold.jsonl") + " --set task.examples.per_category=2");
  ASSERT_EQ(joined.exit_code, 0) << joined.err;
  // Rows with contexts and questions of their own.
  scratch_.write(
      "shown.jsonl",
      json{{"id", 1}, {"context", "Ben had \u00d6l."}, {"question", "What?"}, {"answers", {"\u00d6l"}}}
              .dump() +
          "\n");
  const Ran shown =
      run_sheaf(scratch_, "plan " + scratch_.path("job.yaml") + chat + scratch_.path("shown.jsonl") +
                              " --prompt 1 --set output.path=" + scratch_.path("p"));
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("Ben had \u00d6l."), std::string::npos) << shown.out;
  scratch_.write(
      "shown.jsonl",
      json{{"id", 1}, {"context", "Ben had \u00d6l."}, {"question", "What?"}, {"answers", {"cats"}}}.dump() +
          "\n");
  const Ran unusable = run("unusable", chat + scratch_.path("shown.jsonl"));
  EXPECT_EQ(unusable.exit_code, 2);
  EXPECT_NE(unusable.err.find("no question has an answer that can be shown"), std::string::npos)
      << unusable.err;
  const Ran one_turn = run("one", "--set task.examples.path=" + scratch_.path("gold.jsonl"));
  EXPECT_EQ(one_turn.exit_code, 2);
  EXPECT_NE(one_turn.err.find("supports only one turn"), std::string::npos) << one_turn.err;
}

TEST_F(AskSpans, RefusalsNameTheKey) {
  for (const auto& [set, what] : std::initializer_list<std::pair<std::string, std::string>>{
           {"--set method.name=seqbatch --set output.confidence=false",
            "task.answers: an answer that is a span"},
           {"--set method.search=likeliest --set method.temperature=1",
            "method.search likeliest works only with"},
           {"--set method.length_norm=0.5", "method.length_norm works only with method.search likeliest"},
           {"--set task.answers=words", "task.answers cannot be \"words\""},
           {"--set input.context=null --set input.documents=text --set method.name=ippd",
            "output.spans does not work with input.documents"}}) {
    const Ran ran = run("refused", set);
    EXPECT_EQ(ran.exit_code, 2) << set;
    EXPECT_NE(ran.err.find(what), std::string::npos) << set << ": " << ran.err;
  }
}

TEST_F(AskSpans, SplitContextsAndPlansWork) {
  const std::string set =
      "--set input.too_long=split --set method.search=likeliest --set method.prompt_tokens=110 "
      "--set method.null_bias=-20";
  const Ran ran = run("split", set);
  ASSERT_LE(ran.exit_code, 1) << ran.err;
  const auto all = rows("split");
  ASSERT_FALSE(all.empty());
  for (const json& row : all) expect_place(row["answers"][0], text_of(row["id"].get<size_t>()));
  EXPECT_EQ(run_sheaf(scratch_, "plan " + scratch_.path("job.yaml")).exit_code, 0);
}

}  // namespace
}  // namespace sheaf
