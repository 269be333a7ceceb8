// `sheaf review` through the program: what it reads, what the page holds, what it refuses.
#include <gtest/gtest.h>
#include <random>

#include "io/corpus/corpus.h"
#include "io/files/job_file.h"
#include "io/files/job_fingerprint.h"
#include "io/run_folder/merge_shards.h"
#include "io/run_folder/run_folder.h"
#include "io/run_folder/table_rows.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf;

/// Jobs whose rows the test writes itself, in the place of a model.
class ReviewCommand : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("schema.yaml",
                   "categories: {Tea: [{name: Brand, description: the maker}, {name: Weight, type: number}, "
                   "{name: Notes, type: list}], Rope: [{name: Color}, {name: Brand}]}\n");
    corpus_ = scratch_.write("corpus.jsonl",
                             R"({"sku": 1, "kind": "Tea", "title": "Oak tea 20 g", "text": "Mild & good"}
{"sku": 2, "kind": "Tea", "title": "", "text": null}
{"sku": 3, "kind": "Rope", "title": "Red rope", "text": ""}
{"sku": 4, "kind": "Rope", "title": "Elm's rope", "text": null}
)");
  }

  Job job(const std::string& more = "") const {
    const std::string path = scratch_.write(
        "job.yaml",
        "model: {path: nowhere.gguf}\ninput: {path: " + corpus_ +
            ", id: sku, category: kind, document: [title, text]}\ntask: {kind: extract, schema: " +
            scratch_.path("schema.yaml") + "}\noutput: {path: out" + more + "}\n");
    Job read = read_job(path, {}, false);
    read.model.path.clear();  // no part of a review
    return read;
  }

  /// The run of a job whose rows and rejects `write` writes.
  std::string make_run(const std::string& name, const Job& job, Shard shard, int64_t end,
                       const std::function<void(RunFolder&)>& write) const {
    RunFolderOptions options;
    options.path = scratch_.path(name);
    options.fingerprint = job_fingerprint(job, false, shard);
    options.sources = {job.input.path, job.task.schema};
    options.corpus_folder = common_folder(find_corpus_files(job.input.path, job.input.format).files);
    options.first_row = shard.first;
    if (const OutputFormat format = job.output.format; is_table(format)) {
      options.ending = rows_ending(format);
      options.writer = [format, columns = row_columns(job, read_schema(job.task.schema), false)](
                           OutputFile& target) { return write_table_rows(format, columns, target); };
    }
    RunFolder folder(real_files(), options);
    write(folder);
    folder.commit(end);
    folder.finish("{}\n");
    return options.path;
  }

  std::string make_run(const std::string& name, const Job& job, Shard shard = {}) const {
    const int64_t end = shard.count > 1 ? shard.end : 4;
    return make_run(name, job, shard, end,
                    [&](RunFolder& folder) { write_rows(folder, job, shard.first, end); });
  }

  static Reject rejected(const std::string& file, int64_t row, int64_t id) {
    Reject reject;
    reject.place.file = file;
    reject.place.row = row;
    reject.id = id;
    return reject;
  }

  static void write_rows(RunFolder& folder, const Job& job, int64_t first, int64_t end) {
    const auto answer = [](RowValue value, double logprob) {
      RowAnswer made{std::move(value)};
      made.logprob = logprob;
      return made;
    };
    for (int64_t record = first; record < end; ++record) {
      if (record == 0)
        folder.row({1, ExtractedValues{"Tea",
                                       {{"Brand", answer("Oak", -0.5)},
                                        {"Weight", answer(int64_t{20}, -0.25)},
                                        {"Notes", answer(std::vector<std::string>{"Mild", "fresh"}, -1)}}}});
      if (record == 1) folder.reject(rejected(job.input.path, 2, 2));
      if (record == 2)
        folder.row(
            {3, ExtractedValues{"Rope", {{"Color", answer("Red", -2)}, {"Brand", answer(nullptr, -3)}}}});
      if (record == 3)
        folder.row(
            {4, ExtractedValues{"Rope", {{"Color", answer(nullptr, -4)}, {"Brand", answer("Elm", -1)}}}});
    }
  }

  Ran review(const std::string& arguments) const { return run_sheaf(scratch_, "review " + arguments); }

  static json page(const std::string& path) {
    const std::string text = read_text(path), open = "id=\"data\">";
    const size_t begin = text.find(open) + open.size();
    return json::parse(text.substr(begin, text.find("</script>", begin) - begin), nullptr, false);
  }

  void expect_refused(const std::string& arguments, const std::string& part) const {
    const Ran ran = review(arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  }

  TempFolder scratch_;
  std::string corpus_;
};

TEST_F(ReviewCommand, ShowsValuesWithTheirDocuments) {
  const std::string run = make_run("out", job(", logprobs: true"));
  const Ran ran = review(run);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("7 values of 3 records, least sure first"), std::string::npos) << ran.out;
  const json data = page(run + "/review.html");
  ASSERT_EQ(data["items"].size(), 7u);
  EXPECT_EQ(data["leastSure"], false) << "the page has all values";
  ASSERT_EQ(review(run + " --count 6 -o " + scratch_.path("six.html")).exit_code, 0);
  EXPECT_EQ(page(scratch_.path("six.html"))["leastSure"], true);
  EXPECT_EQ(data["run"], "out");
  bool found = false;
  for (const json& item : data["items"]) {
    const json& record = data["records"][item["record"].get<size_t>()];
    if (record["id"] != "1" || item["attribute"] != "Notes") continue;
    found = true;
    EXPECT_EQ(record["columns"], json::parse(R"([["title", "Oak tea 20 g"], ["text", "Mild & good"]])"));
    EXPECT_EQ(item["value"], R"(["Mild","fresh"])");
    EXPECT_EQ(item["marks"], json::parse(R"([{"column": 1, "start": 0, "end": 4}])"));
    EXPECT_EQ(item["absent"], json::array({"fresh"}));
    EXPECT_NEAR(item["sure"].get<double>(), 0.3679, 1e-4);
  }
  EXPECT_TRUE(found);

  // The same page from tables, and of shards that were merged.
  for (const std::string format : {"parquet", "arrow"}) {
    ASSERT_EQ(review(make_run(format, job(", logprobs: true, format: " + format))).exit_code, 0);
    const json table = page(scratch_.path(format + "/review.html"));
    EXPECT_EQ(table["items"], data["items"]);
    EXPECT_EQ(table["records"], data["records"]);
  }
  const std::string a = make_run("a", job(", logprobs: true"), {0, 2, 0, 2}),
                    b = make_run("b", job(", logprobs: true"), {1, 2, 2, 4});
  merge_shards(real_files(), scratch_.path("merged"), {a, b});
  ASSERT_EQ(review(scratch_.path("merged")).exit_code, 0);
  EXPECT_EQ(page(scratch_.path("merged/review.html"))["items"], data["items"]);
  ASSERT_EQ(review(b).exit_code, 0) << "a shard begins in the midst of the corpus";
  EXPECT_EQ(page(b + "/review.html")["items"].size(), 4u);
}

TEST_F(ReviewCommand, OptionsSelectTheSample) {
  const std::string run = make_run("out", job(", logprobs: true")), out = scratch_.path("page.html");
  const auto names = [&](const std::string& options) {
    const Ran ran = review(run + " -o " + out + " " + options);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    std::vector<std::string> all;
    const json data = page(out);
    for (const json& item : data["items"])
      all.push_back(data["records"][item["record"].get<size_t>()]["id"].get<std::string>() + "/" +
                    item["attribute"].get<std::string>());
    return all;
  };
  const auto brands = names("--attributes Brand");
  EXPECT_EQ(std::set(brands.begin(), brands.end()), (std::set<std::string>{"1/Brand", "3/Brand", "4/Brand"}));
  EXPECT_EQ(names("--attributes Color,Weight").size(), 3u);
  EXPECT_EQ(names("--attributes Color --count 1"), (std::vector<std::string>{"4/Color"})) << "the least sure";
  EXPECT_EQ(names("--seed 5"), names("--seed 5"));
  EXPECT_NE(review(run + " --count 2")
                .err.find("shows only 2 of 5 attributes (counted per category); use --count 5"),
            std::string::npos);
}

TEST_F(ReviewCommand, FindsACorpusThatMoved) {
  const std::string run = make_run("out", job()), text = read_text(corpus_);
  const std::string moved = scratch_.write("moved.jsonl", text);
  std::filesystem::remove(corpus_);
  expect_refused(run, "name where it is now with --input");
  EXPECT_EQ(review(run + " --input " + moved).exit_code, 0);
  scratch_.write("moved.jsonl", text + "\n");
  expect_refused(run + " --input " + moved, "is not what");
  scratch_.write("corpus.jsonl", text + "{}\n");
  expect_refused(run, "changed since");
  scratch_.write("corpus.jsonl", text);

  const std::string schema = read_text(scratch_.path("schema.yaml"));
  scratch_.write("schema.yaml", schema + "# new\n");
  expect_refused(run, "the schema changed since");
  scratch_.write("old.yaml", schema);
  EXPECT_EQ(review(run + " --schema " + scratch_.path("old.yaml")).exit_code, 0);
  std::filesystem::remove(scratch_.path("schema.yaml"));
  expect_refused(run, "name where it is now with --schema");
}

TEST_F(ReviewCommand, TakesAFileInThePlaceOfStandardInput) {
  Job piped = job();
  piped.input.path = "-";
  const std::string text = read_text(corpus_);
  piped.input.standard_input = {"", static_cast<int64_t>(text.size()), sha256(text)};
  const std::string run = make_run("out", piped);
  expect_refused(run, "name a file with the same text with --input");
  const Ran ran = review(run + " --input " + corpus_);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(page(run + "/review.html")["items"].size(), 7u);
}

TEST_F(ReviewCommand, PassesOverRejectedRecordsOfTheSameId) {
  // A run refuses a record that is too long for its prompts; to who reads the corpus it is like any other.
  const std::string line = R"({"sku": 7, "kind": "Rope", "text": null, "title": ")";
  for (const char* folder : {"corpus", "moved"}) {
    std::filesystem::create_directory(scratch_.path(folder));
    for (const char* part : {"1", "2"})
      scratch_.write(std::string(folder) + "/" + part + ".jsonl", line + "rope " + part + "\"}\n");
  }
  corpus_ = scratch_.path("corpus");
  for (const int with_row : {1, 2}) {
    const std::string out = "out" + std::to_string(with_row);
    const std::string run = make_run(out, job(), {}, 2, [&](RunFolder& folder) {
      folder.row({7, ExtractedValues{"Rope", {{"Color", {"rope"}}, {"Brand", {nullptr}}}}});
      folder.reject(rejected(corpus_ + (with_row == 1 ? "/2.jsonl" : "/1.jsonl"), 1, 7));
    });
    for (const std::string& options : {std::string(), " --input " + scratch_.path("moved")}) {
      const Ran ran = review(run + options);
      ASSERT_EQ(ran.exit_code, 0) << ran.err;
      const json records = page(run + "/review.html")["records"];
      ASSERT_EQ(records.size(), 1u);
      EXPECT_EQ(records[0]["columns"][0][1], "rope " + std::to_string(with_row)) << options;
    }
  }
}

TEST_F(ReviewCommand, ShowFindsAValueInAList) {
  const std::string run = make_run("out", job());
  for (const auto& [where, rows] :
       {std::pair{"Notes=fresh", 1}, {"Notes=Mild", 1}, {"Notes=Mil", 0}, {"Weight=20", 1}}) {
    const Ran ran = run_sheaf(scratch_, "show " + run + " --json --where " + where);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(std::ranges::count(ran.out, '\n'), rows) << where << ran.out;
  }
}

TEST_F(ReviewCommand, OfRowsThatShareAnIdTheFirstIsShown) {
  corpus_ = scratch_.write("corpus.jsonl",
                           "{\"sku\": 7, \"kind\": \"Rope\", \"title\": \"rope 1\", \"text\": null}\n"
                           "{\"sku\": 7, \"kind\": \"Rope\", \"title\": \"rope 2\", \"text\": null}\n");
  const std::string run = make_run("out", job(), {}, 2, [&](RunFolder& folder) {
    for (int i = 0; i < 2; ++i)
      folder.row({7, ExtractedValues{"Rope", {{"Color", {"rope"}}, {"Brand", {nullptr}}}}});
  });
  const Ran ran = review(run);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.err.find("1 row with the id of an earlier row left out"), std::string::npos) << ran.err;
  const json records = page(run + "/review.html")["records"];
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["columns"][0][1], "rope 1");
}

/// Two runs that differ about records 1 and 4, and the verdicts of a person who likes `good` values.
class TwoRuns : public ReviewCommand {
 protected:
  void SetUp() override {
    ReviewCommand::SetUp();
    first_ = make_run("first", job());
    second_ = make_run("second", job(", rows_per_file: 7"), {}, 4, [&](RunFolder& folder) {
      folder.row({1, ExtractedValues{"Tea",
                                     {{"Brand", {"Elm"}},
                                      {"Weight", {int64_t{20}}},
                                      {"Notes", {std::vector<std::string>{"Mild", "fresh"}}}}}});
      folder.reject(rejected(corpus_, 2, 2));
      folder.row({3, ExtractedValues{"Rope", {{"Color", {"Red"}}, {"Brand", {nullptr}}}}});
      folder.row({4, ExtractedValues{"Rope", {{"Color", {"Blue"}}, {"Brand", {"Elm"}}}}});
    });
    out_ = scratch_.path("pair.html");
  }

  json pair_page(const std::string& options = "") const {
    const Ran ran = review(first_ + " " + second_ + " -o " + out_ + " " + options);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return page(out_);
  }

  /// The lines that the page saves where every item gets the verdict that `judge` gives it.
  std::string saved(const json& data, const std::function<std::string(const json& item)>& judge) const {
    std::string lines;
    for (const json& item : data["items"]) {
      const json& record = data["records"][item["record"].get<size_t>()];
      const json line = {{"pair", data["key"]},
                         {"seed", data["seed"]},
                         {"id", json::parse(record["id"].get<std::string>())},
                         {"verdict", judge(item)}};
      lines += line.dump() + "\n";
    }
    return scratch_.write("verdicts.jsonl", lines);
  }

  Ran unblind(const std::string& verdicts, const std::string& runs = "") const {
    return review((runs.empty() ? first_ + " " + second_ : runs) + " --verdicts " + verdicts + " --json");
  }

  std::string first_, second_, out_;
};

TEST_F(TwoRuns, ThePageHasWhatDiffersAndNoNames) {
  const json data = pair_page();
  const std::string text = read_text(out_);
  for (const char* name : {"first", "second/", "manifest"})
    EXPECT_EQ(text.substr(text.find("id=\"data\">")).find(name), std::string::npos) << name;
  ASSERT_EQ(data["items"].size(), 2u);
  for (const json& item : data["items"]) {
    const json& record = data["records"][item["record"].get<size_t>()];
    EXPECT_EQ(item["question"], -1);
    EXPECT_EQ(item["values"].size(), record["id"] == "1" ? 3u : 2u) << "equal values are shown too";
    EXPECT_NE(item["values"][0]["left"], item["values"][0]["right"]);
    EXPECT_EQ(item["values"][1]["left"], item["values"][1]["right"]);
  }
  EXPECT_EQ(pair_page("--seed 0"), data) << "the same page each time";
  const Ran swapped = review(second_ + " " + first_ + " -o " + out_);
  EXPECT_EQ(page(out_)["items"], data["items"]) << "whichever run is named first";
  EXPECT_NE(swapped.out.find("2 to judge, of 2 about which the runs differ; about 1 they say the same"),
            std::string::npos)
      << swapped.out;
  EXPECT_EQ(pair_page("--attributes Color")["items"].size(), 1u);
  EXPECT_EQ(pair_page("--count 1")["items"].size(), 1u);
}

TEST_F(TwoRuns, SidesChangeWithTheSeed) {
  std::set<std::string> lefts;
  for (int seed = 0; seed < 20; ++seed) {
    const json data = pair_page("--attributes Color --seed " + std::to_string(seed));
    lefts.insert(data["items"][0]["values"][0]["left"]["value"].get<std::string>());
  }
  EXPECT_EQ(lefts, (std::set<std::string>{"null", "\"Blue\""}));
}

TEST_F(TwoRuns, VerdictsAreUnblinded) {
  for (const int seed : {0, 1, 2, 3, 4}) {
    const json data = pair_page("--seed " + std::to_string(seed));
    const std::string verdicts = saved(data, [](const json& item) {
      const std::string left = item["values"][0]["left"]["value"];
      return left == "\"Oak\"" || left == "null" ? "left" : "right";  // what the first run says
    });
    const json counts = json::parse(unblind(verdicts).out);
    EXPECT_EQ(counts["wins"], 2) << seed;
    EXPECT_EQ(counts["losses"], 0);
    EXPECT_EQ(counts["p_value"], 0.5) << "two tosses of a coin";
    EXPECT_EQ(counts["first"], first_);
    EXPECT_EQ(json::parse(unblind(verdicts, second_ + " " + first_).out)["losses"], 2);
  }
  const json data = pair_page();
  bool once = false;
  const std::string ties = saved(data, [&](const json&) {
    once = !once;
    return once ? "both" : "neither";
  });
  const json counts = json::parse(unblind(ties).out);
  EXPECT_EQ(counts["ties"], 2);
  EXPECT_EQ(counts["both"], 1);
  EXPECT_EQ(counts["p_value"], 1.0);
  const Ran table = review(first_ + " " + second_ + " --verdicts " + ties);
  EXPECT_NE(table.out.find("0 wins, 2 ties and 0 losses of " + first_ + ": p = 1.0000 (sign test, exact)"),
            std::string::npos)
      << table.out;
}

TEST_F(TwoRuns, MistakesAreNamed) {
  const json data = pair_page();
  const std::string verdicts = saved(data, [](const json&) { return "left"; }), text = read_text(verdicts);
  const auto trouble = [&](const std::string& lines, const std::string& part) {
    const Ran ran = unblind(scratch_.write("changed.jsonl", lines));
    EXPECT_EQ(ran.exit_code, 2) << lines;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  };
  trouble("", "the file has no verdicts");
  trouble("{}\n", "changed.jsonl:1");
  trouble(text + text, "has a verdict at");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  trouble(with("\"left\"", "\"up\""), "must be left, right, both or neither, not \"up\"");
  trouble(with("\"pair\":\"", "\"pair\":\"x"), "about other runs than");
  trouble(with("\"id\":", "\"id\":9"), "has no row");
  trouble(with("\"seed\":\"0\"", "\"seed\":\"x\""), "the seed is not a whole number");
  expect_refused(first_ + " " + first_, "are the same run");
  expect_refused(first_ + " --verdicts " + verdicts, "OTHER");
  const std::string same = make_run("same", job(", rows_per_file: 9"));
  expect_refused(first_ + " " + same, "there is nothing to judge");
  std::mt19937_64 random(3);
  for (int i = 0; i < 40; ++i) {
    std::string changed = text;
    for (int n = 0; n < 4; ++n) changed[random() % changed.size()] = static_cast<char>(random());
    const int code = unblind(scratch_.write("changed.jsonl", changed)).exit_code;
    EXPECT_TRUE(code == 0 || code == 2) << changed;
  }
}

TEST_F(ReviewCommand, MistakesAreNamed) {
  const std::string run = make_run("out", job());
  expect_refused(scratch_.path("none"), "no such folder");
  std::filesystem::create_directory(scratch_.path("empty"));
  expect_refused(scratch_.path("empty"), "no finished run");
  expect_refused(run + " --attributes Brnd", "did you mean \"Brand\"");
  expect_refused(run + " --count 0", "--count");
  expect_refused(run + " -o page.txt", "must end in .html");
  expect_refused(run + " -o " + scratch_.path("no/such/page.html"), "page.html");
  expect_refused("", "RUN");
  Job ask = job();
  ask.task.kind = TaskKind::ask;
  expect_refused(make_run("ask", ask), "sheaf did not write this row");
  ask.task.kind = TaskKind::chat;
  expect_refused(make_run("chat", ask), "task.kind chat");

  const std::string rows = run + "/rows-00000.jsonl", text = read_text(rows);
  const auto write = [&](const std::string& changed) { std::ofstream(rows, std::ios::binary) << changed; };
  write(text + "\n");
  expect_refused(run, "does not have its");
  std::string changed = text;
  changed.replace(changed.find("\"id\":1"), 6, "\"id\":9");
  write(changed);
  expect_refused(run, "the corpus does not have the record \"9\"");
  changed = text;
  changed.replace(changed.find("Color"), 5, "Colox");
  write(changed);
  expect_refused(run, "which the schema lacks");
  changed[0] = '[';
  write(changed);
  expect_refused(run, "rows-00000.jsonl:1: sheaf did not write this row");
  write(text);
  EXPECT_EQ(review(run).exit_code, 0);

  const std::string rejects = run + "/rejects.jsonl", rejected = read_text(rejects);
  std::ofstream(rejects, std::ios::binary) << rejected << "\n";
  expect_refused(run, "rejects.jsonl: the file is missing or does not have its");
  changed = rejected;
  changed.replace(changed.find("corpus.jsonl"), 6, "korpus");
  std::ofstream(rejects, std::ios::binary) << changed;
  expect_refused(run, "rejects.jsonl:1: the run's corpus has no record at the place");
  std::ofstream(rejects, std::ios::binary) << rejected;

  auto manifest = nlohmann::ordered_json::parse(read_text(run + "/manifest.json"));
  manifest.erase("sources");  // as earlier versions wrote it
  std::ofstream(run + "/manifest.json") << manifest.dump();
  expect_refused(run, "does not say where its schema is");
  expect_refused(run + " --schema " + scratch_.path("schema.yaml"), "does not say where its corpus is");
  EXPECT_EQ(review(run + " --schema " + scratch_.path("schema.yaml") + " --input " + corpus_).exit_code, 0);
}

}  // namespace
}  // namespace sheaf
