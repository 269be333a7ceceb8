#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/base/line_reader.h"
#include "io/files/job_file.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/corpus_records.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::string line_reason(const std::string& line) {
  TempFolder folder;
  const std::string good = R"({"sku": 1, "category": "Tea", "title": "t", "text": "x"})";
  const std::string path = folder.write("c.jsonl", good + "\n" + line + "\n" + good + "\n");
  const CorpusRecords rows = read_all(extract_job(path), &kSchema);
  EXPECT_EQ(rows.records.size(), 2u) << "the neighbours of a bad line are read";
  if (rows.rejects.size() != 1) return "not one reject";
  EXPECT_EQ(rows.rejects[0].place.file, path);
  EXPECT_EQ(rows.rejects[0].place.row, 2);
  return rows.rejects[0].reason;
}

TEST(JsonlCorpus, ReportsWhichShareWasRead) {
  TempFolder folder;
  std::string lines;
  for (int i = 0; i < 1000; ++i)
    lines += R"({"sku": 1, "category": "Tea", "title": "t", "text": ")" + std::string(500, 'x') + "\"}\n";
  folder.write("a.jsonl", lines);
  folder.write("b.jsonl", lines);
  Job job = extract_job(folder.path("*.jsonl"));
  const auto corpus = open_corpus(job, &kSchema);
  EXPECT_EQ(corpus->share_read(), 0.0);
  for (int row = 1; corpus->next(); ++row)
    ASSERT_NEAR(corpus->share_read().value(), row / 2000.0, 0.01) << row;
  EXPECT_EQ(corpus->share_read(), 1.0);
  job.input.limit = 100;
  const auto first = open_corpus(job, &kSchema);
  for (int row = 1; row <= 50; ++row) first->next();
  EXPECT_NEAR(first->share_read().value(), 0.5, 1e-9);
}

TEST(JsonlCorpus, FoldersAreReadRecursively) {
  TempFolder folder;
  const std::string line = R"({"sku": 1, "category": "Tea", "title": "t", "text": "x"})"
                           "\n";
  for (const char* name :
       {"day=1/b.jsonl", "a.JSONL", "day=1/deep/c.jsonl", "_temporary/x.jsonl", ".hidden/y.jsonl"})
    folder.write(name, line);
  folder.write("_SUCCESS", "");
  const CorpusRecords rows = read_all(extract_job(folder.path()), &kSchema);
  EXPECT_EQ(rows.records.size(), 3u);
  std::filesystem::create_symlink("nowhere", folder.path("d.jsonl"));
  EXPECT_NE(error_of([&] { read_all(extract_job(folder.path()), &kSchema); }).find("is a broken link"),
            std::string::npos);
}

TEST(JsonlCorpus, AnIdWithTooManyDigitsIsARejectNotRounded) {
  EXPECT_NE(line_reason(R"({"sku": 12345678901234567890123, "category": "Tea", "title": "t", "text": "x"})")
                .find("too many digits for a number"),
            std::string::npos);
}

TEST(JsonlCorpus, MapsColumns) {
  TempFolder folder;
  const std::string path =
      folder.write("c.jsonl",
                   "\xEF\xBB\xBF"
                   R"({"sku": "a", "category": "Coffee", "title": "Dark", "text": "Roast", "x": [1]})"
                   "\r\n\n"
                   R"({"sku": 7, "category": "Tea", "title": 5.5, "text": null})"
                   "\n"
                   R"({"text": "z\u0000z", "title": "  ", "sku": 18446744073709551615, "category": "Tea"})");
  const CorpusRecords rows = read_all(extract_job(path), &kSchema);
  ASSERT_EQ(rows.records.size(), 3u);
  EXPECT_TRUE(rows.rejects.empty());
  EXPECT_EQ(rows.records[0].id, json("a"));
  EXPECT_EQ(rows.records[0].category, "Coffee");
  EXPECT_EQ(rows.records[0].document, "Dark\nRoast");
  EXPECT_EQ(rows.records[1].id, json(7));
  EXPECT_EQ(rows.records[1].document, "5.5");
  EXPECT_EQ(rows.records[1].place.row, 3);
  EXPECT_EQ(rows.records[2].document, std::string("z\0z", 3));
  EXPECT_EQ(rows.records[2].id, json(18446744073709551615ull));
}

TEST(JsonlCorpus, PathsLeadIntoObjects) {
  TempFolder folder;
  Job job = extract_job(folder.write(
      "c.jsonl",
      R"({"item": {"sku": 7, "kind": {"name": "Tea"}}, "title": ["Oak", "tea"], "seller": {"name": "Elm"}, "seller.name": "Ash"}
{"item": {"sku": 8, "kind": null}, "title": "x", "seller": {"name": "y"}}
)"));
  job.input.id = "item.sku";
  job.input.category = "item.kind.name";
  job.input.document = {"title", "seller.name"};
  const CorpusRecords rows = read_all(job, &kSchema);
  ASSERT_EQ(rows.records.size(), 1u);
  EXPECT_EQ(rows.records[0].id, 7);
  EXPECT_EQ(rows.records[0].category, "Tea");
  EXPECT_EQ(rows.records[0].document, "Oak\ntea\nAsh") << "a column of the whole name comes first";
  ASSERT_EQ(rows.rejects.size(), 1u);
  EXPECT_EQ(rows.rejects[0].reason, "column \"item.kind.name\" is missing");
  job.input.document = {"sellr.name"};
  EXPECT_NE(error_of([&] { open_corpus(job, &kSchema); }).find("has no column \"sellr.name\""),
            std::string::npos);
}

TEST(JsonlCorpus, AMissingPartOfADocumentIsNull) {
  TempFolder folder;
  const std::string path = folder.write("c.jsonl", R"({"sku": 1, "category": "Tea", "title": "t"})"
                                                   "\n"
                                                   R"({"sku": 2, "category": "Tea", "text": "x"})"
                                                   "\n");
  const CorpusRecords rows = read_all(extract_job(path), &kSchema);
  EXPECT_TRUE(rows.rejects.empty());
  ASSERT_EQ(rows.records.size(), 2u);
  EXPECT_EQ(rows.records[0].document, "t");
  EXPECT_EQ(rows.records[1].document, "x");
  EXPECT_EQ(rows.records[1].columns.at(0).name, "text");
}

TEST(JsonlCorpus, ABadLineLosesOnlyItself) {
  EXPECT_TRUE(line_reason("{\"sku\": 1,").starts_with("not valid JSON at ")) << line_reason("{\"sku\": 1,");
  EXPECT_TRUE(line_reason("nonsense").starts_with("not valid JSON at "));
  EXPECT_TRUE(line_reason(R"({"sku": 1} {"sku": 2})").starts_with("not valid JSON at "));
  EXPECT_TRUE(line_reason(R"({"sku": "\ud800"})").starts_with("not valid JSON at "));
  EXPECT_EQ(line_reason("{\"sku\": \"\xff\"}"), "not valid UTF-8 at byte 10");
  EXPECT_EQ(line_reason("[1, 2]"), "not a JSON object");
  EXPECT_EQ(line_reason("5"), "not a JSON object");
  EXPECT_EQ(line_reason("null"), "not a JSON object");
  EXPECT_EQ(line_reason(R"({"sku": 1, "category": "Tea"})"), "column \"title\" is missing");
  EXPECT_EQ(line_reason(R"({"sku": 1, "category": "Tea", "title": " "})"), "column \"text\" is missing");
  EXPECT_EQ(line_reason(R"({"category": "Tea", "title": "t", "text": "x"})"), "column \"sku\" is missing");
  EXPECT_EQ(line_reason(R"({"sku": null, "category": "Tea", "title": "t", "text": "x"})"),
            "column \"sku\" is empty");
  EXPECT_EQ(line_reason(R"({"sku": 1, "category": "Tea", "title": {"t": 1}, "text": "x"})"),
            "column \"title\" is an object, not text");
  EXPECT_EQ(line_reason(R"({"sku": 1, "category": "Tea", "title": null, "text": " \n"})"),
            "the document is empty");
  EXPECT_EQ(line_reason(R"({"sku": 1, "category": "Cofee", "title": "t", "text": "x"})"),
            "category \"Cofee\" is not in the schema; did you mean \"Coffee\"?");
  EXPECT_EQ(line_reason(R"({"sku": 1, "category": null, "title": "t", "text": "x"})"),
            "column \"category\" is empty");
  EXPECT_EQ(line_reason("{\"a\": " + std::string(50, '[') + std::string(50, ']') + "}"),
            "nested more than 32 levels deep");
  EXPECT_EQ(line_reason(std::string(3 << 20, '[')), "nested more than 32 levels deep");
  const std::string half(6 << 20, 'x');
  EXPECT_EQ(line_reason(json{{"sku", 1}, {"category", "Tea"}, {"title", half}, {"text", half}}.dump()),
            "the document has 12582913 bytes; at most 10485760 are allowed");
  EXPECT_EQ(line_reason("{\"sku\": \"" + std::string(LineReader::kLongestLine, 'x') + "\"}"),
            "the line has more than 16 MB");
  EXPECT_EQ(line_reason(std::string(40 << 20, 'x')), "the line has more than 16 MB");
}

TEST(JsonlCorpus, ARejectKeepsTheIdWhereItIsKnown) {
  TempFolder folder;
  const std::string path =
      folder.write("c.jsonl", R"({"sku": "a-1", "category": "Bread", "title": "t", "text": "x"})"
                              "\n{\n");
  const CorpusRecords rows = read_all(extract_job(path), &kSchema);
  ASSERT_EQ(rows.rejects.size(), 2u);
  EXPECT_EQ(rows.rejects[0].id, json("a-1"));
  EXPECT_TRUE(rows.rejects[1].id.is_null());
}

TEST(JsonlCorpus, WithoutAnIdColumnTheRowNumberIsTheIdAcrossFiles) {
  TempFolder folder;
  for (const char* name : {"b.jsonl", "a.jsonl", "c.txt"})
    folder.write(name, fmt::format("{{\"text\": \"{0}1\"}}\n\n{{\"text\": \"{0}2\"}}\n", name));
  Job job = extract_job(folder.path());
  job.input.id.clear();
  job.input.category.clear();
  job.input.document = {"text"};
  Schema one = kSchema;
  one.categories.pop_back();
  const CorpusRecords rows = read_all(job, &one);
  ASSERT_EQ(rows.records.size(), 4u);
  EXPECT_EQ(rows.records[0].document, "a.jsonl1");
  EXPECT_EQ(rows.records[2].document, "b.jsonl1");
  EXPECT_EQ(rows.records[2].id, json(3));
  EXPECT_EQ(rows.records[3].place.row, 3);
  EXPECT_EQ(rows.records[3].category, "Coffee");
  EXPECT_EQ(error_of([&] { open_corpus(job, &kSchema); }),
            "job.yaml: the schema has 2 categories; set input.category to the column with the category");
  job.input.limit = 3;
  EXPECT_EQ(read_all(job, &one).records.size(), 3u);
}

TEST(JsonlCorpus, RefusesAColumnThatNoRowHas) {
  TempFolder folder;
  const std::string path =
      folder.write("c.jsonl", "broken\n{\"sku\": 1, \"titel\": \"t\", \"category\": 1}\n{\"text\": 2}\n");
  EXPECT_EQ(
      error_of([&] { open_corpus(extract_job(path), &kSchema); }),
      fmt::format("job.yaml: input.document: {} has no column \"title\"; did you mean \"titel\"?", path));
  EXPECT_EQ(error_of([&] { open_corpus(extract_job(folder.write("d.jsonl", "broken\n")), &kSchema); }),
            "no error");
}

TEST(JsonlCorpus, FindsFilesAndRefusesMixes) {
  TempFolder folder;
  folder.write("a.jsonl", "{\"text\": \"a\"}\n");
  folder.write("b.parquet", "not really");
  Job job = extract_job(folder.path());
  EXPECT_NE(error_of([&] { open_corpus(job, &kSchema); }).find("have different formats"), std::string::npos);
  job.input.path = folder.path("none*.jsonl");
  EXPECT_EQ(error_of([&] { open_corpus(job, &kSchema); }),
            fmt::format("job.yaml: input.path: {}: no file matches", job.input.path));
  job.input.path = folder.write("rows.txt", "{\"text\": \"a\"}\n");
  EXPECT_NE(error_of([&] { open_corpus(job, &kSchema); }).find("set input.format"), std::string::npos);
  job.input.format = "jsonl";
  job.input.id.clear();
  job.input.document = {"text"};
  job.input.category = "text";
  EXPECT_EQ(error_of([&] { open_corpus(job, &kSchema); }), "no error");
  job.input.path = folder.write("odd[1].jsonl", "{\"text\": \"a\"}\n");
  EXPECT_EQ(error_of([&] { open_corpus(job, &kSchema); }), "no error");
}

TEST(JsonlCorpus, ReadsQuestionsOfEveryShape) {
  TempFolder folder;
  const std::string path = folder.write("q.jsonl", R"({"context": "c", "questions": ["Who?", 5]}
{"context": "c", "questions": [{"id": 7, "question": "Which?", "options": ["a", 2], "answer": {"x": 1}}, {"question": "What?", "id": null}]}
{"context": "c", "questions": []}
{"context": "c", "questions": "Who?"}
{"context": "c", "questions": [{"id": 7}]}
{"context": "c", "questions": [" "]}
{"context": "c", "questions": [{"question": "q", "options": ["a", ""]}]}
{"context": "", "questions": ["q"]}
{"context": "c", "questions": [{"question": "q", "id": [1]}]}
)");
  const CorpusRecords rows = read_all(ask_job(path), nullptr);
  ASSERT_EQ(rows.records.size(), 2u);
  EXPECT_EQ(rows.records[0].questions[0].text, "Who?");
  EXPECT_EQ(rows.records[0].questions[1].text, "5");
  EXPECT_EQ(rows.records[1].questions[0].id, json(7));
  EXPECT_EQ(rows.records[1].questions[0].options, (std::vector<std::string>{"a", "2"}));
  // An answer must tell which question it is to.
  EXPECT_EQ(rows.records[0].questions[1].id, "1/1");
  EXPECT_EQ(rows.records[1].questions[1].id, "2/1");
  std::vector<std::string> reasons;
  for (const Reject& reject : rows.rejects) reasons.push_back(reject.reason);
  EXPECT_EQ(reasons, (std::vector<std::string>{
                         "the record has no questions",
                         "column \"questions\" is text, not a list of questions; write a JSON list",
                         "a question has no \"question\"", "a question is empty",
                         "an entry of \"options\" of a question is empty", "the context is empty",
                         "the id of a question is a list, not text or a number"}));
}

TEST(JsonlCorpus, ReadsOneQuestionARow) {
  TempFolder folder;
  Job job = ask_job(folder.write("q.jsonl", R"({"context": "c", "q": "Which?", "choices": ["a", "b"]}
{"context": "c", "q": "Free?", "choices": null}
{"context": "c", "q": "", "choices": null}
)"));
  job.input.questions.clear();
  job.input.question = "q";
  job.input.options = "choices";
  const CorpusRecords rows = read_all(job, nullptr);
  ASSERT_EQ(rows.records.size(), 2u);
  EXPECT_EQ(rows.records[0].questions[0].options.size(), 2u);
  EXPECT_TRUE(rows.records[1].questions[0].options.empty());
  ASSERT_EQ(rows.rejects.size(), 1u);
  EXPECT_EQ(rows.rejects[0].reason, "the question is empty");
}

TEST(LineReader, HandlesLinesAcrossChunks) {
  TempFolder folder;
  std::string text;
  std::vector<std::string> lines;
  for (size_t i = 0; i < 300; ++i) {
    lines.emplace_back((i * 7919) % 9000, static_cast<char>('a' + i % 26));
    text += lines.back() + (i % 3 ? "\n" : "\r\n");
  }
  LineReader reader(folder.write("l.txt", text));
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto line = reader.next();
    ASSERT_TRUE(line);
    EXPECT_EQ(line->text, lines[i]);
    EXPECT_EQ(line->number, static_cast<int64_t>(i) + 1);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
}

TEST(LineReader, ALineAtTheLimitIsReadAndALongerOneRefused) {
  TempFolder folder;
  const std::string most(LineReader::kLongestLine, 'x');
  LineReader reader(folder.write("l.txt", most + "\n" + most + "y\nz"));
  EXPECT_EQ(reader.next()->text.size(), most.size());
  EXPECT_TRUE(reader.next()->too_long);
  EXPECT_EQ(reader.next()->text, "z");
  EXPECT_FALSE(reader.next());
}

TEST(LineReader, ReadsCompressedFilesAndReportsDamage) {
  TempFolder folder;
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x49\xad\x28\x51\xb2\x52\x4a\x54\xaa\xe5\xaa\x86"
      "\x71\x92\x80\x1c\x00\x49\x34\x78\x5a\x1a\x00\x00\x00",
      38);
  LineReader whole(folder.write("l.jsonl.gz", packed));
  EXPECT_EQ(whole.next()->text, "{\"text\":\"a\"}");
  EXPECT_EQ(whole.next()->text, "{\"text\":\"b\"}");
  EXPECT_FALSE(whole.next());
  LineReader cut(folder.write("b.jsonl.gz", packed.substr(0, 20)));
  const auto end = cut.next();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->damage, "it is cut off");
  EXPECT_FALSE(cut.next());
}

TEST(JsonlCorpus, EveryRecordOfARealDatasetIsRead) {
  const std::string path = "../shared/datasets/oa-mine/test.jsonl";
  NEED_SHARED(path);
  Job job = extract_job(path);
  job.input.id.clear();
  job.input.document = {"input"};
  const Schema schema = read_schema("configs/schemas/oa-mine.yaml");
  const CorpusRecords rows = read_all(job, &schema);
  EXPECT_EQ(rows.records.size(), 491u);
  EXPECT_TRUE(rows.rejects.empty());
}

// The distance of each row's category to each of the schema's would take minutes.
TEST(JsonlCorpus, ManyUnknownCategoriesAreRejectedWithASuggestion) {
  Schema schema;
  for (int i = 0; i < 20'000; ++i)
    schema.categories.push_back({fmt::format("{:060}", i), {{"Brand", {}, ValueType::text, {}}}});
  std::string lines;
  for (int i = 0; i < 4'000; ++i)
    lines += fmt::format("{{\"sku\": {}, \"category\": \"{:060}\", \"title\": \"t\"}}\n", i, 19'000 + i);
  TempFolder folder;
  Job job = extract_job(folder.write("c.jsonl", lines));
  job.input.document = {"title"};
  const CorpusRecords rows = read_all(job, &schema);
  EXPECT_EQ(rows.records.size(), 1'000u);
  ASSERT_EQ(rows.rejects.size(), 3'000u);
  EXPECT_NE(rows.rejects[0].reason.find("did you mean"), std::string::npos) << rows.rejects[0].reason;
}

}  // namespace
}  // namespace sheaf
