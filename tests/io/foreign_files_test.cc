#include "io/base/foreign_files.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "tests/fuzz.h"

namespace sheaf {
namespace {

using namespace std::string_literals;

/// Runs the command of an advice in the shell and gives back what it wrote into `target`.
std::string converted(const std::string& advice, const std::string& target) {
  constexpr std::string_view kBegin = "convert it: ";
  const size_t at = advice.find(kBegin);
  EXPECT_NE(at, std::string::npos) << advice;
  if (at == std::string::npos) return {};
  const std::string command = advice.substr(at + kBegin.size());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return read_text(target);
}

TEST(ForeignFiles, AdvisedCommandsConvertThem) {
  const TempFolder folder;
  const std::string array = R"([{"id": "2", "name": "Rye"}])";
  EXPECT_EQ(converted(convert_advice(folder.write("it's.json", array)), folder.path("it's.jsonl")),
            "{\"id\": \"2\", \"name\": \"Rye\"}\n");
  EXPECT_EQ(converted(describe_foreign(folder.write("a.jsonl", array), array), folder.path("a.new.jsonl")),
            "{\"id\": \"2\", \"name\": \"Rye\"}\n");
  const std::string spread = "{\n  \"id\": {\n    \"a\": 1\n  }\n}\n{\n  \"id\": 2\n}\n";
  EXPECT_EQ(converted(describe_foreign(folder.write("p.jsonl", spread), spread), folder.path("p.new.jsonl")),
            "{\"id\": {\"a\": 1}}\n{\"id\": 2}\n");
  const std::string wide = "\xff\xfe{\0}\0\n\0"s;
  EXPECT_EQ(converted(describe_foreign(folder.write("w.jsonl", wide), wide), folder.path("w.new.jsonl")),
            "{}\n");
  EXPECT_EQ(
      converted(convert_text(folder.write("l.csv", "a\n\xf6\n"), "WINDOWS-1252"), folder.path("l.new.csv")),
      "a\nö\n");
  EXPECT_EQ(converted(convert_line_ends(folder.write("m.csv", "a\rb\r")), folder.path("m.new.csv")),
            "a\nb\n");
}

TEST(ForeignFiles, AreRecognizedByTheirFirstBytes) {
  const auto begins = [](std::string_view first) { return describe_foreign("x.jsonl", first).substr(0, 22); };
  EXPECT_EQ(begins("\xfe\xff\0{"s), "the file is UTF-16, no");
  EXPECT_EQ(begins("{\0\"\0"s), "the file is UTF-16, no");
  EXPECT_EQ(begins(" \n[{}]"), "the file is one JSON a");
  EXPECT_EQ(begins("PAR1\x15"), "the file is Parquet; s");
  EXPECT_EQ(begins("id,text\n"), "the file looks like CS");
  for (const char* known : {"", "{\"a\": 1, ", "nonsense\n", "\xEF\xBB\xBF{\"a\": 1,"})
    EXPECT_EQ(begins(known), "");
}

TEST(ForeignFiles, DocumentsAndPickledWeightsGetACommandThatMakesThemReadable) {
  EXPECT_EQ(
      convert_advice("my docs/a.pdf"),
      "extract the text of such files first, with pdftotext (poppler-utils): for f in 'my docs'/*.pdf; do "
      "pdftotext \"$f\" - | python3 -c \"import json, sys; print(json.dumps({'id': sys.argv[1], 'text': "
      "sys.stdin.read()}))\" \"$f\"; done > documents.jsonl");
  EXPECT_NE(convert_advice("a.docx").find("pandoc -t plain"), std::string::npos);
  EXPECT_NE(convert_advice("m/pytorch_model.bin")
                .find("sys.argv[2]) for each in (t.AutoModelForCausalLM, "
                      "t.AutoTokenizer)]\" m m-safetensors; then name m-safetensors"),
            std::string::npos)
      << convert_advice("m/pytorch_model.bin");
}

TEST(ForeignFiles, OtherNamesGetNoAdvice) {
  for (const char* name : {"a.txt", "a", "a.jsonl", "a.csv", ""}) EXPECT_EQ(convert_advice(name), "");
  for (const char* name :
       {"model", "/models/Qwen3", "./a/b", "../a/b", "a/b/c", "models/x.gguf", "a/b c", "a/"})
    EXPECT_EQ(download_advice(name, Hosted::model), "") << name;
  EXPECT_EQ(download_advice("data/items.parquet", Hosted::dataset), "");
  for (const char* name : {"smollm2.gguf", "../build/models/smollm2.gguf"}) {
    EXPECT_EQ(download_advice(name, Hosted::model), "`sheaf get-model` fetches the default model");
    EXPECT_EQ(download_advice(name, Hosted::dataset), "");
  }
  EXPECT_EQ(describe_missing("/no/such"), "no such file or folder: /no/such");
  EXPECT_NE(describe_missing("gs://a/b").find("gcloud storage cp gs://a/b ."), std::string::npos);
  EXPECT_NE(describe_missing("https://huggingface.co/Qwen/Qwen3-1.7B/tree/main")
                .find(": hf download Qwen/Qwen3-1.7B --local-dir Qwen3-1.7B"),
            std::string::npos);
  EXPECT_NE(describe_missing("hf://datasets/a/b").find(": hf download a/b --repo-type dataset --local-dir b"),
            std::string::npos);
  EXPECT_NE(describe_foreign("x.jsonl.gz", "[{}]").find("zcat x.jsonl.gz | python3 "), std::string::npos);
  EXPECT_NE(describe_missing("s3://a/b;rm x").find("aws s3 cp 's3://a/b;rm x' ."), std::string::npos);
  EXPECT_EQ(
      describe_missing("ftp://a/b"),
      "ftp://a/b: sheaf cannot use this URI here (only corpora and runs may be s3://, gs://, az://, abfs://, "
      "hdfs:// or file://); copy it to this machine first");
  EXPECT_EQ(describe_missing("https://me:word@a/b?X-Amz-Signature=1").find("word"), std::string::npos);
  EXPECT_NE(describe_missing("https://me:word@a/b?X-Amz-Signature=1").find("curl -LO https://a/b"),
            std::string::npos);
}

TEST(ForeignFiles, AnyNameAndBytesGetASentenceOrNone) {
  const std::vector<std::string_view> words = {"[", "{",    "\xff\xfe", "\xEF\xBB\xBF", ",", "\t",
                                               "'", "PAR1", "\n"};
  int64_t said = 0, silent = 0;
  const auto expect_sentence = [&](const std::string& text, std::string_view part) {
    EXPECT_TRUE(text.empty() || text.find(part) != std::string::npos) << text;
    ++(text.empty() ? silent : said);
  };
  fuzz([&](std::mt19937_64& random) {
    const std::string name = mutate("a'b.json", random, words);
    expect_sentence(describe_foreign(name, mutate("id,text\n1,Box\n", random, words)), "the file ");
    expect_sentence(convert_advice(name), "convert it: ");
    expect_sentence(download_advice(mutate("Qwen/Qwen3", random, words), Hosted::dataset), "hf download ");
    expect_sentence(describe_no_parquet("a.parquet", mutate("{\"a\": 1}\n", random, words)), "the file ");
  });
  EXPECT_GT(said, 0);
  EXPECT_GT(silent, 0);
}

}  // namespace
}  // namespace sheaf
