#include "io/corpus/corpus.h"

#include <gtest/gtest.h>

#include "io/datasets/convert.h"
#include "io/files/job_file.h"
#include "tests/datasets/samples.h"
#include "tests/errors.h"

namespace sheaf {
namespace {

constexpr const char* kModel =
    SHEAF_SOURCE_DIR "/datasets/README.md";  // any file: the job's check asks only that it is there

Job job_of(const TempFolder& folder, const std::string& input, const std::string& rest = {}) {
  return read_job(
      folder.write("job.yaml", fmt::format("model: {{path: {}}}\ninput: {{{}}}\ntask: {{kind: ask{}}}\n"
                                           "method: {{name: ippd}}\noutput: {{path: out}}\n",
                                           kModel, input, rest)),
      {});
}

std::vector<std::variant<Record, Reject>> rest_of(Corpus& corpus) {
  std::vector<std::variant<Record, Reject>> rows;
  while (auto row = corpus.next()) rows.push_back(std::move(*row));
  return rows;
}

TEST(DatasetCorpus, AJobNamesTheFormatAndNoColumns) {
  const TempFolder folder;
  const std::string path = write_sample(folder, sample("squad"));
  const auto rows = rest_of(*open_corpus(job_of(folder, "path: " + path + ", format: squad"), nullptr));
  ASSERT_EQ(rows.size(), 2u);
  const Record& record = std::get<Record>(rows[0]);
  EXPECT_EQ(record.id, "Mills/0");
  EXPECT_EQ(record.document, "The mill of Arn was built in 1802.");
  ASSERT_EQ(record.questions.size(), 2u);
  EXPECT_EQ(record.questions[0].id, "q1");
  EXPECT_EQ(record.questions[0].text, "When was it built?");
  EXPECT_TRUE(record.questions[0].options.empty());
}

TEST(DatasetCorpus, MultipleChoiceHasItsOptions) {
  const TempFolder folder;
  const std::string path = write_sample(folder, sample("race"));
  const auto rows = rest_of(*open_corpus(job_of(folder, "path: " + path + ", format: race"), nullptr));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(std::get<Record>(rows[0]).questions[1].options,
            (std::vector<std::string>{"dry", "hot", "wet", "windy"}));
}

TEST(DatasetCorpus, ProductsHaveTheirNumberAsId) {
  const TempFolder folder;
  Job job;
  job.file = "job.yaml";
  job.input.path = write_sample(folder, sample("oa-mine"));
  job.input.format = "oa-mine";
  job.input.category = "category";
  job.input.document = {"document"};
  Schema schema;
  schema.categories = {{"Coffee", {{"Brand", {}, ValueType::text, {}}}}};
  const auto rows = rest_of(*open_corpus(job, &schema));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(std::get<Record>(rows[0]).id, 1);
  EXPECT_EQ(std::get<Record>(rows[0]).document, "Acme Roast, 12 oz");
  EXPECT_NE(std::get<Reject>(rows[1]).reason.find("category \"Tea\" is not in the schema"),
            std::string::npos);
}

TEST(DatasetCorpus, CountsSkipsAndLimitsAsEveryCorpus) {
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += i % 7 == 3 ? "{\"id\": broken\n\n"
                        : fmt::format(
                              "{{\"id\": \"{}\", \"question\": \"q\", \"answer\": \"a\", \"paragraphs\": "
                              "[{{\"title\": \"t\", \"paragraph_text\": \"p{}\"}}]}}\n",
                              i, i);
  const std::string input = "path: " + folder.write("m.jsonl", lines) + ", format: musique";
  const Job job = job_of(folder, input);
  const auto all = rest_of(*open_corpus(job, nullptr));
  ASSERT_EQ(all.size(), 20u);
  EXPECT_EQ(std::get<Reject>(all[3]).place.row, 4);
  for (int64_t at = 0; at <= 20; ++at) {
    const auto corpus = open_corpus(job, nullptr);
    EXPECT_EQ(corpus->count_records(), 20);
    corpus->skip_to(at);
    EXPECT_EQ(corpus->position(), at);
    const auto rest = rest_of(*corpus);
    ASSERT_EQ(rest.size(), static_cast<size_t>(20 - at));
    for (size_t i = 0; i < rest.size(); ++i) {
      const auto& same = all[static_cast<size_t>(at) + i];
      ASSERT_EQ(rest[i].index(), same.index());
      if (const Record* record = std::get_if<Record>(&rest[i])) {
        EXPECT_EQ(record->document, std::get<Record>(same).document);
      }
    }
  }
  const Job limited = job_of(folder, input + ", limit: 5");
  EXPECT_EQ(rest_of(*open_corpus(limited, nullptr)).size(), 5u);
}

TEST(DatasetCorpus, ExamplesEndTheInstruction) {
  const TempFolder folder;
  const std::string path = write_sample(folder, sample("narrativeqa"));
  const Job job =
      job_of(folder, "path: " + path + ", format: narrativeqa, shots: 2", ", instruction: Answer.");
  EXPECT_EQ(
      job.task.instruction,
      "Answer.\n\nPassage:\nA keeper lights a lamp.\nShips pass.\n\nQuestion: What does the keeper light?\n"
      "Answer: A lamp\n\nPassage:\nTwo sisters bake bread.\n\nQuestion: Who bakes?\nAnswer: two sisters");
  EXPECT_NE(error_of([&] {
              job_of(folder, "path: " + path + ", format: narrativeqa, shots: 9", ", instruction: Answer.");
            }).find("9 examples were asked for, but only 2 passages"),
            std::string::npos);
}

TEST(DatasetCorpus, ExamplesAreNeverOfTheDocumentsThatAreAskedAbout) {
  const TempFolder folder;
  const std::string stories = write_sample(folder, sample("narrativeqa"));
  const auto refusal = [&](const std::string& input) {
    return error_of([&] { job_of(folder, input, ", instruction: Answer."); });
  };
  EXPECT_NE(refusal("path: " + stories + ", format: narrativeqa, split: train, shots: 2")
                .find("from the documents that the job asks about; use another input.split"),
            std::string::npos);
  const std::string squad = write_sample(folder, sample("squad"));
  EXPECT_NE(refusal("path: " + squad + ", format: squad, shots: 1, shots_from: " + squad)
                .find("name another input.shots_from"),
            std::string::npos);
  // Whatever is chosen, no test story is among it.
  for (int shots = 1; shots <= 2; ++shots) {
    const Job job = job_of(folder, fmt::format("path: {}, format: narrativeqa, shots: {}", stories, shots),
                           ", instruction: Answer.");
    EXPECT_EQ(job.task.instruction.find("Gull"), std::string::npos);
  }
}

TEST(DatasetCorpus, AnExampleWithoutAnAnswerSaysNull) {
  const TempFolder folder;
  const std::string path = write_sample(folder, sample("quac"));
  std::string cannot = sample("quac").text;
  for (size_t at = 0; (at = cannot.find("\"text\": \"", at)) != std::string::npos; at += 9)
    cannot.replace(at + 9, cannot.find('"', at + 9) - at - 9, "CANNOTANSWER");
  const Job job = job_of(folder,
                         fmt::format("path: {}, format: quac, shots: 1, shots_from: {}", path,
                                     folder.write("train.json", cannot)),
                         ", instruction: Answer.");
  EXPECT_TRUE(job.task.instruction.ends_with("Question: Where was he born?\nAnswer: null"))
      << job.task.instruction;
}

TEST(DatasetCorpus, ExamplesCanComeFromAConvertedCorpus) {
  const TempFolder folder;
  const std::string race = write_sample(folder, sample("race"));
  const std::string asked = folder.path("test.jsonl");
  convert_dataset("race", race, asked, {}, [](const auto&) {});
  for (const char* name : {"train.jsonl", "train.parquet"}) {
    const std::string train = folder.path(name);
    convert_dataset("race", race, train, {}, [](const auto&) {});
    const Job job =
        job_of(folder,
               fmt::format("path: {}, context: context, questions: questions, shots: 1, shots_from: {}",
                           asked, train),
               ", instruction: Choose.");
    EXPECT_EQ(job.task.instruction,
              "Choose.\n\nPassage:\nMia walks to school. It rains.\n\nQuestion: How does Mia go to school?\n"
              "A) By bus\nB) On foot\nC) By car\nD) By train\nAnswer: B");
  }
}

TEST(DatasetCorpus, ThereIsAJobForEveryDataset) {
  for (const DatasetFormat& format : dataset_formats()) {
    const TempFolder folder;
    const std::string path = write_sample(folder, sample(format.name == "ae-110k" ? "oa-mine" : format.name));
    std::vector<std::string> set = {fmt::format("model.path={}", kModel), "input.path=" + path};
    if (format.name == "narrativeqa") set.push_back("input.shots=2");
    if (format.name == "quac" || format.name == "drop")
      set.push_back("input.shots_from=" + folder.write("train.json", sample(format.name).text));
    if (format.corpus)
      set.push_back(
          "input.corpus=" +
          folder.write("corpus.jsonl", "{\"pid\": \"p1\", \"passage_text\": \"The bridge in Oss\"}\n"));
    const Job job = read_job("configs/" + format.name + ".yaml", set);
    EXPECT_EQ(job.input.format, format.name);
    EXPECT_EQ(job.output.path, "out/" + format.name);
    const Schema schema = job.task.schema.empty() ? Schema() : read_schema(job.task.schema);
    EXPECT_FALSE(rest_of(*open_corpus(job, format.task == TaskKind::extract ? &schema : nullptr)).empty())
        << format.name;
  }
}

TEST(DatasetCorpus, KeysThatDoNotFitAreRefused) {
  const TempFolder folder;
  const std::string path = write_sample(folder, sample("squad"));
  const auto refusal = [&](const std::string& input) {
    return error_of([&] { job_of(folder, "path: " + path + ", " + input); });
  };
  EXPECT_NE(refusal("format: squat").find("did you mean \"squad\""), std::string::npos)
      << refusal("format: squat");
  EXPECT_NE(refusal("format: loft").find("set input.corpus to its corpus.jsonl"), std::string::npos);
  EXPECT_NE(refusal("format: oa-mine").find("works only with task.kind extract"), std::string::npos);
  EXPECT_NE(refusal("format: squad, split: train").find("works only with input.format narrativeqa"),
            std::string::npos);
  EXPECT_NE(refusal("format: squad, turns: 1").find("works only with input.format quac"), std::string::npos);
  EXPECT_NE(refusal("format: squad, shots: 1").find("needs input.shots_from"), std::string::npos);
  EXPECT_NE(refusal("format: jsonl, context: c, questions: q, turns: 1").find("works only with datasets"),
            std::string::npos);
  const Job job = job_of(folder, "path: " + path + ", format: squad, context: text");
  EXPECT_NE(error_of([&] { open_corpus(job, nullptr); }).find("the dataset has no column \"text\""),
            std::string::npos);
}

}  // namespace
}  // namespace sheaf
