#include "io/files/job_file.h"

#include <array>
#include <functional>
#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/fuzz.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

/// A folder with everything a job needs; the job's paths are inside it.
class JobFile : public testing::Test {
 protected:
  JobFile() {
    folder_.write("model.gguf", "x");
    folder_.write("rows.jsonl", "{}\n");
    folder_.write("schema.yaml", "x");
  }

  std::string full(const std::string& text) const {
    std::string out = text;
    const std::string folder = folder_.path() + "/";
    for (size_t at = 0; (at = out.find('@', at)) != std::string::npos; at += folder.size())
      out.replace(at, 1, folder);
    return out;
  }

  Job read(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    std::vector<std::string> full_overrides;
    for (const std::string& one : overrides) full_overrides.push_back(full(one));
    return read_job(folder_.write("job.yaml", full(text)), full_overrides);
  }

  /// The error of a job file, with the folder cut out of it.
  std::string error(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    std::string message = error_of([&] { read(text, overrides); });
    for (size_t at; (at = message.find(folder_.path() + "/")) != std::string::npos;)
      message.erase(at, folder_.path().size() + 1);
    return message;
  }

  std::string override_error(const std::string& text) const { return error(kExtract, {text}); }
  std::string ask_error(const std::string& text) const { return error(kAsk, {text}); }

  const std::string kExtract = R"(model: {path: '@model.gguf'}
input:
  path: '@rows.jsonl'
  document: [title, text]
task:
  kind: extract
  schema: '@schema.yaml'
output: {path: out}
)";
  const std::string kAsk = R"(model: {path: '@model.gguf'}
input: {path: '@rows.jsonl', context: c, questions: q}
task: {kind: ask}
method: {name: ippd}
output: {path: out}
)";
  const std::string kChat = R"(model: {path: '@model.gguf'}
input: {path: '-', format: openai-batch, limit: 3}
task: {kind: chat}
method: {name: prefix}
output: {path: out, format: parquet}
)";
  TempFolder folder_;
};

TEST_F(JobFile, KeysThatAreNotSetKeepTheirDefaults) {
  const Job job = read(kExtract), none;
  EXPECT_EQ(job.file, folder_.path("job.yaml"));
  EXPECT_EQ(job.input.document, (std::vector<std::string>{"title", "text"}));
  EXPECT_EQ(job.method.name, none.method.name);
  EXPECT_EQ(job.method.documents, none.method.documents);
  EXPECT_EQ(job.engine.window, none.engine.window);
  EXPECT_EQ(job.model.adapter, "");
  EXPECT_EQ(job.cost.devices, 1);
}

TEST_F(JobFile, TheTaskChoosesTheMethodAndTheFormatThatTheFileDoesNotSay) {
  EXPECT_EQ(read(kAsk, {"method=null"}).method.name, "ippd");
  EXPECT_EQ(read(kAsk, {"method.name=prefix"}).method.name, "prefix");
  const Job chat = read(kChat, {"method=null", "input.format=null"});
  EXPECT_EQ(chat.method.name, "ippd");
  EXPECT_EQ(chat.input.format, "openai-batch");
  EXPECT_EQ(read(kExtract).input.format, "auto");
  EXPECT_EQ(error(kChat, {"input.format=jsonl"}),
            "--set input.format=jsonl: task.kind chat reads the requests of an OpenAI batch file; set "
            "input.format: openai-batch");
}

TEST_F(JobFile, AllMistakesAreToldAtOnceInTheOrderOfTheirLines) {
  const std::string text = R"(model: {path: '@none.gguf', dtyp: f32}
input:
  path: '@rows.jsonl'
  document: [title, text]
  limit: many
task:
  kind: extract
  schema: '@other.yaml'
method:
  documents: -1
  temprature: 0
engine: {threads: 5000}
output: {path: out, confidence: 7}
cost: 3
)";
  try {
    read(text, {"method.seed=x"});
    FAIL() << "nothing was refused";
  } catch (const Mistakes& mistakes) {
    const std::vector<std::string> parts = {":1: unknown key \"dtyp\"; did you mean \"dtype\"?",
                                            ":1: model.path: ",
                                            ":5: input.limit must be a whole",
                                            ":8: task.schema: ",
                                            ":10: method.documents must be at least 0",
                                            ":11: unknown key \"temprature\"",
                                            ":12: engine.threads must be at most 4096",
                                            ":13: output.confidence must be true or false",
                                            ":14: cost must be a map",
                                            "--set method.seed=x: method.seed must be"};
    ASSERT_EQ(mistakes.all().size(), parts.size()) << mistakes.what();
    for (size_t i = 0; i < parts.size(); ++i)
      EXPECT_NE(mistakes.all()[i].find(parts[i]), std::string::npos) << mistakes.all()[i];
  }
}

TEST_F(JobFile, WhatFollowsFromAMistakeIsNotAnother) {
  // A section that is missing lacks no keys, a misspelt key is not missing too, and a task or method that is
  // not known says nothing about other keys.
  EXPECT_EQ(error("input: {path: '@rows.jsonl', document: d}\ntask: {kind: extract, schema: '@schema.yaml'}\n"
                  "output: {path: o}\n"),
            "job.yaml:1: the key \"model\" is missing; add it");
  EXPECT_EQ(error(kExtract, {"task.kind=extrct"}),
            "--set task.kind=extrct: task.kind cannot be \"extrct\"; did you mean \"extract\"?");
  EXPECT_EQ(error(kAsk, {"method={name: pcd, contrast: 1}"}),
            "--set method={name: pcd, contrast: 1}: method.name cannot be \"pcd\"; did you mean \"pced\"?");
  EXPECT_EQ(error(R"(modle: {path: '@model.gguf'}
input: {path: '@rows.jsonl', documnet: d}
task: {kind: extract, schema: '@schema.yaml'}
output: {path: o}
)"),
            "job.yaml:1: unknown key \"modle\"; did you mean \"model\"?; "
            "job.yaml:2: unknown key \"documnet\"; did you mean \"document\"?");
}

TEST_F(JobFile, ReadsTheKeysOfAnExtraction) {
  folder_.write("adapter/x", "");
  const Job job = read(R"(
model: {path: '@model.gguf', adapter: '@adapter', dtype: f32, cpu_dtype: int8, chat: chatml}
input: {path: '@*.jsonl', format: jsonl, limit: 9, id: i, category: c, document: d}
task: {kind: extract, schema: '@schema.yaml', instruction: "Do it."}
method: {name: hpd, values: positional, stacking: joint, keys: marker,
         value_end: line, options: greedy, documents: 3, prompt_tokens: 100, max_value_tokens: 7,
         temperature: 0.5, top_k: 4, top_p: 0.25, seed: 18446744073709551615}
engine: {device: "cuda:1", kernels: reference, threads: 2, tokens_per_step: 64, kv_memory_gb: 1.5, window: 10,
         prompts: 5, reproducible: true}
output: {path: o, format: jsonl, rows_per_file: 77, logprobs: true, raw: true, tokens: true, timing: true}
cost: {usd_per_hour: 2.5, devices: 8}
)");
  EXPECT_EQ(job.model.path, folder_.path("model.gguf"));
  EXPECT_EQ(job.model.adapter, folder_.path("adapter"));
  EXPECT_EQ(job.model.dtype, Precision::f32);
  EXPECT_EQ(job.model.cpu_dtype, Precision::int8);
  EXPECT_EQ(job.model.on_cpu(), Precision::f32);
  EXPECT_EQ(job.model.chat, "chatml");
  EXPECT_EQ(job.input.path, folder_.path("*.jsonl"));
  EXPECT_EQ(job.input.format, "jsonl");
  EXPECT_EQ(job.input.limit, 9);
  EXPECT_EQ(job.input.id, "i");
  EXPECT_EQ(job.input.category, "c");
  EXPECT_EQ(job.input.document, (std::vector<std::string>{"d"}));
  EXPECT_EQ(job.task.kind, TaskKind::extract);
  EXPECT_EQ(job.task.schema, folder_.path("schema.yaml"));
  EXPECT_EQ(job.task.instruction, "Do it.");
  EXPECT_EQ(job.method.name, "hpd");
  EXPECT_EQ(job.method.values, ValueSight::positional);
  EXPECT_EQ(job.method.stacking, Stacking::joint);
  EXPECT_EQ(job.method.keys, KeyForm::marker);
  EXPECT_EQ(job.method.value_end, ValueEnd::line);
  EXPECT_EQ(job.method.options, OptionChoice::greedy);
  EXPECT_EQ(job.method.documents, 3);
  EXPECT_EQ(job.method.prompt_tokens, 100);
  EXPECT_EQ(job.method.max_value_tokens, 7);
  EXPECT_EQ(job.method.temperature, 0.5f);
  EXPECT_EQ(job.method.top_k, 4);
  EXPECT_EQ(job.method.top_p, 0.25f);
  EXPECT_EQ(job.method.seed, 18446744073709551615u);
  EXPECT_EQ(job.engine.device, (Device{Device::Kind::cuda, {1}}));
  EXPECT_EQ(job.engine.kernels, CpuKernels::reference);
  EXPECT_EQ(job.engine.threads, 2);
  EXPECT_EQ(job.engine.tokens_per_step, 64);
  EXPECT_EQ(job.engine.kv_memory_gb, 1.5);
  EXPECT_EQ(job.engine.window, 10);
  EXPECT_EQ(job.engine.prompts, 5);
  EXPECT_TRUE(job.engine.reproducible);
  EXPECT_EQ(job.output.path, folder_.path("o"));
  EXPECT_EQ(job.output.format, OutputFormat::jsonl);
  EXPECT_TRUE(job.output.logprobs);
  EXPECT_TRUE(job.output.raw);
  EXPECT_TRUE(job.output.tokens);
  EXPECT_TRUE(job.output.timing);
  EXPECT_EQ(job.output.rows_per_file, 77);
  EXPECT_EQ(job.cost.usd_per_hour, 2.5);
  EXPECT_EQ(job.cost.devices, 8);
}

TEST_F(JobFile, OutputSwitchesAreIndependent) {
  const auto on = [&](const std::string& key) {
    const Job::Output output = read(kExtract, {"output." + key + "=true"}).output;
    return std::array{output.logprobs, output.raw, output.tokens, output.timing, output.confidence};
  };
  EXPECT_EQ(on("logprobs"), (std::array{true, false, false, false, false}));
  EXPECT_EQ(on("raw"), (std::array{false, true, false, false, false}));
  EXPECT_EQ(on("tokens"), (std::array{false, false, true, false, false}));
  EXPECT_EQ(on("timing"), (std::array{false, false, false, true, false}));
  EXPECT_EQ(on("confidence"), (std::array{false, false, false, false, true}));
}

TEST_F(JobFile, LimitsTheQuestionsOfAPromptWhereThatChangesNoAnswer) {
  EXPECT_EQ(read(kAsk, {"method.questions=32"}).method.questions, 32);
  EXPECT_EQ(read(kExtract, {"method.questions=4"}).method.questions, 4);
  EXPECT_EQ(read(kAsk, {"method.name=standard", "method.questions=0"}).method.questions, 0);
  EXPECT_EQ(error(kAsk, {"method.name=standard", "method.questions=2"}),
            "--set method.questions=2: method.questions does not work with method.name standard, which "
            "packs one question per prompt; use ippd, parallel-prompting, ape");
  const std::string others =
      "--set method.questions=2: method.questions works only with method.values independent and "
      "method.stacking isolated: other values depend on what else is in the prompt";
  EXPECT_EQ(error(kExtract, {"method.stacking=joint", "method.questions=2"}), others);
  EXPECT_EQ(error(kExtract, {"method.values=positional", "method.questions=2"}), others);
}

TEST_F(JobFile, WeighsDocumentsApartWhereTheyAreReadSideBySide) {
  const std::string ape = "method.name=ape", documents = "input.documents=d", none = "input.context=null";
  auto job = read(kAsk, {ape, documents, none, "method.document_temperature=0.5", "method.document_scale=1"});
  EXPECT_EQ(job.method.document_temperature, 0.5f);
  EXPECT_EQ(job.method.document_scale, 1);
  for (const std::string key : {"method.document_temperature", "method.document_scale"}) {
    for (const std::string method : {"pced", "standard"})
      EXPECT_EQ(error(kAsk, {"method.name=" + method, documents, none, key + "=0.5"}),
                "--set " + key + "=0.5: " + key + " works only with method.name ape; remove it");
    const std::vector<std::pair<std::string, std::string>> bad = {
        {"0", "at least 0.01, not 0"}, {"1.5", "at most 1, not 1.5"}, {"x", "a number, not \"x\""}};
    for (const auto& [value, why] : bad)
      EXPECT_EQ(error(kAsk, {ape, documents, none, key + "=" + value}),
                "--set " + key + "=" + value + ": " + key + " must be " + why);
  }
}

TEST_F(JobFile, ADefaultThatIsWrittenDownIsTakenWhereItMeansNothing) {
  read(kExtract, {"input.context=null", "input.scores_are=probability", "method.contrast=dynamic",
                  "method.length_norm=0", "output.samples=vote", "output.trace=false"});
  read(kAsk, {"task.list_attributes=true", "method.numbers=any", "method.cut_values=keep",
              "method.document_temperature=1", "method.document_scale=1"});
  EXPECT_EQ(error(kExtract, {"method.length_norm=0.5"}),
            "--set method.length_norm=0.5: method.length_norm works only with method.search likeliest; "
            "remove it");
}

TEST_F(JobFile, TakesTheOldNameOfAKey) {
  EXPECT_EQ(read(kExtract, {"engine.rows_per_step=48"}).engine.tokens_per_step, 48);
  const std::string both = error(kExtract, {"engine.rows_per_step=48", "engine.tokens_per_step=64"});
  EXPECT_TRUE(
      both.ends_with("engine.rows_per_step is the old name of engine.tokens_per_step, which is also "
                     "given; remove one"))
      << both;
}

TEST_F(JobFile, TakesNullAndAuto) {
  const Job job = read(kExtract, {"model.adapter=null", "model.dtype=~", "engine.tokens_per_step=auto",
                                  "engine.kv_memory_gb=auto", "cost=null", "input.id="});
  EXPECT_EQ(job.model.adapter, "");
  EXPECT_EQ(job.model.dtype, Precision::automatic);
  EXPECT_EQ(job.model.on_cpu(), Precision::automatic);
  EXPECT_EQ(job.engine.tokens_per_step, 0);
  EXPECT_EQ(job.engine.kv_memory_gb, 0);
}

TEST_F(JobFile, ErrorsHaveFileLineAndTheNearestKey) {
  std::string text = kExtract;
  text.replace(text.find("document:"), 9, "documnet:");
  EXPECT_EQ(error(text), "job.yaml:4: unknown key \"documnet\"; did you mean \"document\"?");
  EXPECT_EQ(error(kExtract + "methd: {}\n"), "job.yaml:9: unknown key \"methd\"; did you mean \"method\"?");
  EXPECT_EQ(error(kExtract + "output: {}\n"), "job.yaml:9: the key \"output\" appears twice; remove one");
  EXPECT_EQ(
      error("model: {path: '@model.gguf'}\ninput: {path: '@rows.jsonl', document: d}\noutput: {path: o}\n"),
      "job.yaml:1: the key \"task\" is missing; add it");
  EXPECT_EQ(
      error(""),
      "job.yaml:1: the key \"model\" is missing; add it; job.yaml:1: the key \"input\" is missing; add it; "
      "job.yaml:1: the key \"task\" is missing; add it; job.yaml:1: the key \"output\" is missing; add it");
  EXPECT_EQ(error("just text"), "job.yaml:1: the file must be a map of keys and values, not \"just text\"");
  EXPECT_EQ(error(kExtract + "method:\n  documents: -1\n"),
            "job.yaml:10: method.documents must be at least 0, not -1");
  EXPECT_EQ(error(kExtract + "method: [1\n").rfind("job.yaml:", 0), 0u);
  EXPECT_TRUE(error_of([] {
                read_job("no/such.yaml", {});
              }).starts_with("no/such.yaml: no such file; name a job file"));
}

TEST_F(JobFile, ErrorsOfOverridesNameTheOverride) {
  EXPECT_EQ(override_error("method.nme=hpd"),
            "--set method.nme=hpd: unknown key \"nme\"; did you mean \"name\"?");
  EXPECT_EQ(override_error("method.documents=six"),
            "--set method.documents=six: method.documents must be a whole number, not \"six\"");
  EXPECT_EQ(override_error("nonsense"),
            "--set nonsense: write it as key.path=value, for example method.documents=4");
  EXPECT_EQ(override_error("=5"), "--set =5: write it as key.path=value, for example method.documents=4");
  EXPECT_EQ(override_error("method..x=5"), "--set method..x=5: the key is empty");
  EXPECT_EQ(override_error("model.path.x=5"),
            "--set model.path.x=5: \"x\" cannot be set inside \"model.gguf\"; only a map has keys");
  EXPECT_TRUE(override_error("method.documents=[1").starts_with("--set method.documents=[1: "));
  EXPECT_EQ(override_error("a.b.c.d.e.f.g.h.i.j.k=1"),
            "--set a.b.c.d.e.f.g.h.i.j.k=1: the key has too many parts");
  EXPECT_EQ(read(kExtract, {"method.documents=2", "method.documents=4"}).method.documents, 4);
  EXPECT_EQ(read(kExtract, {"input.document=[x]"}).input.document, (std::vector<std::string>{"x"}));
}

TEST_F(JobFile, ChecksRanges) {
  const auto message = [&](const std::string& set, const std::string& rest) {
    EXPECT_EQ(override_error(set), "--set " + set + ": " + set.substr(0, set.find('=')) + " " + rest);
  };
  message("method.max_value_tokens=0", "must be at least 1, not 0");
  message("method.max_value_tokens=4097", "must be at most 4096, not 4097");
  message("method.temperature=-0.1", "must be at least 0, not -0.1");
  message("method.top_p=0", "must be above 0 and at most 1, not 0");
  message("method.top_p=1.5", "must be at most 1, not 1.5");
  message("method.top_k=-1", "must be at least 0, not -1");
  message("method.prompt_tokens=0", "must be at least 1, not 0");
  message("method.documents=3000000000", "must be at most 2147483647, not 3000000000");
  message("engine.threads=-2", "must be at least 0, not -2");
  message("engine.window=0", "must be at least 1, not 0");
  message("engine.kv_memory_gb=-1", "must be at least 0, not -1");
  EXPECT_EQ(override_error("engine.device=gpu"),
            "--set engine.device=gpu: engine.device: unknown device \"gpu\"; use auto, cpu, cpu:N, cuda, "
            "cuda:all, cuda:N or cuda:N,M");
  EXPECT_EQ(
      override_error("engine.device='cuda:'"),
      "--set engine.device='cuda:': engine.device: unknown device \"cuda:\"; use auto, cpu, cpu:N, cuda, "
      "cuda:all, cuda:N or cuda:N,M");
  EXPECT_EQ(
      override_error("engine.device='cuda:x'"),
      "--set engine.device='cuda:x': engine.device: unknown device \"cuda:x\"; use auto, cpu, cpu:N, cuda, "
      "cuda:all, cuda:N or cuda:N,M");
  message("engine.kernels=referense", "cannot be \"referense\"; did you mean \"reference\"?");
  message("model.dtype=f23", "cannot be \"f23\"; did you mean \"f32\"?");
  message("model.chat=chatlm",
          "cannot be \"chatlm\"; did you mean \"chatml\"? (a template of your own is a .yaml file)");
  message("output.format=csv", "cannot be \"csv\"; use one of jsonl, parquet, arrow, openai-batch");
  message("output.raw=yes", "must be true or false, not \"yes\"");
  message("cost.devices=0", "must be at least 1, not 0");
  message("cost.usd_per_hour=-1", "must be at least 0, not -1");
  message("input.limit=-1", "must be at least 0, not -1");
  message("input.document=[]", "is an empty list");
  message("model.path=7", "must be text, not the number 7; put it in quotes if it is text");
}

TEST_F(JobFile, MissingModelsAndDatasetsAreRefusedWithADownloadCommand) {
  EXPECT_EQ(
      override_error("model.path=Qwen/Qwen3-1.7B"),
      "--set model.path=Qwen/Qwen3-1.7B: model.path: no such file or folder: Qwen/Qwen3-1.7B; if this is "
      "the name of a model on Hugging Face, download it with `hf download Qwen/Qwen3-1.7B --local-dir "
      "models/Qwen3-1.7B` and name that folder");
  EXPECT_EQ(
      override_error("input.path=https://host/items.jsonl"),
      "--set input.path=https://host/items.jsonl: input.path: https://host/items.jsonl: sheaf cannot use "
      "this URI here (only corpora and runs may be s3://, gs://, az://, abfs://, hdfs:// or file://); copy "
      "it to this machine first: curl -LO https://host/items.jsonl");
  EXPECT_EQ(override_error("model.path=https://host/m.gguf"),
            "--set model.path=https://host/m.gguf: model.path: https://host/m.gguf: sheaf cannot use "
            "this URI here (only corpora and runs may be s3://, gs://, az://, abfs://, hdfs:// or file://); "
            "copy it to this machine first: curl -LO https://host/m.gguf");
  EXPECT_EQ(override_error("output.path=s3://shop/out?secret_key=hush"),
            "output.path: the URI of s3 has credentials in it, which would stand in logs and reports; leave "
            "them out, "
            "and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine's role");
  std::string text = kExtract;
  text.replace(text.find("'@model.gguf'"), 13, "Qwen/Qwen3-1.7B");
  EXPECT_NE(error(text).find("job.yaml:1: model.path: no such file or folder: Qwen/Qwen3-1.7B; if this"),
            std::string::npos)
      << "the name as it is written";
}

TEST_F(JobFile, AnEvaluationIsNotTakenForAJob) {
  const std::string eval =
      folder_.write("eval.yaml", "name: x\ndatasets: [{name: a}]\nmethods: [{name: b}]\n");
  EXPECT_EQ(error_of([&] { read_job(eval, {}); }),
            eval + ": this is an evaluation, not a job; use `sheaf eval " + eval + "`");
}

TEST_F(JobFile, ChecksThatFilesExist) {
  EXPECT_EQ(override_error("model.path=none.gguf"),
            "--set model.path=none.gguf: model.path: no such file or folder: none.gguf");
  EXPECT_EQ(override_error("model.adapter=none"),
            "--set model.adapter=none: model.adapter: no such file or folder: none");
  EXPECT_EQ(override_error("task.schema=none.yaml"),
            "--set task.schema=none.yaml: task.schema: no such file or folder: none.yaml");
  EXPECT_EQ(override_error("input.path=none*.jsonl"),
            "--set input.path=none*.jsonl: input.path: none*.jsonl: no file matches");
  std::string text = kExtract;
  text.replace(text.find("rows.jsonl"), 10, "raws.jsonl");
  EXPECT_EQ(error(text), "job.yaml:3: input.path: no such file or folder: raws.jsonl");
}

TEST_F(JobFile, ChecksThatKeysFitTogether) {
  EXPECT_EQ(override_error("task.schema=null"),
            "--set task.schema=null: task.kind extract needs the key \"task.schema\"");
  EXPECT_EQ(override_error("input.document=null"),
            "--set input.document=null: task.kind extract needs the key \"input.document\"");
  EXPECT_EQ(override_error("input.context=c"),
            "--set input.context=c: input.context works only with task.kind ask; remove it");
  EXPECT_EQ(override_error("task.kind=aks"),
            "--set task.kind=aks: task.kind cannot be \"aks\"; did you mean \"ask\"?");
  EXPECT_EQ(override_error("method.name=ippd"),
            "--set method.name=ippd: method.name ippd works only with task.kind ask and chat; for extract "
            "use one of "
            "hpd, standard, "
            "separate, prefix, seqbatch");
  EXPECT_EQ(error(kExtract, {"method.name=prefix", "method.values=positional"}),
            "--set method.values=positional: method.values positional works only with method.name hpd, not "
            "with prefix");
  EXPECT_EQ(error(kExtract, {"method.name=standard", "method.stacking=joint"}),
            "--set method.stacking=joint: method.stacking joint works only with method.name hpd, not with "
            "standard");
  EXPECT_EQ(error(kAsk), "no error");
  EXPECT_EQ(error(kAsk, {"input.questions=null", "input.question=q", "input.options=o"}), "no error");
  EXPECT_EQ(ask_error("input.question=q"),
            "--set input.question=q: input.questions and input.question are both given; keep one");
  EXPECT_EQ(ask_error("input.questions=null"),
            "--set input.questions=null: task.kind ask needs the key \"input.questions\"");
  EXPECT_EQ(ask_error("input.options=o"),
            "--set input.options=o: input.options works only with input.question; remove it");
  EXPECT_EQ(ask_error("input.context=null"),
            "--set input.context=null: task.kind ask needs the key \"input.context\"");
  EXPECT_EQ(ask_error("input.category=c"),
            "--set input.category=c: input.category works only with task.kind extract; remove it");
  EXPECT_EQ(ask_error("task.schema=s"),
            "--set task.schema=s: task.schema works only with task.kind extract; remove it");
  EXPECT_EQ(ask_error("output.spans=true"), "no error");
  EXPECT_EQ(
      ask_error("method.name=hpd"),
      "--set method.name=hpd: method.name hpd works only with task.kind extract; for ask use one of ippd, "
      "parallel-prompting, standard, separate, prefix, pced, ape, map-reduce, seqbatch");
  for (const char* method : {"standard", "separate", "prefix", "parallel-prompting"})
    EXPECT_EQ(ask_error(std::string("method.name=") + method), "no error");
}

TEST_F(JobFile, SpeculationNeedsAnswersThatAreDecodedApart) {
  EXPECT_EQ(error(kExtract, {"method.speculate=lookup"}), "no error");
  EXPECT_EQ(error(kExtract, {"method.speculate=true"}),
            "--set method.speculate=true: method.speculate must be none, lookup or {draft: MODEL}, not true");
  EXPECT_NE(error(kExtract, {"method.speculate=draft"}).find("must be none, lookup or {draft: MODEL}"),
            std::string::npos);
  EXPECT_EQ(error(kExtract, {"method.speculate={draft: .}"}), "no error");
  EXPECT_EQ(error(kExtract, {"method.speculate={}"}),
            "--set method.speculate={}: the key \"method.speculate.draft\" is missing; add it");
  EXPECT_NE(error(kExtract, {"method.speculate={draft: none.gguf}"}).find("no such file or folder"),
            std::string::npos);
  EXPECT_NE(error(kExtract, {"method.speculate={draft: ., values: 2}"}).find("unknown key \"values\""),
            std::string::npos);
  EXPECT_NE(error(kExtract, {"method.speculate={draft: .}", "method.values=positional"})
                .find("method.speculate does not work with method.values positional"),
            std::string::npos);
  EXPECT_EQ(error(kExtract, {"method.speculate=none", "method.values=positional"}), "no error");
  EXPECT_EQ(error(kExtract, {"method.speculate=lookup", "method.values=positional"}),
            "--set method.speculate=lookup: method.speculate does not work with method.values positional: "
            "values that see each other are decoded token by token; leave it out, or set method.values: "
            "independent");
  EXPECT_EQ(
      error(kAsk, {"method.speculate=lookup", "method.name=pced", "input.context=null", "input.documents=d"}),
      "--set method.speculate=lookup: method.speculate does not work with method.name pced, which picks each "
      "token from several documents' probabilities; leave it out");
  EXPECT_EQ(override_error("method.speculate=lokup"),
            "--set method.speculate=lokup: method.speculate cannot be \"lokup\"; did you mean \"lookup\"?");
}

TEST_F(JobFile, ConfidenceNeedsAnAnswerOfItsOwn) {
  const std::string on = "output.confidence=true";
  for (const char* method : {"hpd", "separate"})
    EXPECT_EQ(error(kExtract, {on, "method.null_bias=-1.5", std::string("method.name=") + method}),
              "no error");
  EXPECT_EQ(error(kExtract, {on, "method.name=standard"}),
            "--set output.confidence=true: output.confidence does not work with method.name standard, which "
            "decodes all values of a record as one text; use one of hpd, separate");
  EXPECT_EQ(
      error(kExtract, {"method.null_bias=1", "method.name=seqbatch"}),
      "--set method.null_bias=1: method.null_bias does not work with method.name seqbatch, which decodes "
      "all values of a record as one text; use one of hpd, separate");
  for (const char* method : {"ippd", "standard", "prefix"})
    EXPECT_EQ(error(kAsk, {on, std::string("method.name=") + method}), "no error");
  EXPECT_EQ(
      error(kAsk, {on, "method.name=pced", "input.context=null", "input.documents=d"}),
      "--set output.confidence=true: output.confidence does not work with method.name pced, which picks "
      "each token from several documents' probabilities; use one of ippd, parallel-prompting, standard, "
      "separate, prefix, ape, map-reduce");
  EXPECT_EQ(ask_error("method.null_bias=1"), "no error");
  EXPECT_EQ(override_error("method.null_bias=101"),
            "--set method.null_bias=101: method.null_bias must be at most 100, not 101");
  EXPECT_EQ(
      error(kChat, {on}),
      "--set output.confidence=true: output.confidence works only with task.kind extract and ask; for chat "
      "use output.logprobs");
  EXPECT_EQ(
      override_error("output.calibration=c.json"),
      "--set output.calibration=c.json: output.calibration works only with output.confidence true; remove "
      "it");
  EXPECT_EQ(error(kExtract, {on, "output.calibration=none.json"}),
            "--set output.calibration=none.json: output.calibration: no such file or folder: none.json");
  folder_.write("c.json", "{\"format\": \"x\"}");
  EXPECT_EQ(error(kExtract, {on, "output.calibration=@c.json"}),
            "c.json: the format is \"x\", not \"sheaf confidence 1\"; write the file again with `sheaf "
            "calibrate`");
}

TEST_F(JobFile, ExamplesAreAFileOrAMapWithOne) {
  folder_.write("gold.jsonl", "{}\n");
  const Job::Task::Examples brief = read(kExtract, {"task.examples=@gold.jsonl"}).task.examples;
  EXPECT_EQ(brief.path, folder_.path("gold.jsonl"));
  EXPECT_EQ(brief.per_category, 8);
  const Job::Task::Examples full =
      read(kExtract,
           {"task.examples={path: '@gold.jsonl', per_category: 64, seed: 3, unmentioned_absent: true}"})
          .task.examples;
  EXPECT_EQ(full.path, folder_.path("gold.jsonl"));
  EXPECT_EQ(full.per_category, 64);
  EXPECT_EQ(full.seed, 3u);
  EXPECT_TRUE(full.unmentioned_absent);
  EXPECT_EQ(override_error("task.examples=none.jsonl"),
            "--set task.examples=none.jsonl: task.examples: no such file or folder: none.jsonl");
  EXPECT_EQ(override_error("task.examples.path=none.jsonl"),
            "--set task.examples.path=none.jsonl: task.examples.path: no such file or folder: none.jsonl");
  EXPECT_EQ(override_error("task.examples.seed=1"),
            "--set task.examples.seed=1: the key \"task.examples.path\" is missing; add it");
  EXPECT_EQ(
      error(kExtract, {"task.examples.path=@gold.jsonl", "task.examples.per_category=1001"}),
      "--set task.examples.per_category=1001: task.examples.per_category must be at most 1000, not 1001");
  EXPECT_EQ(error(kExtract, {"task.examples.path=@gold.jsonl", "task.examples.per_categry=4"}),
            "--set task.examples.per_categry=4: unknown key \"per_categry\"; did you mean \"per_category\"?");
  EXPECT_EQ(error(kAsk, {"task.examples=@gold.jsonl"}), "no error");
  EXPECT_EQ(
      error(kExtract, {"task.examples.path=@gold.jsonl", "method.name=seqbatch"}),
      "--set task.examples.path=gold.jsonl: task.examples does not work with method.name seqbatch; use hpd, "
      "separate, standard or prefix");
  EXPECT_EQ(
      error(kExtract, {"task.examples.path=@gold.jsonl", "method.stacking=joint"}),
      "--set task.examples.path=gold.jsonl: task.examples works only with method.stacking isolated, not with "
      "joint");
}

TEST_F(JobFile, ChatReadsRequestsAndNothingElse) {
  EXPECT_EQ(error(kChat), "no error");
  EXPECT_EQ(read(kChat).input.id, "custom_id");
  const std::string file = folder_.path("job.yaml");
  EXPECT_EQ(error(kChat, {"input.format=jsonl"}),
            "--set input.format=jsonl: task.kind chat reads the requests of an OpenAI batch file; set "
            "input.format: openai-batch");
  EXPECT_EQ(error(kAsk, {"input.format=openai-batch"}),
            "--set input.format=openai-batch: input.format openai-batch works only with task.kind chat");
  EXPECT_EQ(error(kChat, {"input.context_id=x"}),
            "--set input.context_id=x: input.context_id works only with task.kind ask; remove it");
  EXPECT_EQ(
      error(kChat, {"task.instruction=x"}),
      "--set task.instruction=x: task.instruction works only with task.kind extract and ask; remove it");
  EXPECT_EQ(
      error(kChat, {"method.name=hpd"}),
      "--set method.name=hpd: method.name hpd works only with task.kind extract; for chat use one of ippd, "
      "standard, separate, prefix");
  EXPECT_EQ(
      error(kChat, {"method.name=parallel-prompting"}),
      "--set method.name=parallel-prompting: method.name parallel-prompting works only with task.kind ask; "
      "for chat use one of ippd, standard, separate, prefix");
}

TEST_F(JobFile, FuzzedFilesAreReadOrRefused) {
  const std::vector<std::string_view> words = {
      "- ",     ": ",    "&a ", "*a", "<<: ", "{",    "}",  "[",     "]",    "\n",      "  ",       "? ",
      "!!int ", "---\n", "\"",  "'",  "null", "auto", "-1", "1e400", "true", "method:", "kind: ask"};
  int64_t refused = 0;
  const int64_t rounds = fuzz([&](std::mt19937_64& random) {
    const std::string& seed =
        std::array{std::cref(kExtract), std::cref(kAsk), std::cref(kChat)}[random() % 3];
    const std::string message =
        error(mutate(seed, random, words), {mutate("method.documents=4", random, words)});
    refused += message != "no error";
  });
  EXPECT_GT(refused, rounds / 4);
}

TEST(ShippedJobs, AreReadWithoutErrors) {
  NEED_MODEL();
  for (const char* job : {"configs/demo.yaml", "configs/extract.yaml", "configs/ask.yaml"})
    EXPECT_EQ(error_of([&] { read_job(job, {}); }), "no error");
}

}  // namespace
}  // namespace sheaf
