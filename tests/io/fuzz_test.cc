// Whatever a file holds, reading it ends in rows, rejects or a sheaf::Error; anything else fails these tests
// or the sanitizers under them. SHEAF_FUZZ_SECONDS makes them longer.
#include "tests/fuzz.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "io/base/yaml_reader.h"
#include "io/corpus/describe_corpus.h"
#include "io/files/job_file.h"
#include "tests/errors.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"
#include "tests/packed_text.h"

namespace sheaf {
namespace {

using nlohmann::json;

TEST(Fuzz, SchemaFiles) {
  TempFolder folder;
  const std::vector<std::string> seeds = {
      read_text("configs/schemas/catalog.yaml"),
      "attributes: {A: &a {type: text, description: 'it''s'}, B: {<<: *a, description: \"b\\n\"}}\n"
      "categories:\n  X: &x [A, B, {name: C, type: enum, options: [1, two, 'null']}]\n  ? Y\n  : *x\n"
      "  Z:\n  - name: D\n    description: |\n      several\n      lines\n",
      "attributes: {P: {type: object, attributes: [{name: w}]}}\ncategories:\n  A:\n  - {name: v, type: "
      "list, "
      "anchor: s, max_entries: 5, attributes: [{name: s}, P, {name: l, type: list, attributes: [{name: "
      "t}]}]}\n"};
  for (const std::string& seed : seeds)
    EXPECT_EQ(error_of([&] { read_schema(folder.write("s.yaml", seed)); }), "no error");
  const std::vector<std::string_view> words = {
      "- ",   ": ",   "&a ",     "*a",    "<<: ", "{",      "}",          "[",      "]",    "\n",
      "  ",   "? ",   "!!str ",  "---\n", "\"",   "'",      "|",          ">",      "#",    "name",
      "type", "enum", "options", "null",  "\t",   "anchor", "attributes", "object", "list", "max_entries"};
  int64_t refused = 0;
  const int64_t rounds = fuzz([&](std::mt19937_64& random) {
    const std::string path = folder.write("s.yaml", mutate(seeds[random() % seeds.size()], random, words));
    const std::string message = error_of([&] { read_schema(path); });
    refused += message != "no error";
    if (message != "no error") {
      EXPECT_TRUE(message.starts_with(path)) << message;
    }
  });
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, rounds);
}

const std::vector<std::string_view> kJsonSchemaWords = {"{",
                                                        "}",
                                                        "[",
                                                        "]",
                                                        ",",
                                                        "\"",
                                                        "\"type\":",
                                                        "\"string\"",
                                                        "\"$ref\":",
                                                        "\"anyOf\":",
                                                        "\"enum\":",
                                                        "null",
                                                        "\"items\":",
                                                        "\"$defs\":",
                                                        "\"const\":",
                                                        "\"pattern\":",
                                                        "\"object\"",
                                                        "\"array\"",
                                                        "\"format\":",
                                                        "\"date\"",
                                                        "#/$defs/",
                                                        "(",
                                                        ")*",
                                                        "|",
                                                        "\"$ref\": \"#\"",
                                                        "\"properties\":{",
                                                        "\"x-anchor\":",
                                                        "\"maxItems\":",
                                                        "#/properties/l/items",
                                                        "%7e",
                                                        "~1"};
const std::string kJsonSchema =
    R"-({"$defs": {"R": {"enum": ["light", "dark"], "type": "string"}}, "type": "object", "properties": {
      "a": {"$ref": "#/$defs/R"}, "b": {"anyOf": [{"$ref": "#/$defs/R"}, {"type": "null"}]}, "c": {"type":
      ["integer", "null"]}, "d": {"type": "string", "pattern": "^(a|b)[0-9]{2}$", "description": "d"}, "e":
      {"type": "string", "format": "date"}, "f": {"type": "array", "items": {"type": "string"}}, "g":
      {"const": "x"}, "h": {"allOf": [{"$ref": "#/$defs/R"}]}}})-";
const std::string kNestedJsonSchema =
    R"-({"$defs": {"P": {"properties": {"v": {"type": "number"}, "r": {"type": "string"}}, "type": "object"}}, "properties": {
      "o": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}, "l": {"type": "array", "maxItems": 5, "x-anchor": "s", "items":
      {"type": "object", "properties": {"s": {"type": "string"}, "p": {"$ref": "#/$defs/P"}}}}, "m": {"type": "array",
      "items": {"$ref": "#/properties/l/items"}}}})-";

TEST(Fuzz, JsonSchemas) {
  TempFolder folder;
  const std::string own = R"({"categories": {"Tea": [{"name": "Brand", "type": "text"}]}})";
  const FuzzCount count = fuzz_target("json_schema", {kJsonSchema, kNestedJsonSchema, own}, kJsonSchemaWords,
                                      [&](const auto& text) {
                                        const Schema schema = read_schema(folder.write("s.json", text));
                                        ASSERT_FALSE(schema.categories.empty());
                                        for (const Category& category : schema.categories)
                                          EXPECT_FALSE(category.attributes.empty());
                                      });
  EXPECT_GT(count.read, 0);
  EXPECT_GT(count.refused, 0);
}

TEST(Fuzz, Requests) {
  TempFolder folder;
  std::string schema = kJsonSchema;
  std::erase(schema, '\n');
  const std::string seed =
      R"({"custom_id": "r", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages":
      [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "u"}]}],
      "temperature": 0.5, "top_p": 0.9, "seed": -3, "stop": ["a", "b"], "max_tokens": 7, "n": 1)";
  std::string plain = seed + "}}";
  std::string object = seed +
                       R"(, "stop": null, "response_format": {"type": "json_schema", "json_schema": {"name":
      "n", "schema": )" +
                       schema + "}}}}";
  std::erase(plain, '\n');
  std::erase(object, '\n');
  int64_t records = 0, rejects = 0;
  fuzz([&](std::mt19937_64& random) {
    Job job;
    job.file = "job.yaml";
    job.task.kind = TaskKind::chat;
    job.input.format = "openai-batch";
    job.input.id = "custom_id";
    std::string line = mutate(random() % 2 ? plain : object, random, kJsonSchemaWords);
    std::erase(line, '\n');
    job.input.path = folder.write("b.jsonl", plain + "\n" + object + "\n" + line + "\n");
    const CorpusRecords rows = read_all(job, nullptr);
    EXPECT_GE(rows.records.size(), 2u) << (rows.rejects.empty() ? "" : rows.rejects[0].reason);
    EXPECT_LE(rows.records.size() + rows.rejects.size(), 3u);
    records += std::ssize(rows.records) - 2;
    rejects += std::ssize(rows.rejects);
  });
  EXPECT_GT(records, 0);
  EXPECT_GT(rejects, 0);
}

TEST(Fuzz, JsonLines) {
  TempFolder folder;
  const std::vector<std::string> seeds = {
      R"({"sku": "a-1", "category": "Coffee", "title": "Dark roast", "text": "Ünïcode \u00fc and a \ud83d\ude00 face", "x": {"y": [1, 2.5e3, null]}})",
      R"({"sku": 17, "category": "Tea", "title": null, "text": "green", "context": "c", "questions": ["a", {"id": 1, "question": "b", "options": ["c", "d"]}]})",
  };
  const std::vector<std::string_view> words = {"{",
                                               "}",
                                               "[",
                                               "]",
                                               ",",
                                               ":",
                                               "\"",
                                               "\\",
                                               "\\u",
                                               "\\ud800",
                                               "null",
                                               "true",
                                               "1e999",
                                               "-",
                                               "0.1",
                                               "\xff",
                                               "\xed\xa0\x80",
                                               "\"sku\":",
                                               "\"category\":",
                                               "\"questions\":",
                                               "\r",
                                               "\t"};
  fuzz([&](std::mt19937_64& random) {
    std::string text;
    std::vector<int64_t> expected;
    for (int64_t line = 1; line <= 20; ++line) {
      std::string row = mutate(seeds[random() % seeds.size()], random, words);
      std::erase(row, '\n');
      if (row.find_first_not_of(" \t\r") != std::string::npos) expected.push_back(line);
      text += row + "\n";
    }
    // The first line is whole, so that the mapped columns are found; every row is then a record or a reject,
    // in order.
    text = seeds[1] + "\n" + text;
    for (int64_t& line : expected) ++line;
    expected.insert(expected.begin(), 1);
    const std::string path = folder.write("c.jsonl", keep_input(text));
    EXPECT_EQ(read_all(extract_job(path), &kSchema).order, expected);
    EXPECT_EQ(read_all(ask_job(path), nullptr).order, expected);
    EXPECT_EQ(describe_corpus(path)["records"], expected.size());
  });
}

TEST(Fuzz, BatchLines) {
  TempFolder folder;
  const std::string seed =
      R"({"custom_id": "r-1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "ü"}]}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}], "max_tokens": 10, "temperature": 0, "n": 1, "stop": null}})";
  const std::vector<std::string_view> words = {"{",
                                               "}",
                                               "[",
                                               "]",
                                               ",",
                                               ":",
                                               "\"",
                                               "\\u",
                                               "null",
                                               "true",
                                               "1e999",
                                               "-1",
                                               "99999999999999999999",
                                               "0.5",
                                               "\"role\":",
                                               "\"content\":",
                                               "\"body\":",
                                               "\"messages\":",
                                               "\"n\": 2,",
                                               "\"user\"",
                                               "\xff"};
  Job job = ask_job("");
  job.task.kind = TaskKind::chat;
  job.input = {};
  job.input.format = "openai-batch";
  int64_t good = 0, bad = 0;
  fuzz([&](std::mt19937_64& random) {
    std::string text = seed + "\n";
    for (int i = 0; i < 20; ++i) {
      std::string row = mutate(seed, random, words);
      std::replace(row.begin(), row.end(), '\n', ' ');
      text += row + "\n";
    }
    job.input.path = folder.write("b.jsonl", text);
    const CorpusRecords rows = read_all(job, nullptr);
    for (const Record& record : rows.records) EXPECT_EQ(record.dialog.turns.size() % 2, 1u);
    good += static_cast<int64_t>(rows.records.size());
    bad += static_cast<int64_t>(rows.rejects.size());
  });
  EXPECT_GT(good, 20);
  EXPECT_GT(bad, 20);
}

TEST(Fuzz, ContextsById) {
  TempFolder folder;
  const std::string seed = R"({"id": 1, "about": "x", "context": "a text", "questions": ["a"]})";
  const std::vector<std::string_view> words = {
      "\"about\":", "\"context\":", "null", "\"x\"", "7", "{", "}", ",", "[", "]"};
  fuzz([&](std::mt19937_64& random) {
    std::string text = seed + "\n";
    for (int i = 0; i < 20; ++i) {
      std::string row = mutate(seed, random, words);
      std::replace(row.begin(), row.end(), '\n', ' ');
      text += row + "\n";
    }
    Job job = ask_job(folder.write("c.jsonl", text));
    job.input.context_id = "about";
    const std::vector<Record> records = read_all(job, nullptr).records;
    EXPECT_FALSE(records.empty()) << "the first row is whole";
    for (const Record& record : records) EXPECT_FALSE(record.document.empty());
  });
}

TEST(Fuzz, Documents) {
  TempFolder folder;
  const std::string seed =
      R"({"id": 1, "docs": ["ä", {"title": "t", "text": "b"}, {"text": "c"}], "s": [0.5, -1, 0], "r": [7, 0, -3], "questions": ["a", "b"]})";
  const std::vector<std::string_view> words = {
      "\"docs\":", "\"s\":", "\"text\":", "\"score\": 1,", "null", "\"x\"", "1e400", "-0.0", "2", "{", "}",
      ",",         "[",      "]"};
  size_t good = 0, bad = 0;
  fuzz([&](std::mt19937_64& random) {
    std::string text = seed + "\n";
    for (int i = 0; i < 20; ++i) {
      std::string row = mutate(seed, random, words);
      std::replace(row.begin(), row.end(), '\n', ' ');
      text += row + "\n";
    }
    Job job = ask_job(folder.write("d.jsonl", text));
    job.input.context.clear();
    job.input.documents = "docs";
    if (random() % 2) job.input.scores = "s", job.input.scores_are = ScoreKind::dense;
    if (random() % 2) job.input.rerank_scores = "r", job.input.rerank_scores_are = ScoreKind::logit;
    job.input.top_documents = static_cast<int32_t>(random() % 4);
    const CorpusRecords rows = read_all(job, nullptr);
    for (const Record& record : rows.records)
      for (const Question& question : record.questions) {
        EXPECT_EQ(question.relevance.size(), record.documents.size());
        EXPECT_FALSE(record.documents.empty());
        for (const double relevance : question.relevance) EXPECT_TRUE(relevance > 0 && relevance < 1);
      }
    good += rows.records.size();
    bad += rows.rejects.size();
  });
  EXPECT_GT(good, 20u);
  EXPECT_GT(bad, 20u);
}

TEST(Fuzz, CompressedLines) {
  TempFolder folder;
  std::string lines;
  for (int i = 0; i < 2000; ++i)
    lines += json{{"context", std::to_string(i * 7919)}, {"questions", {"q"}}}.dump() + "\n";
  const std::vector<std::string> kinds = {"gz", "zst"};
  std::map<std::string, std::string> seeds;
  for (const std::string& kind : kinds) seeds[kind] = test::pack(lines, kind) + test::pack(lines, kind);
  int64_t damaged = 0;
  fuzz([&](std::mt19937_64& random) {
    const std::string& kind = kinds[random() % 2];
    const Job job = ask_job(folder.write("c.jsonl." + kind, mutate(seeds[kind], random, {})));
    const CorpusRecords rows = read_all(job, nullptr);
    EXPECT_EQ(open_corpus(job, nullptr)->count_records(), rows.count);
    damaged += !rows.rejects.empty();
  });
  EXPECT_GT(damaged, 0);
}

/// Rows of a table that was damaged are still given at most once and in order.
void expect_ascending(const CorpusRecords& rows) {
  for (size_t i = 1; i < rows.order.size(); ++i) EXPECT_LT(rows.order[i - 1], rows.order[i]);
}

std::vector<SampleColumn> sample_columns() {
  std::vector<SampleColumn> columns = {
      {"sku", "int64", json::array()},      {"category", "dictionary", json::array()},
      {"title", "string", json::array()},   {"text", "large_string", json::array()},
      {"context", "binary", json::array()}, {"questions", "questions", json::array()}};
  for (int i = 0; i < 300; ++i) {
    columns[0].values.push_back(i);
    columns[1].values.push_back(i % 2 ? "Tea" : "Coffee");
    columns[2].values.push_back(i % 7 ? json(fmt::format("title {}", i)) : json(nullptr));
    columns[3].values.push_back(std::string(static_cast<size_t>(i % 40), 'y'));
    columns[4].values.push_back("context");
    columns[5].values.push_back(json::array({{{"id", i}, {"question", "q?"}, {"options", {"a", "b"}}}}));
  }
  return columns;
}

/// Flips bits of the seeds and cuts them; `ending` says which format they are.
void fuzz_tables(const std::vector<std::string>& seeds, const std::string& ending) {
  const TempFolder folder;
  int64_t whole = 0, refused = 0;
  fuzz([&](std::mt19937_64& random) {
    std::string bytes = seeds[random() % seeds.size()];
    switch (random() % 4) {
      case 0:
        bytes.resize(random() % bytes.size());
        break;
      case 1:  // the footer
        for (int i = 0; i < 3; ++i)
          bytes[bytes.size() - 9 - random() % 1500] ^= static_cast<char>(1 << (random() % 8));
        break;
      default:
        for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    const std::string path = folder.write("f" + ending, bytes);
    const std::string message = error_of([&] {
      expect_ascending(read_all(extract_job(path), &kSchema));
      expect_ascending(read_all(ask_job(path), nullptr));
      describe_corpus(path).dump();
    });
    ++(message == "no error" ? whole : refused);
  });
  EXPECT_GT(whole, 0);
  EXPECT_GT(refused, 0);
}

TEST(Fuzz, ParquetFiles) {
  const TempFolder folder;
  const std::vector<SampleColumn> columns = sample_columns();
  std::vector<std::string> seeds;
  for (const SampleLayout& layout :
       {SampleLayout{100, false, false, false}, SampleLayout{100, true, true, false},
        SampleLayout{150, false, true, true}}) {
    const std::string path = folder.path("seed.parquet");
    write_parquet(path, columns, layout);
    EXPECT_EQ(read_all(ask_job(path), nullptr).records.size(), 300u);
    seeds.push_back(read_text(path));
  }
  fuzz_tables(seeds, ".parquet");
}

TEST(Fuzz, ArrowFiles) {
  const TempFolder folder;
  std::vector<std::string> seeds;
  for (const int64_t rows_per_batch : {70, 1000}) {
    const std::string path = folder.path("seed.arrow");
    write_arrow(path, sample_columns(), rows_per_batch);
    EXPECT_EQ(read_all(ask_job(path), nullptr).records.size(), 300u);
    seeds.push_back(read_text(path));
  }
  fuzz_tables(seeds, ".arrow");
}

TEST(Fuzz, ArrowStreams) {
  const TempFolder folder;
  std::vector<std::string> seeds;
  for (const int64_t rows_per_batch : {70, 1000}) {
    const std::string path = folder.path("seed.arrows");
    write_arrow_stream(path, sample_columns(), rows_per_batch);
    EXPECT_EQ(read_all(with_stream(ask_job(""), path), nullptr).records.size(), 300u);
    seeds.push_back(read_text(path));
  }
  int64_t whole = 0, refused = 0;
  fuzz([&](std::mt19937_64& random) {
    const std::string path =
        folder.write("f.arrows", keep_input(mutate(seeds[random() % seeds.size()], random, {})));
    for (const bool asks : {false, true}) {
      const std::string message = error_of([&] {
        const Job job = with_stream(asks ? ask_job("") : extract_job(""), path);
        expect_ascending(read_all(job, asks ? nullptr : &kSchema));
      });
      ++(message == "no error" ? whole : refused);
    }
  });
  EXPECT_GT(whole, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace sheaf
