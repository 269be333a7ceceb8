// Mistakes at the terminal: the message names the thing and the way out.
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using test::Ran;
using test::run_sheaf;

struct Mistake {
  std::string arguments, said;
};

TEST(Mistakes, AreNamedWithAFix) {
  const TempFolder scratch;
  const std::string model = test::make_tiny_model(scratch);
  scratch.write("corpus.jsonl", "{\"c\": \"Box\", \"q\": \"What?\"}\n");
  const std::string job = scratch.write(
      "job.yaml", "model: {path: " + model + "}\ninput: {path: " + scratch.path("corpus.jsonl") +
                      ", context: c, question: q}\ntask: {kind: ask}\nmethod: {name: ippd}\n"
                      "engine: {device: cpu}\noutput: {path: " +
                      scratch.path("out") + "}\n");
  const std::string run = "run " + job + " --quiet ";
  scratch.write("cut.gguf", "GGUF\3");
  const std::string line = "{\"c\": \"Box\", \"q\": \"What?\"}\n";
  std::filesystem::create_directory(scratch.path("empty"));
  const std::vector<Mistake> mistakes = {
      {"", "give a command: run, "},
      {"rum " + job, "unknown command \"rum\"; did you mean \"run\"?"},
      {"run", "JOB is required; see `sheaf run --help`"},
      {run + "--limit 3 --limit 4", "--limit is given twice; give it once; see `sheaf run --help`"},
      {run + "--require-reuse ''", "--require-reuse must not be empty"},
      {run + "--reuse lates:out/x", "lates:out/x does not exist; did you mean latest:out/x?"},
      {run + "--set method.name=ipd", "method.name cannot be \"ipd\"; did you mean \"ippd\"?"},
      {run + "--lmit 3", "unknown option --lmit; did you mean \"--limit\"?"},
      {"plan " + job + " --dump -1", "--dump must be a whole number of at least 0; got -1"},
      {"run " + scratch.path("no.yaml"), "no.yaml: no such file; name a job file"},
      {"run " + scratch.path("."), "this is a folder; name a job file in it, such as "},
      {"run " + scratch.write("cut.yaml", "input: [1"), "cut.yaml:1: this is not valid YAML: "},
      {"eval " + scratch.path("no.yaml"), "no.yaml: no such file; name an evaluation file"},
      {"bench " + scratch.path("no.jsonl") + " --device cpu", "no.jsonl: no such file\n"},
      {"inspect " + job,
       "the name ends in none of .jsonl, .csv, .tsv, .parquet and .arrow; name a file that does"},
      {run + "--set input.path=" + scratch.write("items.csv", "id,text\n1,Box\n"),
       "input.context: " + scratch.path("items.csv") + " has no column \"c\"; use one of id, text"},
      {run + "--set input.path=" + scratch.write("table.jsonl", "c,q\nBox,What?\n"),
       "table.jsonl: the file looks like CSV, not JSON lines; set input.format: csv"},
      {run + "--set input.path=" + scratch.write("list.jsonl", "[{\"c\": \"Box\", \"q\": \"What?\"}]"),
       "list.jsonl: the file is one JSON array, not an object on each line; convert it: python3 -c "},
      {run + "--set input.path=" + scratch.write("lines.parquet", line),
       "lines.parquet: the file has JSON lines, not Parquet; rename it: mv "},
      {"inspect " + scratch.path("lines.parquet"), "the file has JSON lines, not Parquet; rename it: mv "},
      {run + "--set input.path=" +
           scratch.write("pretty.jsonl", "{\n  \"c\": \"Box\",\n  \"q\": \"Why?\"\n}\n"),
       "pretty.jsonl: the file has objects over several lines, not one on each line; convert it: python3 "
       "-c "},
      {"inspect " + scratch.path("pretty.jsonl"), "the file has objects over several lines"},
      {run + "--set input.path=acme/boxes",
       "if this is the name of a dataset on Hugging Face, download it with `hf download acme/boxes "
       "--repo-type "
       "dataset --local-dir data/boxes` and name its files"},
      {run + "--set model.adapter=acme/lora",
       "if this is the name of an adapter on Hugging Face, download it with `hf download acme/lora "
       "--local-dir "
       "models/lora` and name that folder"},
      {"run configs/needle.yaml --set input.path=" + scratch.path("needle.parquet"),
       "make it from a book as plain text (gutenberg.org/ebooks/2600 is War and Peace) with `sheaf convert "
       "needle BOOK.txt "},
      {run + "--set 'input.path=*/none.jsonl'", "input.path: */none.jsonl: no file matches"},
      {"run " + scratch.write("star.yaml", "input: {path: *.jsonl}\n"),
       "star.yaml:1: a value that begins with * needs quotes"},
      {run +
           "--set input.context=null --set input.question=null --set task.kind=chat --set method.name=prefix "
           "--set input.format=openai-batch",
       "corpus.jsonl is not a batch file: its lines have no \"custom_id\"; task.kind chat wants a request on "
       "each line, such as {\"custom_id\": \"1\", \"body\": {\"messages\": "},
      {"run configs/schemas/catalog.yaml",
       "this is a schema, not a job; set task.schema in a job file to it"},
      {"run " + model, "this is the folder of a model, not a job file; set model.path in a job file to it"},
      {"run " + model + "/config.json", "this is a file of a model, not a job; set model.path"},
      {"run " + scratch.path("cut.gguf"), "cut.gguf: this is a model, not a job file; set model.path"},
      {"run configs/adapters/smollm2-extract", "this is the folder of an adapter, not a job file"},
      {"plan " + scratch.path("corpus.jsonl"),
       "corpus.jsonl: this is a corpus, not a job file; set input.path"},
      {"run " + scratch.path("items.csv"), "items.csv: this is a corpus, not a job file; set input.path"},
      {"run " + scratch.path("empty"), "empty: this is a folder; name a job file\n"},
      {"run configs/hardware.yaml",
       "this is a list of machines, not a job; use `sheaf estimate JOB --hardware-file"},
      {"run configs/chat/alpaca.yaml", "this is a chat template, not a job; set model.chat"},
      {run + "--set input.format=squad --set input.context=null --set input.question=null --set "
             "input.path=dev.json",
       "input.path: no such file or folder: dev.json; get dev-v2.0.json from "
       "rajpurkar.github.io/SQuAD-explorer "
       "(docs/datasets.md)"},
      {"run configs/eval/squad-methods.yaml", "use `sheaf eval configs/eval/squad-methods.yaml`"},
      {"eval " + job, "job.yaml: this is a job, not an evaluation; use `sheaf run "},
      {"run " + scratch.write("tab.yaml", "input:\n\tpath: x\n"),
       "tab.yaml:2: a tab indents this line; YAML allows only spaces there"},
      {"inspect datasets", "have different formats; name one file\n"},
      {"convert squad datasets/catalog/catalog.jsonl " + scratch.path("squad.jsonl"),
       "catalog.jsonl: this file is JSON lines, but one JSON value is needed"},
      {run + "--set output.path=", "--set output.path=: the key \"output.path\" is empty; give it a value"},
      {run + "--set output.path=/proc/x", "/proc/x: the folder cannot be created here; choose another path"},
      {run + "--device cda",
       "sheaf: --device: unknown device \"cda\"; use auto, cpu, cpu:N, cuda, cuda:all, cuda:N or cuda:N,M\n"},
      {"estimate " + job + " --model qwen3-235b-a22b --hardware h200",
       "every device holds the whole model (several share the corpus, not the weights)"},
      {"estimate " + job + " --model foo",
       "no file, folder or shape has this name; use one of smollm2-135m, "},
      {"eval configs/eval/squad-methods.yaml --differences a ippd",
       "--differences a: the evaluation has no such name; use one of standard, prefix, ippd"},
      {"eval configs/eval/squad-methods.yaml --differences ippd ippd", "give two different methods"},
      {run + "--set nonsense", "--set nonsense: write it as key.path=value"},
      {run + "--set method.nme=ippd", "unknown key \"nme\"; did you mean \"name\"?"},
      {run + "--set method.name=hpd", "for ask use one of ippd, "},
      {run + "--set model.path=/no/model", "model.path: no such file or folder: /no/model"},
      {run + "--set model.path=" + scratch.path("cut.gguf"), "cut.gguf: "},
      {run + "--set model.path=" + scratch.path("corpus.jsonl"),
       "is neither a GGUF file, a safetensors file"},
      {run + "--set input.context=d", "has no column \"d\"; use one of c, q"},
      {run + "--set engine.device=gpu",
       "unknown device \"gpu\"; use auto, cpu, cpu:N, cuda, cuda:all, cuda:N or cuda:N,M"},
      {run + "--set output.path=" + job, "a file of that name is in the way"},
      {run + "--shard 4/4", "--shard must be I/N with 0 ≤ I < N, for example 0/4; got 4/4"},
      {run + "--log /no/log",
       "--log: sheaf cannot write /no/log: the folder /no does not exist; create it first"},
      {"report " + scratch.path("."), "the folder has no report.json; name the output folder of a run"},
      {"report " + scratch.path("no"), "no: no such folder; name the output folder of a run"},
      {"merge " + scratch.path("all") + " " + scratch.path("no"), "no: no such folder"},
  };
  for (const Mistake& mistake : mistakes) {
    const Ran ran = run_sheaf(scratch, mistake.arguments);
    EXPECT_EQ(ran.exit_code, 2) << mistake.arguments;
    EXPECT_TRUE(ran.err.starts_with("sheaf: ")) << ran.err;
    EXPECT_NE(ran.err.find(mistake.said), std::string::npos) << mistake.arguments << "\n" << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(Mistakes, AFileWithoutPermissionSaysPermissionDenied) {
  const TempFolder scratch;
  const std::string folder = scratch.path("shop"), corpus = folder + "/c.jsonl";
  std::filesystem::create_directory(folder);
  scratch.write("shop/c.jsonl", "{\"c\": \"Box\", \"q\": \"What?\"}\n");
  const std::string job =
      scratch.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch) +
                                    "}\ninput: {path: shop/c.jsonl, context: c, question: q}\n"
                                    "task: {kind: ask}\nmethod: {name: ippd}\n"
                                    "engine: {device: cpu}\noutput: {path: out}\n");
  const auto said = [&](const std::string& arguments) {
    // To root nothing is closed. It gives up that right, or where it may not, it becomes nobody.
    const std::string without = "setpriv --bounding-set=-dac_override,-dac_read_search ";
    const bool gives_up = std::system((without + "true 2> /dev/null").c_str()) == 0;
    const std::string as = ::geteuid() != 0 ? ""
                           : gives_up       ? without
                                            : "setpriv --reuid=65534 --regid=65534 --clear-groups ";
    const std::string command = as + SHEAF_BINARY + " " + arguments + " 2> " + scratch.path("stderr");
    EXPECT_NE(std::system(command.c_str()), 0);
    return read_text(scratch.path("stderr"));
  };
  using std::filesystem::perms;
  std::filesystem::permissions(scratch.path("."), perms::all);
  std::filesystem::permissions(corpus, perms::none);
  const auto expect = [&](const std::string& arguments, const std::string& text) {
    const std::string found = said(arguments);
    EXPECT_NE(found.find(text), std::string::npos) << found;
    EXPECT_EQ(found.find("rerun"), std::string::npos) << found;
  };
  const std::string plan = "plan " + job, glob = plan + " --set 'input.path=" + folder + "/*.jsonl'";
  expect(plan, "c.jsonl: the file cannot be read: Permission denied");
  expect("inspect " + corpus, "c.jsonl: the file cannot be read: Permission denied");
  std::filesystem::permissions(folder, perms::none);
  expect(plan, "c.jsonl: permission denied; a folder on this path is closed to you");
  expect(glob, "shop: permission denied; the folder is closed to you");
  std::filesystem::permissions(folder, perms::owner_read);
  expect(glob, "shop: permission denied; the folder is closed to you");
  std::filesystem::permissions(folder, perms::all);
}

TEST(Mistakes, AWrongCategoryColumnListsItsValues) {
  const TempFolder scratch;
  scratch.write("corpus.jsonl",
                "{\"kind\": \"Tea\", \"title\": \"Oak tea\"}\n{\"kind\": \"Tea\", \"title\": \"Rye tea\"}\n");
  scratch.write("schema.yaml", "categories: {Tea: [{name: Brand}], Cup: [{name: Size}]}\n");
  const std::string plan =
      "plan " +
      scratch.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch) +
                                    "}\ninput: {path: corpus.jsonl, category: kind, document: title}\n"
                                    "task: {kind: extract, schema: schema.yaml}\n"
                                    "engine: {device: cpu}\noutput: {path: out}\n");
  EXPECT_EQ(run_sheaf(scratch, plan).err.find("none of the first"), std::string::npos);
  const Ran ran = run_sheaf(scratch, plan + " --set input.category=title");
  EXPECT_NE(ran.err.find("none of the first 2 records has a category of " + scratch.path("schema.yaml") +
                         ": column \"title\" has \"Oak tea\", \"Rye tea\", but the schema has \"Tea\", "
                         "\"Cup\"; check input.category"),
            std::string::npos)
      << ran.err;
}

/// CLI11 finds these; the words are ours.
TEST(Mistakes, InOptionsAreAnsweredWithTheRightForm) {
  const TempFolder scratch;
  const std::string run = "run configs/demo.yaml ";
  const std::vector<Mistake> mistakes = {
      {run + "--threads", "--threads needs a value: a whole number from 0 to 4096; see `sheaf run --help`"},
      {run + "--threads 99999999999", "--threads must be a whole number from 0 to 4096; got 99999999999"},
      {run + "--limit -1", "--limit must be a whole number of at least 0; got -1"},
      {run + "--limit 99999999999999999999",
       "--limit must be a whole number from 0 to 9007199254740992; got "},
      {run + "--set", "--set needs a value: KEY=VALUE"},
      {run + "--json=maybe", "--json takes no value"},
      {run + "--max-rejects ''", "--max-rejects must not be empty"},
      {run + "--devicee cpu", "unknown option --devicee; did you mean \"--device\"?\n"},
      {run + "more", "unexpected argument \"more\"; see `sheaf run --help`"},
      {"plan configs/demo.yaml --answer-tokens 99999999999",
       "--answer-tokens must be a whole number from 1 to 2147483647; got 99999999999"},
      {"bench --calibrate", "--calibrate needs a value: FILE"},
      {"bench --shapes qwen3-8b", "--shapes works only with --profile; add it"},
      {"bench x --model a --shape b", "--model does not work with --shape; leave one of them out"},
      {"bench x --method", "--method needs a value: one of hpd, ippd, "},
      {"bench x --tokens-per-step", "--tokens-per-step needs a value: a whole number of at least 0"},
      {"eval configs/eval/squad-methods.yaml --differences ippd",
       "--differences needs 2 values: LABEL LABEL"},
      {"eval configs/eval/squad-methods.yaml --count x",
       "--count must be a whole number of at least 0; got x"},
      {"score --metric squad --seed -1", "--seed must be a whole number of at least 0; got -1"},
      {"estimate --rows 5m", "--rows must be a whole number of at least 1; got 5m; write 5000000"},
      {"estimate --rows 5,000", "--rows must be a whole number of at least 1; got 5,000; write 5000;"},
      {"estimate --records 5m", "--records must be a whole number of at least 1; got 5m; write 5000000"},
      {"estimate --rows", "--rows needs a value: a whole number of at least 1"},
      {"estimate --answer-tokens nan", "--answer-tokens must be a number from 1 to 10000000; got nan"},
      {"--nope", "unknown option --nope; use one of -h, --help, --version; see `sheaf --help`"},
  };
  for (const Mistake& mistake : mistakes) {
    const Ran ran = run_sheaf(scratch, mistake.arguments);
    EXPECT_EQ(ran.exit_code, 2) << mistake.arguments;
    EXPECT_TRUE(ran.err.starts_with("sheaf: " + mistake.said)) << mistake.arguments << "\n" << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(Help, FitsIntoAHundredColumnsAndListsTheExitCodesOnce) {
  const TempFolder scratch;
  size_t commands = 0;
  std::istringstream program(run_sheaf(scratch, "--help").out);
  std::vector<std::string> names = {""};
  for (std::string line; std::getline(program, line) && line != "Commands:";) continue;
  for (std::string line; std::getline(program, line) && !line.empty();)
    if (line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
  for (const std::string& name : names) {
    const Ran ran = run_sheaf(scratch, name + " --help");
    ASSERT_EQ(ran.exit_code, 0) << name << ran.err;
    EXPECT_TRUE(ran.out.starts_with("sheaf " + (name.empty() ? "COMMAND" : name) + " [OPTIONS]")) << ran.out;
    EXPECT_TRUE(ran.out.ends_with(name.empty() ? "interrupted: rerun the same command to resume\n"
                                               : "`sheaf --help` lists the exit codes.\n"))
        << ran.out;
    EXPECT_TRUE(name.empty() || ran.out.find("\nExamples:\n") != std::string::npos)
        << name << " has no example";
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100u) << name << ": " << line;
      EXPECT_FALSE(line.ends_with(' ')) << name << ": " << line;
    }
    for (const char* foreign : {"INT", "UINT", "FLOAT", "TEXT", "Excludes", "Needs", "REQUIRED"})
      EXPECT_EQ(ran.out.find(foreign), std::string::npos) << name << ": " << foreign;
    ++commands;
  }
  EXPECT_EQ(commands, 28u);
}

TEST(Mistakes, OutputLostOnAFullDiskFails) {
  SKIP_UNLESS(std::filesystem::exists("/dev/full"), test::Lacking::full_device, "/dev/full is missing");
  const TempFolder scratch;
  for (const char* command :
       {"man", "doctor", "--help", "inspect --json datasets/catalog/catalog.jsonl", "completion bash"}) {
    const std::string line =
        std::string(SHEAF_BINARY) + " " + command + " >/dev/full 2>" + scratch.path("err");
    EXPECT_EQ(test::exit_code_of(std::system(line.c_str())), 3) << command;
    EXPECT_NE(read_text(scratch.path("err")).find("is the disk full?"), std::string::npos) << command;
  }
}

TEST(Mistakes, ARunWhoseSummaryIsLostSucceeds) {
  SKIP_UNLESS(std::filesystem::exists("/dev/full"), test::Lacking::full_device, "/dev/full is missing");
  const TempFolder scratch;
  scratch.write("corpus.jsonl", "{\"c\": \"Box\", \"q\": \"What?\"}\n");
  const std::string job = scratch.write(
      "job.yaml",
      "model: {path: " + test::make_tiny_model(scratch) +
          ", chat: plain}\ninput: {path: " + scratch.path("corpus.jsonl") +
          ", context: c, question: q}\ntask: {kind: ask}\nmethod: {name: ippd, max_value_tokens: 4}\n"
          "engine: {device: cpu}\noutput: {path: " +
          scratch.path("out") + "}\n");
  const std::string run =
      std::string(SHEAF_BINARY) + " run " + job + " --restart >/dev/full 2>" + scratch.path("err");
  EXPECT_EQ(test::exit_code_of(std::system(run.c_str())), 0) << read_text(scratch.path("err"));
  EXPECT_TRUE(std::filesystem::exists(scratch.path("out/_SUCCESS")));
  const std::string json =
      std::string(SHEAF_BINARY) + " run " + job + " --restart --json >/dev/full 2>" + scratch.path("err");
  EXPECT_EQ(test::exit_code_of(std::system(json.c_str())), 3) << "its report was asked for";
}

}  // namespace
}  // namespace sheaf
