
#include <gtest/gtest.h>

#include "io/corpus/describe_corpus.h"
#include "io/files/job_file.h"
#include "tests/errors.h"
#include "tests/fuzz.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;

JobProposal proposed(const std::string& path) {
  std::vector<json> sample;
  const std::string format = wanted_format(path);
  const auto about = describe_corpus(path, format, &sample);
  return propose_job(path, format, about, sample);
}

/// The job as it is pasted, which must be one.
Job pasted(const TempFolder& folder, const JobProposal& proposal) {
  folder.write("schema.yaml", proposal.schema);
  const Job job = read_job(
      folder.write("job.yaml", "model: {path: m.gguf}\noutput: {path: out}\n" + proposal.job), {}, false);
  if (job.task.kind == TaskKind::extract) read_schema(folder.path("schema.yaml"));
  return job;
}

TEST(ProposeJob, FindsTheColumnsOfATable) {
  const TempFolder folder;
  std::string text = "SKU,Product Type,Title,Brand,Price,Stock,Link,Description\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format(
        "00{},{},\"{} mug no. {}, {} oz\",{},{}.5,{},https://x/{},\"A mug, of stoneware: {} oz\"\n", i,
        i % 3 ? "Mug" : "Large Mug", i % 2 ? "Oak" : "Rye", i, i, i % 2 ? "Oak" : "Rye", i, i * 31 % 7, i, i);
  const JobProposal proposal = proposed(folder.write("shop.csv", text));
  EXPECT_EQ(proposal.job, "input:\n  path: " + folder.path("shop.csv") +
                              "\n  id: SKU\n  category: Product Type\n  document: [Title, Description]\n"
                              "\ntask:\n  kind: extract\n  schema: schema.yaml\n");
  EXPECT_EQ(proposal.schema,
            "attributes:\n  Brand: {type: enum, options: [Oak, Rye]}\n"
            "categories:\n  Large Mug: [Brand]\n  Mug: [Brand]\n");
  const Job job = pasted(folder, proposal);
  EXPECT_EQ(job.input.id, "SKU");
  EXPECT_EQ(job.input.document, (std::vector<std::string>{"Title", "Description"}));
}

TEST(ProposeJob, NestedGoldGivesANestedSchema) {
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 6; ++i)
    lines += json{{"id", i},
                  {"text", fmt::format("A tea in a box of {} cm, as S for 2.5 and as M for 4 EUR", i)},
                  {"gold",
                   {{"brand", "Oak"},
                    {"box", {{"width", i}, {"size: of it", "wide"}}},
                    {"sizes", {{{"size", "S"}, {"price", 2.5}}, {{"size", "M"}, {"sold", true}}}},
                    {"offers", json::array({{{"price", i}, {"shops", {{{"name", "Rye"}}}}}})}}}}
                 .dump() +
             "\n";
  lines += R"({"id": 9, "text": "A tea in a box, as S", "gold": {"sizes": ["S"]}})"
           "\n";
  const JobProposal proposal = proposed(folder.write("tea.jsonl", lines));
  EXPECT_EQ(
      proposal.schema,
      "# record 7: sizes must be a list of objects, not a list of texts; sheaf score and train-data refuse "
      "such gold\n"
      "attributes:\n"
      "  box: {type: object, attributes: [{name: \"size: of it\", type: text}, {name: width, type: "
      "integer}]}\n"
      "  brand: {type: text}\n"
      "  offers: {type: list, attributes: [{name: price, type: text}, {name: shops, type: list, "
      "attributes: [{name: name, type: text}]}]}\n"
      "  sizes: {type: list, attributes: [{name: price, type: number}, {name: size, type: text}, {name: "
      "sold, type: boolean}]}\n"
      "categories:\n  tea: [box, brand, offers, sizes]\n");
  pasted(folder, proposal);
}

TEST(ProposeJob, OneObjectAmongTextsMakesNoNestedSchema) {
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 6; ++i)
    lines += json{{"id", i},
                  {"text", fmt::format("A tea of {}, in a box", i)},
                  {"gold", {{"box", i == 2 ? json{{"width", 4}} : json("a box")}}}}
                 .dump() +
             "\n";
  const JobProposal proposal = proposed(folder.write("tea.jsonl", lines));
  EXPECT_EQ(proposal.schema,
            "# record 3: box must be a plain value or a list of them, not an object; sheaf score and "
            "train-data refuse such gold\n"
            "attributes:\n  box: {type: text}\ncategories:\n  tea: [box]\n");
  pasted(folder, proposal);
}

TEST(ProposeJob, AnIdThatRepeatsIsToldOf) {
  const TempFolder folder;
  const auto proposed_of = [&](int distinct) {
    std::string text = "sku,title\n";
    for (int i = 0; i < 40; ++i)
      text += fmt::format("A{},\"A long title of a mug, the {}th of them all\"\n", i % distinct, i);
    return proposed(folder.write("ids.csv", text));
  };
  EXPECT_NE(proposed_of(40).job.find("  id: sku\n"), std::string::npos);
  const JobProposal few = proposed_of(38);
  EXPECT_NE(
      few.job.find("  id: sku  # 2 of 40 repeat an earlier one; such records are kept, see duplicate_ids\n"),
      std::string::npos)
      << few.job;
  EXPECT_EQ(pasted(folder, few).input.id, "sku");
  const JobProposal many = proposed_of(7);
  EXPECT_NE(many.job.find("  # no id, so that rows are numbered; sku: 33 of 40 repeat an earlier one\n"),
            std::string::npos)
      << many.job;
  EXPECT_EQ(pasted(folder, many).input.id, "");
}

TEST(ProposeJob, RequestsBecomeAChat) {
  const TempFolder folder;
  const JobProposal proposal = proposed(folder.write(
      "r.jsonl",
      R"({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": []}})"));
  EXPECT_EQ(pasted(folder, proposal).task.kind, TaskKind::chat);
  EXPECT_EQ(proposal.schema, "");
}

TEST(ProposeJob, MakesASchemaOfGold) {
  const TempFolder folder;
  const JobProposal proposal = proposed(folder.write(
      "g.jsonl",
      R"({"id": 1, "category": "Tea", "text": "Oak", "gold": {"Brand": ["Oak"], "Bags": 20}})"
      "\n"
      R"({"id": 2, "category": "Cup: big", "text": "Rye", "gold": {"Uses": ["a", "b"], "Since": "2020-01-02"}})"
      "\n"
      R"({"id": 3, "category": "Cup: big", "text": "Rye", "gold": {"Hot": true, "Brand": null}})"));
  EXPECT_EQ(proposal.schema,
            "attributes:\n  Bags: {type: integer}\n  Brand: {type: text}\n  Since: {type: date}\n"
            "  Uses: {type: list}\n  Hot: {type: boolean}\n"
            "categories:\n  \"Cup: big\": [Brand, Since, Uses, Hot]\n  Tea: [Bags, Brand]\n");
  pasted(folder, proposal);
}

TEST(ProposeJob, RecognizesQuestions) {
  const TempFolder folder;
  const JobProposal many = proposed(folder.write(
      "q.jsonl", R"({"id": "a", "context": "Box", "questions": [{"id": 1, "question": "What?"}]})"));
  EXPECT_TRUE(many.schema.empty());
  Job job = pasted(folder, many);
  EXPECT_EQ(job.input.context, "context");
  EXPECT_EQ(job.input.questions, "questions");
  job = pasted(folder, proposed(folder.write("q.csv", "passage,question\nBox and cup,What?\n")));
  EXPECT_EQ(job.input.context, "passage");
  EXPECT_EQ(job.input.question, "question");
}

TEST(ProposeJob, RecognizesQuestionsAboutSeveralDocuments) {
  const TempFolder folder;
  for (const char* asked : {R"("question": "What?")", R"("questions": ["What?", "Why?"])"}) {
    const JobProposal proposal = proposed(
        folder.write("q.jsonl", fmt::format(R"({{"id": "a", "docs": ["A box.", "A cup."], {}}})", asked)));
    EXPECT_TRUE(proposal.schema.empty());
    const Job job = pasted(folder, proposal);
    EXPECT_EQ(job.task.kind, TaskKind::ask);
    EXPECT_EQ(job.input.documents, "docs");
  }
}

TEST(ProposeJob, ReadsHtmlAsText) {
  const TempFolder folder;
  std::string text = "id;title;description;price\n";
  for (int i = 0; i < 8; ++i)
    text += fmt::format("{};Cup no. {};\"<p>A cup for {},50&nbsp;EUR</p>\";\"{},50 EUR\"\n", i, i, i, i);
  const JobProposal proposal = proposed(folder.write("h.csv", text));
  EXPECT_EQ(pasted(folder, proposal).input.html, Html::text);
  EXPECT_NE(proposal.schema.find("price"), std::string::npos) << "it stands in the text";
  EXPECT_EQ(pasted(folder, proposed(folder.write("p.csv", "id;title\n1;A & B\n2;A < B\n"))).input.html,
            Html::keep);
}

TEST(ProposeJob, ReadsParquet) {
  const TempFolder folder;
  write_parquet(folder.path("t.parquet"), {{"asin", "string", {"B1", "B2"}},
                                           {"title", "string", {"Oak tea", "Rye tea"}},
                                           {"answer", "string", {std::string(60, 'a'), std::string(70, 'b')}},
                                           {"maker", "string", {"Oak", nullptr}}});
  const JobProposal proposal = proposed(folder.path("t.parquet"));
  const Job job = pasted(folder, proposal);
  EXPECT_EQ(job.input.id, "asin");
  EXPECT_EQ(job.input.document, std::vector<std::string>{"title"}) << "an answer is no document";
  EXPECT_EQ(proposal.schema, "attributes:\n  maker: {type: text}\ncategories:\n  t: [maker]\n");
}

TEST(ProposeJob, AnEmptyCorpusGetsNoProposal) {
  const TempFolder folder;
  EXPECT_EQ(proposed(folder.write("e.csv", "")).job, "");
  EXPECT_EQ(proposed(folder.write("e.jsonl", "{}\n")).job, "");
  EXPECT_EQ(proposed(folder.write("h.csv", "a,b\n")).job, "") << "only a header";
  pasted(folder, proposed(folder.write("i.csv", "id\n1\n2\n")));
}

/// Whatever a corpus is called and holds, what is proposed is a job.
TEST(Fuzz, ProposalsAreJobs) {
  const TempFolder folder;
  const std::vector<std::string> seeds = {
      "id,category,title,Brand\n1,Tea,Oak tea,Oak\n2,Cup: x,Rye \"tea\",Rye\n",
      R"({"id": 1, "type": "Tea", "text": "Oak", "gold": {"Brand": ["Oak"], "n": 5, "k": "2020-01-01"}})"
      "\n"};
  const std::vector<std::string_view> words = {
      "\"", ",",  "\n", ":",       "- ", "#",    "&a",    "*a", "!!x",  "null",   "yes",
      "~",  "\t", "{",  "}",       "[",  "]",    "'",     "|",  ">",    "é",      "\xff",
      "\\", "%",  "@",  "\\u202e", " ",  "\x01", "title", "0",  "\x7f", "\u2028", "? "};
  int64_t proposals = 0;
  fuzz([&](std::mt19937_64& random) {
    const size_t kind = random() % 2;
    const std::string text = mutate(seeds[kind], random, words);
    const std::string path = folder.write(kind ? "c.jsonl" : "c.csv", text);
    JobProposal proposal;
    try {
      proposal = proposed(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input) << error.what();
      return;
    }
    if (proposal.job.empty()) return;
    ++proposals;
    EXPECT_EQ(error_of([&] { pasted(folder, proposal); }), "no error") << text << "\n---\n"
                                                                       << proposal.job << "---\n"
                                                                       << proposal.schema;
  });
  EXPECT_GT(proposals, 0);
}

}  // namespace
}  // namespace sheaf
