// Runs from and to URIs, here of this machine's own files; make store-test has real servers.
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using test::Ran;
using test::run_sheaf;

class ObjectStoreRun : public testing::Test {
 protected:
  void SetUp() override {
    for (int file = 0; file < 3; ++file) {
      std::string lines;
      for (int i = 0; i < 8; ++i)
        lines += "{\"sku\": \"" + std::to_string(file * 8 + i) + "\", \"title\": \"Oak tea\"}\n";
      fs::create_directories(scratch_.path("shop/in"));
      scratch_.write("shop/in/part-" + std::to_string(file) + ".jsonl", lines);
    }
    scratch_.write("schema.yaml", "categories: {Tea: [{name: Brand}, {name: Size}]}\n");
    job_ =
        scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                       "}\ninput: {path: 'file://" + scratch_.path("shop/in/part-*.jsonl") +
                                       "', id: sku, document: title}\n"
                                       "task: {kind: extract, schema: schema.yaml}\n"
                                       "method: {name: hpd, max_value_tokens: 2}\n"
                                       "engine: {device: cpu, window: 4}\noutput: {path: 'file://" +
                                       scratch_.path("shop/out") + "', work: work, rows_per_file: 8}\n");
  }

  Ran sheaf(const std::string& command, int code = 0) const {
    Ran ran = run_sheaf(scratch_, command);
    EXPECT_EQ(ran.exit_code, code) << command << "\n" << ran.err;
    return ran;
  }

  std::vector<std::string> published() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(scratch_.path("shop/out")))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  const TempFolder scratch_;
  std::string job_;
};

TEST_F(ObjectStoreRun, IsPublishedAsAWhole) {
  const Ran ran = sheaf("run " + job_);
  EXPECT_NE(ran.out.find("rows    file://" + scratch_.path("shop/out") + "/rows-*.jsonl"), std::string::npos)
      << ran.out;
  EXPECT_EQ(published(),
            (std::vector<std::string>{"_SUCCESS", "answers.json", "answers.log", "answers.table",
                                      "manifest.json", "rejects.jsonl", "report.html", "report.json",
                                      "rows-00000.jsonl", "rows-00001.jsonl", "rows-00002.jsonl"}));
  sheaf("run " + job_ + " --quiet --set input.path=" + scratch_.path("shop/in") +
        " --set output='{path: " + scratch_.path("local") + ", rows_per_file: 8}'");
  for (const char* name : {"rows-00000.jsonl", "rows-00001.jsonl", "rows-00002.jsonl", "rejects.jsonl"})
    EXPECT_EQ(read_text(scratch_.path(std::string("shop/out/") + name)),
              read_text(scratch_.path(std::string("local/") + name)));
  const Ran again = sheaf("run " + job_);
  EXPECT_NE(again.err.find("has this run already"), std::string::npos) << again.err;
}

TEST_F(ObjectStoreRun, ResumesAnInterruptedPublication) {
  sheaf("run " + job_ + " --quiet");
  const std::string whole = read_text(scratch_.path("shop/out/rows-00001.jsonl"));
  for (const char* name : {"_SUCCESS", "manifest.json", "rows-00001.jsonl"})
    fs::remove(scratch_.path(std::string("shop/out/") + name));
  sheaf("run " + job_ + " --quiet");
  EXPECT_EQ(read_text(scratch_.path("shop/out/rows-00001.jsonl")), whole);
  EXPECT_TRUE(fs::exists(scratch_.path("shop/out/_SUCCESS")));
}

TEST_F(ObjectStoreRun, ReplacesAnOlderRunOnlyOnRequest) {
  sheaf("run " + job_ + " --quiet");
  const std::string other =
      " --set output.work=" + scratch_.path("other") + " --set output.rows_per_file=100";
  EXPECT_NE(
      sheaf("run " + job_ + " --quiet" + other, 2).err.find("another run is published there; add --restart"),
      std::string::npos);
  sheaf("run " + job_ + " --quiet --restart" + other);
  const auto names = published();
  EXPECT_EQ(std::ranges::count_if(names, [](const auto& name) { return name.starts_with("rows-"); }), 1);
}

TEST_F(ObjectStoreRun, EveryCommandThatReadsACorpusTakesUris) {
  const std::string corpus = "file://" + scratch_.path("shop/in");
  EXPECT_NE(sheaf("inspect " + corpus).out.find("24 records in 3 jsonl files"), std::string::npos);
  EXPECT_NE(sheaf("plan " + job_).out.find("24 records"), std::string::npos);
  EXPECT_NE(
      sheaf("run " + job_ + " --set input.path=" + corpus + "/nothing", 2).err.find("/nothing: no such file"),
      std::string::npos);
  EXPECT_NE(sheaf("run " + job_ + " --set output.path=" + corpus + "/out --set input.path=" + corpus, 2)
                .err.find("is inside the corpus"),
            std::string::npos);
  EXPECT_NE(sheaf("run " + job_ + " --set output.path=" + corpus +
                      "/out --set input.path=" + scratch_.path("shop/in"),
                  2)
                .err.find("is inside"),
            std::string::npos)
      << "also where the corpus is named by its path";
  const std::string local = " --set output.path=" + scratch_.path("x");
  EXPECT_NE(
      sheaf("run " + job_ + local, 2).err.find("output.work works only with an output.path that is a URI"),
      std::string::npos);
}

}  // namespace
}  // namespace sheaf
