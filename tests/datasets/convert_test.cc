#include "io/datasets/convert.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "io/corpus/corpus.h"
#include "io/datasets/gold.h"
#include "io/datasets/needle.h"
#include "io/files/job_file.h"
#include "tests/datasets/samples.h"
#include "tests/errors.h"

namespace sheaf {
namespace {

using nlohmann::json;

json as_json(const std::vector<GoldAnswer>& gold) {
  json list = json::array();
  for (const GoldAnswer& answer : gold)
    list.push_back({answer.id, answer.references, answer.answerable, answer.extra});
  return list;
}

TEST(Convert, GoldAnswersAreTheSameFromTheDatasetAndFromTheCorpus) {
  for (const Sample& one : samples()) {
    const TempFolder folder;
    const std::string path = write_sample(folder, one);
    const json gold = as_json(read_gold(one.format, path));
    EXPECT_FALSE(gold.empty());
    EXPECT_EQ(as_json(read_gold("auto", path)), gold) << one.format;
    for (const char* name : {"out/corpus.jsonl", "out/corpus.parquet"}) {
      const std::string out = folder.path(name);
      const Converted done =
          convert_dataset(one.format, path, out, {}, [](const DatasetRow& row) { FAIL() << row.error; });
      EXPECT_GT(done.rows, 0);
      EXPECT_EQ(as_json(read_gold("sheaf", out)), gold) << one.format << " " << name;
      EXPECT_EQ(as_json(read_gold("auto", out)), gold) << one.format << " " << name;
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path("out")), {}),
                name == std::string("out/corpus.jsonl") ? 1 : 2)
          << "a staged file was left";
    }
  }
}

TEST(Convert, GoldMarksUnanswerableQuestions) {
  const TempFolder folder;
  const auto squad = read_gold("squad", write_sample(folder, sample("squad")));
  ASSERT_EQ(squad.size(), 3u);
  EXPECT_EQ(squad[0].references, (std::vector<std::string>{"1802", "in 1802"}));
  EXPECT_TRUE(squad[0].answerable);
  EXPECT_TRUE(squad[1].references.empty());
  EXPECT_FALSE(squad[1].answerable);
  const auto quac = read_gold("quac", write_sample(folder, sample("quac")));
  EXPECT_FALSE(quac[1].answerable) << "half of the answers say so";
  EXPECT_EQ(quac[1].extra["dialog"], "C_1");
  const auto products = read_gold("oa-mine", write_sample(folder, sample("oa-mine")));
  EXPECT_EQ(products[1].id, 2);
  EXPECT_EQ(products[1].extra, json({{"category", "Tea"}, {"gold", {{"Brand", {"n/a", "Acme"}}}}}));
}

TEST(Convert, GoldIsReadFromPlainLinesAndTheSampleCorpora) {
  const TempFolder folder;
  const auto plain =
      read_gold("auto", folder.write("g.jsonl", "{\"id\": 7, \"answers\": [\"a\", \"b\"]}\n\n"));
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].id, 7);
  EXPECT_EQ(plain[0].references, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(error_of([&] { read_gold("sheaf", folder.write("b.jsonl", "{\"id\": 7}\n")); }),
            folder.path("b.jsonl") +
                ":1: no gold answers can be read: no \"gold\" or \"answers\"; a row needs "
                "{\"id\", \"gold\": {attribute: value}} for attributes, or {\"id\", "
                "\"answers\": [...]} for questions");
  for (const char* corpus : {"datasets/passages/passages.jsonl", "datasets/passages/passages.parquet"}) {
    const auto gold = read_gold("auto", corpus);
    EXPECT_EQ(gold.size(), 154u) << corpus;
    EXPECT_EQ(std::count_if(gold.begin(), gold.end(), [](const GoldAnswer& g) { return !g.answerable; }), 17);
  }
  EXPECT_EQ(read_gold("auto", "datasets/catalog/catalog.jsonl").size(), 252u);
  EXPECT_EQ(read_gold("auto", "datasets/catalog/catalog.parquet").size(), 252u);
}

TEST(Convert, TheCorpusIsReadAsAJobWould) {
  const TempFolder folder;
  Job job;
  job.file = "job.yaml";
  job.input.id = "id";
  job.input.context = "context";
  job.input.questions = "questions";
  for (const Sample& one : samples()) {
    if (find_dataset_format(one.format)->task != TaskKind::ask) continue;
    if (find_dataset_format(one.format)->corpus) continue;  // its questions have no context
    job.input.path = folder.path(one.format + ".parquet");
    const Converted done =
        convert_dataset(one.format, write_sample(folder, one), job.input.path, {}, [](const auto&) {});
    const auto corpus = open_corpus(job, nullptr);
    int64_t rows = 0, questions = 0;
    while (const auto row = corpus->next()) {
      ++rows;
      questions += static_cast<int64_t>(std::get<Record>(*row).questions.size());
    }
    EXPECT_EQ(rows, done.rows) << one.format;
    EXPECT_EQ(questions, done.questions) << one.format;
  }
}

TEST(Convert, BrokenEntriesAreListedUpToALimit) {
  const TempFolder folder;
  const std::string path = folder.write("m.jsonl", "{\n" + sample("musique").text);
  std::vector<int64_t> places;
  ConvertSettings settings;
  settings.limit = 2;
  const Converted done = convert_dataset("musique", path, folder.path("o.jsonl"), settings,
                                         [&](const DatasetRow& row) { places.push_back(row.place.row); });
  EXPECT_EQ(done.rows, 1);
  EXPECT_EQ(done.rejects, 1);
  EXPECT_EQ(places, std::vector<int64_t>{1});
  EXPECT_NE(error_of([&] {
              convert_dataset("musique", path, folder.path("o.csv"), {}, [](const auto&) {});
            }).find(".jsonl or .parquet"),
            std::string::npos);
}

TEST(Convert, TheSchemaListsTheAttributesFound) {
  const TempFolder folder;
  ConvertSettings settings;
  settings.schema = folder.path("schemas/s.yaml");
  convert_dataset("oa-mine", write_sample(folder, sample("oa-mine")), folder.path("o.parquet"), settings,
                  [](const auto&) {});
  const Schema schema = read_schema(settings.schema);
  ASSERT_EQ(schema.categories.size(), 2u);
  const Category* coffee = schema.find("Coffee");
  ASSERT_NE(coffee, nullptr);
  ASSERT_EQ(coffee->attributes.size(), 2u);
  EXPECT_EQ(coffee->attributes[0].name, "Size");
  EXPECT_EQ(coffee->attributes[0].description, "for example 12 oz");
}

std::string book() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("Sentence {} of the\nbook ends here. ", i);
  return text;
}

TEST(Needle, EveryQuestionsFactStandsInItsDocument) {
  NeedleOptions options;
  options.count = 3;
  options.questions = 20;
  options.length = 100;
  const auto rows = make_needles(book(), "book.txt", options);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NE(rows[0]["context"], rows[1]["context"]);
  for (const auto& row : rows) {
    const auto context = row["context"].get<std::string>();
    ASSERT_EQ(row["questions"].size(), 20u);
    std::set<std::string> asked;
    for (const auto& question : row["questions"]) {
      const auto text = question["question"].get<std::string>();
      asked.insert(text);
      // "What color is the PART of the ANIMAL named NAME?"
      const auto part = text.substr(18, text.find(" of the ") - 18);
      const auto who = text.substr(text.find(" of the ") + 8, text.size() - text.find(" of the ") - 9);
      const auto fact =
          fmt::format("The {} has {} that is {}.", who, part, question["answers"][0].get<std::string>());
      EXPECT_NE(context.find(fact), std::string::npos) << fact;
    }
    EXPECT_EQ(asked.size(), 20u);
    size_t answered = 0;
    for (size_t at = 0; (at = context.find("\nAnswer: ", at)) != std::string::npos; ++at) ++answered;
    EXPECT_EQ(answered, 5u);
    // 25 facts stand among 100 words of the book, not in one heap.
    size_t book_words = 0;
    for (size_t at = 0; (at = context.find(" ends here.", at)) != std::string::npos; ++at) ++book_words;
    EXPECT_EQ(book_words, 100u / 7);
    EXPECT_LT(context.find("ends here"), context.rfind("that is"));
  }
  EXPECT_EQ(make_needles(book(), "book.txt", options), rows) << "the same seed, the same data";
  options.seed = 1;
  EXPECT_NE(make_needles(book(), "book.txt", options), rows);
}

TEST(Needle, FactsAndTheUnitOfLengthCanBeChosen) {
  NeedleOptions options;
  options.count = 1;
  options.questions = 256;
  options.length = 500;
  options.dogs = true;
  options.measure = [](const std::string& text) { return static_cast<int64_t>(text.size() / 2); };
  const auto row = make_needles(book(), "book.txt", options)[0];
  EXPECT_EQ(row["questions"].size(), 256u);
  for (const auto& question : row["questions"])
    EXPECT_TRUE(
        question["question"].get<std::string>().starts_with("What color is the fur of the dog named "));
  options.questions = 500;
  EXPECT_NE(error_of([&] { make_needles(book(), "book.txt", options); }).find("there are only 400"),
            std::string::npos);
  options.length = 10'000;
  EXPECT_NE(error_of([&] {
              make_needles(book(), "book.txt", options);
            }).find("book.txt: the file has only 2800 words"),
            std::string::npos);
}

}  // namespace
}  // namespace sheaf
