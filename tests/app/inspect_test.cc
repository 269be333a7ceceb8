#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/app/program.h"

namespace {

using sheaf::test::Ran;

/// `out`: standard output and standard error.
Ran inspect(const std::string& arguments) {
  return sheaf::test::run_sheaf(sheaf::TempFolder(), "inspect " + arguments + " 2>&1");
}

TEST(Inspect, DescribesAModelAsJson) {
  const Ran result = inspect("--json tests/model/goldens/phi3");
  ASSERT_EQ(result.exit_code, 0) << result.out;
  const auto model = nlohmann::json::parse(result.out)["model"];
  EXPECT_EQ(model["family"], "phi3");
  EXPECT_EQ(model["layers"], 2);
  EXPECT_TRUE(model["windows"].empty());
  EXPECT_EQ(model["parameters"], 18080);
  EXPECT_EQ(model["tensor_types"][0]["type"], "BF16");
  EXPECT_EQ(model["tensor_types"][0]["tensors"], 15) << "a fused tensor counts once";
  EXPECT_EQ(model["tensor_types"][0]["bytes"], 2 * 18080);
  EXPECT_EQ(model["kv_bytes_per_token"], 4 * 2 * 2 * 2 * 8);
}

TEST(Inspect, DescribesAModelAsText) {
  const Ran result = inspect("tests/model/goldens/llama_quantized_gguf/model.gguf");
  ASSERT_EQ(result.exit_code, 0) << result.out;
  EXPECT_NE(result.out.find("llama: 2 layers"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("Q4_0"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("context     256 tokens"), std::string::npos) << result.out;
}

TEST(Inspect, DescribesACorpus) {
  const Ran result = inspect("--json datasets/catalog/catalog.parquet");
  ASSERT_EQ(result.exit_code, 0) << result.out;
  const auto corpus = nlohmann::json::parse(result.out)["corpus"];
  EXPECT_GE(corpus["records"], 200);
  EXPECT_EQ(corpus["columns"][0]["name"], "sku");
}

TEST(Inspect, ShowsWindowsLongContextsAndWhatIsLeftOut) {
  const Ran seeing = inspect("tests/model/goldens/gemma3_vision");
  EXPECT_NE(seeing.out.find("256 tokens; 5 of 6 layers see the last 6; keys"), std::string::npos)
      << seeing.out;
  EXPECT_NE(seeing.out.find("only the text model is used"), std::string::npos) << seeing.out;
  const Ran longer = inspect("tests/model/goldens/phi3_longrope");
  EXPECT_NE(longer.out.find("64 tokens (256 with model.context)"), std::string::npos) << longer.out;
}

/// The job that `inspect --write` makes of a corpus runs as it is written.
void expect_runs(const std::string& corpus, const std::string& kind, bool schema) {
  const sheaf::TempFolder scratch;
  const std::string job = scratch.path("job.yaml"), model = " --model " SHEAF_TINY_MODEL;
  const Ran written = inspect(corpus + model + " --write " + job);
  ASSERT_EQ(written.exit_code, 0) << written.out;
  EXPECT_NE(written.out.find("wrote " + job), std::string::npos) << written.out;
  EXPECT_EQ(std::filesystem::exists(scratch.path("schema.yaml")), schema);
  EXPECT_NE(sheaf::read_text(job).find("kind: " + kind), std::string::npos);
  const Ran ran = sheaf::test::run_sheaf(scratch, "run " + job + " --limit 3 --set engine.threads=1");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out.find("3 rows"), 0u) << ran.out;
  const Ran again = inspect(corpus + model + " --write " + job);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.out.find("exists; name another job file, or remove it"), std::string::npos) << again.out;
}

TEST(Inspect, TheProposedJobRunsAsItIsWritten) {
  expect_runs("datasets/catalog/catalog.parquet", "extract", true);
  expect_runs("datasets/passages/passages.jsonl", "ask", false);
  const Ran model = inspect("tests/model/goldens/phi3 --write none.yaml");
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_NE(model.out.find("name a corpus"), std::string::npos) << model.out;
}

TEST(Inspect, AListOfRecordsIsNotTakenForATokenizer) {
  const sheaf::TempFolder scratch;
  const Ran list = inspect(scratch.write("list.json", "[{\"id\": 1}, {\"id\": 2}]\n"));
  EXPECT_EQ(list.exit_code, 2);
  EXPECT_NE(list.out.find("one JSON array"), std::string::npos) << list.out;
  const Ran lines = inspect(scratch.write("lines.json", "{\"id\": 1}\n{\"id\": 2}\nbad\n"));
  EXPECT_EQ(lines.exit_code, 0) << lines.out;
  EXPECT_NE(lines.out.find("3 records"), std::string::npos) << lines.out;
  EXPECT_NE(lines.out.find("1 record would be rejected"), std::string::npos) << lines.out;
  EXPECT_NE(lines.out.find("  format: jsonl\n"), std::string::npos) << lines.out;
}

TEST(Inspect, AMissingPathIsAnInputError) {
  for (const char* path :
       {"none.gguf", "none.safetensors", "none.jsonl", "tests/model/goldens/dtypes.json"}) {
    const Ran result = inspect(path);
    EXPECT_EQ(result.exit_code, 2) << path << ": " << result.out;
    EXPECT_NE(result.out.find(path), std::string::npos) << result.out;
  }
}

TEST(Inspect, DescribesAPublicDatasetAndProposesItsJob) {
  const sheaf::TempFolder scratch;
  const std::string squad =
      scratch.write("dev.json", R"({"version": "v2.0", "data": [{"title": "Mills", "paragraphs": [
        {"context": "The mill of Arn was built in 1802.", "qas": [
          {"id": "q1", "question": "When was it built?", "answers": [{"text": "1802", "answer_start": 29}]},
          {"id": "q2", "question": "Who owns it?", "is_impossible": true, "answers": []}]}]}]})");
  const Ran result = inspect(squad + " --json --model " SHEAF_TINY_MODEL);
  ASSERT_EQ(result.exit_code, 0) << result.out;
  const auto dataset = nlohmann::json::parse(result.out)["dataset"];
  EXPECT_EQ(dataset["format"], "squad");
  EXPECT_EQ(dataset["contexts"], 1);
  EXPECT_EQ(dataset["questions"], 2);
  EXPECT_EQ(dataset["questions_per_context"], 2.0);
  EXPECT_EQ(dataset["unanswerable"], 1);
  EXPECT_EQ(dataset["tokens"]["answer"], 4.0) << "1802 and null, a token a byte";
  EXPECT_EQ(dataset["tokens"]["context"], 34.0);
  const std::string job = scratch.path("job.yaml");
  ASSERT_EQ(inspect(squad + " --model " SHEAF_TINY_MODEL " --write " + job).exit_code, 0);
  const Ran ran = sheaf::test::run_sheaf(scratch, "run " + job + " --set engine.threads=1");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out.find("1 row"), 0u) << ran.out;
  const Ran text = inspect(squad);
  EXPECT_NE(text.out.find("squad: 1 context, 2 questions, 2.00 per context; 1 without an answer"),
            std::string::npos)
      << text.out;
  // A file of JSON that is no dataset is still taken for a tokenizer.
  EXPECT_NE(inspect(scratch.write("other.json", "{\"a\": 1}")).exit_code, 0);
}

}  // namespace
