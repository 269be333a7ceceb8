// Whatever a job file holds, reading it gives a job or a sheaf::Error that names the file.
#include <gtest/gtest.h>

#include "app/job_file.h"
#include "tests/io/fuzz.h"

namespace sheaf {
namespace {

TEST(Fuzz, JobFiles) {
  TempFolder folder;
  const std::string corpus = folder.write("c.jsonl", "{}\n"), schema = "configs/schemas/catalog.yaml";
  const std::string model = "model: {path: " + schema + "}\n",
                    output = "output: {path: out, format: parquet}\n";
  const std::vector<std::string> seeds = {
      model + "input:\n  path: " + corpus +
          "\n  id: sku\n  category: category\n  document: [title, description]\n"
          "task: {kind: extract, schema: " +
          schema +
          "}\nmethod: {name: hpd, values: positional, documents: 6, temperature: 0.5}\n"
          "engine: {device: cpu, threads: 2, rows_per_step: auto, kv_memory_gb: 1.5, window: 10}\n"
          "cost: {usd_per_hour: 2, devices: 1}\n" +
          output,
      model +
          "input: {path: '-', context: c, context_id: i, question: q, options: o, limit: 3}\n"
          "task: {kind: ask, instruction: \"Say\\n\"}\nmethod: {name: ippd}\n" +
          output,
      model + "input: {path: " + corpus +
          ", format: openai-batch}\ntask: {kind: chat}\nmethod: {name: prefix}\n" + output};
  for (const std::string& seed : seeds)
    EXPECT_EQ(error_of([&] { read_job(folder.write("j.yaml", seed), {}); }), "no error");
  const std::vector<std::string_view> words = {
      ": ",   "- ",  "{",       "}",      "[",      "]",      "\n",     "  ",
      "&a ",  "*a",  "<<: ",    "null",   "true",   "-1",     "1e999",  "99999999999999999999",
      "'",    "\"",  "|",       "#",      "!!str ", "kind: ", "path: ", "format: ",
      "chat", "ask", "extract", "name: ", "input: "};
  int64_t refused = 0;
  const int64_t rounds = fuzz([&](std::mt19937_64& random) {
    const std::string path = folder.write("j.yaml", mutate(seeds[random() % seeds.size()], random, words));
    const std::string message = error_of([&] { read_job(path, {}); });
    refused += message != "no error";
    if (message != "no error") {
      EXPECT_TRUE(message.starts_with(path)) << message;
    }
  });
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, rounds);
}

}  // namespace
}  // namespace sheaf
