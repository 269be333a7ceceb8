#include <filesystem>
#include <fmt/format.h>
#include <limits>

#include "core/methods/method.h"
#include "core/tokenizer/chat_template.h"
#include "io/base/store_uri.h"
#include "io/datasets/dataset.h"
#include "io/files/job_keys.h"

// The table of job keys: a key is one line of it, and its member of Job.

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Strings = std::vector<std::string>;
using Keys = std::vector<JobKey>;
using enum Decides;

template <auto... Path>
auto& follow(auto& job) {
  return (job.*....*Path);
}

template <auto... Path>
JobMember member_at() {
  using Value = std::remove_cvref_t<decltype(follow<Path...>(std::declval<Job&>()))>;
  if constexpr (std::is_enum_v<Value>)
    return WordMember{all_words<Value>, [](const Job& job) { return word_of(follow<Path...>(job)); },
                      [](Job& job, std::string_view word) {
                        if (const auto value = read_word<Value>(word)) follow<Path...>(job) = *value;
                      }};
  else
    return MemberOf<Value>([](Job& job) -> Value& { return follow<Path...>(job); });
}

/// Adds the keys of a section by the members of its part of a job.
template <auto Part>
struct Section {
  Keys& keys;
  std::string name;

  template <auto... Path>
  void add(std::string_view key, const Takes& takes, Decides decides, std::string_view help,
           const std::vector<Scope>& scopes = {}) {
    JobMember member;
    if constexpr (sizeof...(Path) > 0) member = member_at<Part, Path...>();
    keys.push_back({fmt::format("{}.{}", name, key), member, takes, decides, help, scopes});
  }
};

Takes whole(int64_t least, int64_t most = INT64_MAX) {
  return {.whole = {least, most}};
}

Takes real(double least, double most = std::numeric_limits<double>::max()) {
  return {.real = {least, most}};
}

Takes with_word(Takes takes, std::string_view word, double means) {
  takes.word = word;
  takes.word_means = means;
  return takes;
}

Takes one_of(Strings (*words)()) {
  return {.words = words};
}

const Takes kAny, kPath{.path = true}, kColumn{.text = "a column"},
    kColumns{.text = "a column or a list of columns"};

const Scope kExtract{"task.kind extract", [](const Job& job) { return job.task.kind == TaskKind::extract; }};
const Scope kAsk{"task.kind ask", [](const Job& job) { return job.task.kind == TaskKind::ask; }};
const Scope kNotExtract{"task.kind chat and ask",
                        [](const Job& job) { return job.task.kind != TaskKind::extract; }};
const Scope kThinking{"model.reasoning low, medium and high",
                      [](const Job& job) { return job.model.reasoning != Reasoning::none; }};
const Scope kNotChat{"task.kind extract and ask",
                     [](const Job& job) { return job.task.kind != TaskKind::chat; }};
const Scope kPced{"method.name pced",
                  [](const Job& job) { return find_method(job.method.name).wording.fused; }};
const Scope kApe{"method.name ape",
                 [](const Job& job) { return find_method(job.method.name).weighs_documents; }};
const Scope kMapReduce{"method.name map-reduce",
                       [](const Job& job) { return find_method(job.method.name).wording.findings; }};
const Scope kLikeliest{"method.search likeliest",
                       [](const Job& job) { return job.method.search == SpanSearch::likeliest; }};
const Scope kConfidence{"output.confidence true", [](const Job& job) { return job.output.confidence; }};
const Scope kSampled{"method.samples above 1 in task.kind extract and ask", [](const Job& job) {
                       return job.method.samples > 1 && job.task.kind != TaskKind::chat;
                     }};
const Scope kTrust{"task.trust", [](const Job& job) { return !job.task.trust.run.empty(); }};
const Scope kPublished{"an output.path that is a URI",
                       [](const Job& job) { return is_uri(job.output.path); }};
const Scope kOwnRows{"output.format jsonl, parquet and arrow",
                     [](const Job& job) { return job.output.format != OutputFormat::openai_batch; }};
const Scope kJsonRows{"output.format jsonl",
                      [](const Job& job) { return job.output.format == OutputFormat::jsonl; }};
const Scope kDataset{"datasets (input.format)",
                     [](const Job& job) { return find_dataset_format(job.input.format) != nullptr; }};
const Scope kTable{"JSONL, CSV and Parquet",
                   [](const Job& job) { return find_dataset_format(job.input.format) == nullptr; }};
const Scope kNarrativeQa{"input.format narrativeqa",
                         [](const Job& job) { return job.input.format == "narrativeqa"; }};
const Scope kQuac{"input.format quac", [](const Job& job) { return job.input.format == "quac"; }};
const Scope kContext{"input.context", [](const Job& job) { return !job.input.has_documents(); }};
const Scope kSeveral{"input.documents or input.corpus",
                     [](const Job& job) { return job.input.has_documents(); }};
const Scope kCorpus{"input.corpus", [](const Job& job) { return !job.input.corpus.empty(); }};
const Scope kDocuments{"input.documents", [](const Job& job) { return !job.input.documents.empty(); }};
const Scope kQuestion{"input.question", [](const Job& job) { return !job.input.question.empty(); }};

Strings corpus_formats() {
  Strings names = {"auto", "jsonl", "csv", "parquet", "openai-batch"};
  for (const DatasetFormat& format : dataset_formats()) names.push_back(format.name);
  return names;
}

Strings chat_names() {
  Strings names = chat_template_names();
  names.insert(names.begin(), "auto");
  return names;
}

void add_model_keys(Keys& keys) {
  Section<&Job::model> model{keys, "model"};
  using Model = Job::ModelPart;
  model.add<&Model::path>(
      "path", {.path = true, .required = true, .own_reader = true}, file,
      "The model: a GGUF file, a safetensors file beside its config.json, or a model folder");
  model.add<&Model::adapter>(
      "adapter", kPath, file,
      "A folder with a LoRA adapter in PEFT format, which is merged when the model is loaded");
  model.add<&Model::dtype>("dtype", kAny, answers,
                           "The type to multiply in; auto: fp32 on a CPU, bf16 on a GPU");
  model.add<&Model::cpu_dtype>(
      "cpu_dtype", kAny, answers,
      "What model.dtype auto means on a CPU, for jobs that should still use a GPU where there is one");
  model.add<&Model::weights>(
      "weights", kAny, nothing,
      "How weights lie in a GPU's memory: packed as in their file, or expanded; the answers are the same");
  model.add<&Model::context>(
      "context", whole(0, 1 << 28), answers,
      "The most positions of a prompt; 0: the model's own, of long-rope models the original context");
  model.add<&Model::chat>(
      "chat",
      {.words = chat_names,
       .path = true,
       .own_reader = true,
       .told = [](const Job& job) -> ordered_json {
         const std::string& chat = job.model.chat;
         return job.model.chat_is_file() ? std::filesystem::path(chat).filename().string() : chat;
       }},
      rows, "The chat layout of prompts: auto (the model's own), a template's name, or a YAML file");
  model.add<&Model::reasoning>("reasoning", kAny, answers,
                               "Whether the model thinks before a free answer, and how much", {kNotExtract});
  model.add<&Model::reasoning_tokens>("reasoning_tokens", whole(1, 1 << 20), answers,
                                      "The most tokens of a thought, after which the answer begins",
                                      {kThinking});
}

void add_input_keys(Keys& keys) {
  Section<&Job::input> input{keys, "input"};
  using In = Job::Input;
  using Dataset = Job::Input::Dataset;
  input.add<&In::path>(
      "path", {.path = true, .required = true, .own_reader = true}, file,
      "The corpus: a file, a folder, a glob, the URI of one of these, or \"-\" for standard input");
  input.add<&In::format>("format", one_of(corpus_formats), rows,
                         "The format of the corpus; auto: by the end of its name");
  input.add<&In::dataset, &Dataset::split>("split", one_of([] {
                                             return Strings{"train", "valid", "test"};
                                           }),
                                           rows, "Which part of the dataset", {kDataset, kNarrativeQa});
  input.add<&In::dataset, &Dataset::turns>(
      "turns", whole(0, 100), rows, "Earlier turns of the dialog before a question, with their gold answers",
      {kDataset, kQuac});
  input.add<&In::dataset, &Dataset::shots>(
      "shots", whole(0, 100), rows,
      "Examples that the instruction ends with, each a passage with one answered question", {kAsk});
  input.add<&In::dataset, &Dataset::shots_from>("shots_from", kPath, file,
                                                "The file to take the examples of input.shots from", {kAsk});
  input.add<&In::limit>("limit", whole(0), rows, "The most records to read, bad ones included; 0: all");
  input.add<&In::duplicate_ids>(
      "duplicate_ids", kAny, rows,
      "What to do with a record whose id an earlier record has: keep it and say so, or reject it");
  input.add<&In::too_long>("too_long", kAny, rows,
                           "What to do with a document that is too long for a prompt: reject its record, cut "
                           "it, or ask part by part",
                           {kNotChat});
  input.add<&In::id>("id", kColumn, rows, "Names rows; without it, they are numbered", {kNotChat});
  input.add<&In::category>("category", kColumn, rows,
                           "Chooses the attributes of a record; not needed where the schema has one category",
                           {kExtract});
  input.add<&In::document>("document", kColumns, rows,
                           "The text to extract from; several columns are joined by line breaks", {kExtract});
  input.add<&In::html>(
      "html", kAny, rows,
      "What to do with HTML in documents and contexts: keep it, or read it as text, without tags "
      "and scripts",
      {kNotChat});
  input.add<&In::locale>(
      "locale", {.text = "a language, or a language and a country: de, en-US"}, rows,
      "How the corpus writes numbers and dates: whether 1.200 is 1200 or 1.2, and 03/04 in "
      "March or April",
      {kExtract});
  input.add<&In::context>("context", kColumn, rows, "The text that questions are about", {kAsk});
  input.add<&In::documents>(
      "documents", kColumn, rows,
      "A list of documents that questions are about: texts, or objects {text, title, score}", {kAsk});
  input.add<&In::scores>(
      "scores", {.text = "a column, or question"}, rows,
      "A list with the relevance of each document; question: as likely as the document makes the question",
      {kAsk, kSeveral});
  input.add<&In::scores_are>("scores_are", kAny, rows, "What the numbers of input.scores are",
                             {kAsk, kDocuments});
  input.add<&In::rerank_scores>("rerank_scores", kColumn, rows,
                                "A second list of scores, from a reranker (for PCED with two retrievers)",
                                {kAsk, kDocuments});
  input.add<&In::rerank_scores_are>("rerank_scores_are", kAny, rows,
                                    "What the numbers of input.rerank_scores are", {kAsk, kDocuments});
  input.add<&In::top_documents>("top_documents", whole(0, 1000), rows,
                                "Keeps only the most relevant documents; 0: all", {kAsk, kSeveral});
  input.add<&In::corpus>("corpus", kPath, file,
                         "Passages in JSON lines or Parquet; each question gets the input.top_documents best "
                         "by BM25",
                         {kAsk});
  input.add<&In::corpus_index>("corpus_index", kPath, nothing,
                               "The file of the index of input.corpus; without it, it lies beside the corpus",
                               {kAsk, kCorpus});
  input.add<&In::context_id>(
      "context_id", kColumn, rows,
      "Names the context of a record; records with one id share the context of any of them",
      {kAsk, kTable, kContext});
  input.add<&In::questions>("questions", kColumn, rows,
                            "A list of questions: texts, or objects {id, question, options}", {kAsk});
  input.add<&In::question>("question", kColumn, rows, "The one question of a record", {kAsk});
  input.add<&In::options>("options", kColumn, rows,
                          "A list of the answers that input.question allows; null: free text",
                          {kAsk, kQuestion});
  input.add<&In::answer_kind>(
      "answer_kind", kColumn, rows,
      "What the answer to input.question may be: free, span or choice; null: as task.answers says",
      {kAsk, kQuestion});
  input.add<&In::keep>("keep", kColumns, rows, "Columns to copy into every row, unchanged",
                       {kNotChat, kTable});
}

/// A part of task.prompt, with the examples that follow it; null where it is not given.
template <auto Part>
ordered_json prompt_part(const Job& job) {
  const Job::Task::Prompt& prompt = job.task.prompt;
  if (!(prompt.*Part)) return nullptr;
  return *(prompt.*Part) + (Part == &Job::Task::Prompt::instruction ? prompt.shots : "");
}

void add_task_keys(Keys& keys) {
  Section<&Job::task> task{keys, "task"};
  using Task = Job::Task;
  using Examples = Job::Task::Examples;
  task.add<&Task::kind>(
      "kind", {.required = true}, rows,
      "Attribute values from documents, answers about contexts, or the next turn of dialogs");
  task.add<&Task::schema>("schema", kPath, file, "The schema file: categories and their attributes",
                          {kExtract});
  task.add<&Task::instruction>("instruction", kAny, rows, "Replaces the text of the task in the prompt",
                               {kNotChat});
  task.add<&Task::list_attributes>(
      "list_attributes", kAny, rows,
      "Whether the instruction lists the attributes; otherwise each stands where it is asked for",
      {kExtract});
  task.add<&Task::answers>(
      "answers", kAny, rows,
      "What the answer to a question without options may be, where the corpus does not say it: "
      "any text, or a span, a text that the context holds; choice: every question has options",
      {kAsk});
  task.add<&Task::examples, &Examples::path>(
      "examples.path", kPath, file, "Records with right values or answers to show to the model", {kNotChat});
  task.add<&Task::examples, &Examples::per_category>(
      "examples.per_category", whole(0, 1000), rows,
      "The most examples of a category; for questions, the most of all", {kNotChat});
  task.add<&Task::examples, &Examples::seed>("examples.seed", kAny, rows,
                                             "The seed for choosing the examples", {kNotChat});
  task.add<&Task::examples, &Examples::unmentioned_absent>(
      "examples.unmentioned_absent", kAny, rows,
      "An attribute that gold does not name is null in the example's answer; otherwise it is left out",
      {kExtract});
  using Prompt = Job::Task::Prompt;
  task.add<&Task::prompt, &Prompt::file>("prompt.file", kPath, nothing,
                                         "A YAML file with the keys below; those of the job go first",
                                         {kNotChat});
  const auto add_part = [&](std::string_view name, ordered_json (*told)(const Job& job),
                            std::string_view help) {
    task.add<>(fmt::format("prompt.{}", name), {.own_reader = true, .text = "text with fields", .told = told},
               rows, help, {kNotChat});
  };
  add_part("system", prompt_part<&Prompt::system>, "The system text; empty: none");
  add_part("instruction", prompt_part<&Prompt::instruction>,
           "Begins the user's turn; extract: with {attributes} and {category}");
  add_part("document", prompt_part<&Prompt::document>,
           "Words a document: {document}, and any column of the corpus by its name");
  add_part(
      "question", prompt_part<&Prompt::question>,
      "Ends the user's turn; ask: with {question}, {options} and any column; extract: with {attributes}");
  add_part("example", prompt_part<&Prompt::example>,
           "Words an example, which then stands after the instruction: {document}, {question}, {options}, "
           "{answer}");
  task.add<&Task::prompt, &Prompt::answer_end>(
      "prompt.answer_end", kAny, rows,
      "Where a free answer ends: at a line break, or where the model ends its turn", {kAsk});
  using Trust = Job::Task::Trust;
  task.add<&Task::trust, &Trust::run>(
      "trust.run", kPath, file,
      "A finished run of another model over the same corpus, whose sure values are taken instead of decoded",
      {kExtract});
  task.add<&Task::trust, &Trust::at_least>("trust.at_least", real(0, 1), rows,
                                           "The least confidence of a value that is taken", {kExtract});
  task.add<&Task::trust, &Trust::nulls_at_least>(
      "trust.nulls_at_least", real(0, 1), rows,
      "The least confidence of a null that is taken; 0: as task.trust.at_least", {kExtract});
  task.add<&Task::trust, &Trust::precision>("trust.precision", real(0, 1), rows,
                                            "In place of task.trust.at_least, for a run with "
                                            "output.calibration: the least mean confidence of what is taken",
                                            {kExtract});
}

void add_method_keys(Keys& keys) {
  Section<&Job::method> method{keys, "method"};
  using M = Job::Method;
  method.add<&M::name>("name", one_of([] { return method_names(); }), answers,
                       "How prompts are built and decoded");
  method.add<&M::values>("values", kAny, answers,
                         "hpd: what a value sees: its own key only, or also the keys and values before it");
  method.add<&M::stacking>("stacking", kAny, answers,
                           "hpd: whether the documents of a prompt see each other");
  method.add<&M::keys>(
      "keys", kAny, answers,
      "hpd: what stands before a value: the attribute's name, or its number in the instruction");
  method.add<&M::value_end>(
      "value_end", kAny, answers,
      "hpd: where a value ends: where its JSON literal is complete, or at a newline only");
  method.add<&M::cut_values>("cut_values", kAny, rows,
                             "What to do with a value that reached method.max_value_tokens", {kExtract});
  method.add<&M::numbers>(
      "numbers", kAny, rows,
      "What to do with a number or a date whose digits its document does not hold: keep it "
      "with a note, or store null",
      {kExtract});
  method.add<&M::options>(
      "options", kAny, answers,
      "How the option of an enum attribute is chosen: the likeliest as a whole, or token by token");
  method.add<&M::documents>(
      "documents", whole(0), rows,
      "hpd, ippd: documents or contexts per prompt; 0: as many as method.prompt_tokens allows");
  method.add<&M::questions>("questions", whole(0), rows,
                            "The most questions (hpd: attributes) of one prompt; 0: all of its documents",
                            {kNotChat});
  method.add<&M::prompt_tokens>("prompt_tokens", whole(1), rows, "The most tokens of one prompt");
  method.add<&M::max_value_tokens>("max_value_tokens", whole(1, 4096), answers,
                                   "The most tokens of one value or answer (K_max)");
  method.add<&M::null_bias>(
      "null_bias", real(-100, 100), answers,
      "Added to the log-probability of null; positive: more nulls, fewer invented values", {kNotChat});
  method.add<&M::search>(
      "search", kAny, answers,
      "How a span is chosen: token by token, or the likeliest as a whole, which computes more tokens",
      {kNotChat});
  method.add<&M::length_norm>(
      "length_norm", real(0, 1), answers,
      "Divides the log-probability of a span by this power of its number of tokens; 0: not at all",
      {kNotChat, kLikeliest});
  method.add<&M::search_tokens>(
      "search_tokens", whole(1, 1'000'000), answers,
      "The most tokens that the search for one span computes before it takes the best it has",
      {kNotChat, kLikeliest});
  method.add<&M::contrast>("contrast", with_word(real(0, 100), "dynamic", -1), answers,
                           "How strongly scores are pushed away from what the model says without documents",
                           {kPced});
  method.add<&M::prior_weight>("prior_weight", real(0, 100), answers,
                               "How much the relevance of documents counts", {kPced});
  method.add<&M::aggregate>("aggregate", kAny, answers, "How the scores of the documents are combined",
                            {kPced});
  method.add<&M::document_temperature>("document_temperature", real(0.01, 1), answers,
                                       "Divides the scores of documents in a question's attention; 1: off",
                                       {kApe});
  method.add<&M::document_scale>(
      "document_scale", real(0.01, 1), answers,
      "The power of what all documents together weigh in a question's attention; 1: off", {kApe});
  method.add<&M::findings>("findings", kAny, answers,
                           "What each document gives: its answer to each question, or one summary",
                           {kMapReduce});
  method.add<&M::finding_tokens>("finding_tokens", whole(1, 4096), answers,
                                 "The most tokens of what a document gives", {kMapReduce});
  method.add<&M::temperature>("temperature", real(0, 1000), answers, "The sampling temperature; 0: greedy");
  method.add<&M::top_k>("top_k", whole(0), answers, "Sample from this many of the likeliest tokens; 0: all");
  method.add<&M::top_p>("top_p", real(0, 1), answers,
                        "Sample from the likeliest tokens that make up this probability");
  method.add<&M::seed>("seed", kAny, answers, "The seed of the sampling");
  method.add<&M::samples>("samples", whole(1, 1024), rows,
                          "How many answers to draw to each question; needs a temperature");
  method.add<>("speculate",
               {.words =
                    [] {
                      return Strings{"none", "lookup"};
                    },
                .own_reader = true,
                .text = "none, lookup or {draft: MODEL, always: false}"},
               nothing,
               "Proposes likely tokens and keeps those that are right: the same answers in fewer steps");
}

void add_engine_keys(Keys& keys) {
  Section<&Job::engine> engine{keys, "engine"};
  using E = Job::Engine;
  using Kv = E::KvStorePart;
  engine.add<>("device",
               {.words =
                    [] {
                      return Strings{"auto", "cpu", "cuda"};
                    },
                .own_reader = true,
                .text = "auto, cpu, cpu:N, cuda, cuda:N, cuda:N,M or cuda:all"},
               nothing, "Where to compute; auto: the first GPU that can, otherwise the CPU");
  engine.add<&E::kernels>("kernels", kAny, answers,
                          "On a CPU: the quick kernels, or the plain fp32 loops that define what is right");
  engine.add<&E::reproducible>("reproducible", kAny, answers,
                               "Make answers independent, to the bit, of what else is computed");
  engine.add<&E::threads>("threads", whole(0, 4096), nothing,
                          "Threads of the CPU; 0: every core that the process may use");
  engine.add<&E::tokens_per_step>("tokens_per_step",
                                  {.whole = {0, INT64_MAX}, .word = "auto", .old = "rows_per_step"}, nothing,
                                  "The most tokens of one step");
  engine.add<&E::kv_memory_gb>("kv_memory_gb", with_word(real(0, 1e6), "auto", 0), rows,
                               "Memory for keys and values of each device");
  engine.add<&E::kv_dtype>("kv_dtype", kAny, answers,
                           "The type in which keys and values are kept; fp8 needs a GPU");
  engine.add<&E::kv_store, &Kv::path>(
      "kv_store.path", kPath, nothing,
      "A folder that keeps the keys and values of shared documents and instructions for later runs");
  engine.add<&E::kv_store, &Kv::gb>("kv_store.gb", real(0.001, 1e6), nothing,
                                    "The most that the folder holds");
  engine.add<&E::kv_store, &Kv::memory_gb>(
      "kv_store.memory_gb", with_word(real(1e-6, 1e6), "auto", 0), nothing,
      "The most of it in memory; auto: an eighth of the machine's. Lower it where jobs share a machine");
  engine.add<&E::kv_store, &Kv::bits>(
      "kv_store.bits",
      {.whole = {1, 64},
       .text = "8 or 16",
       .told = [](const Job& job) -> ordered_json { return job.engine.kv_store.rounds() ? 8 : 16; }},
      answers, "Bits of a number in the store: 16, as computed, or 8, which changes some answers");
  engine.add<&E::prompts>("prompts", whole(0), nothing,
                          "The most prompts decoded at once; 0: as many as fit");
  engine.add<&E::window>("window", whole(1), rows, "How many records are planned together");
}

void add_output_keys(Keys& keys) {
  Section<&Job::output> output{keys, "output"};
  using O = Job::Output;
  output.add<&O::path>(
      "path", {.path = true, .required = true, .own_reader = true}, nothing,
      "The run folder, or a URI to publish the finished run to; {date}, {time} and {job} are filled in");
  output.add<&O::work>(
      "work", kPath, nothing,
      "The local folder of a run that is published, for machines whose home folder is small or does not last",
      {kPublished});
  output.add<&O::reuse>(
      "reuse", kPath, nothing,
      "An earlier run whose answers are taken where nothing that decides them changed: its folder or URI, or "
      "latest:out/{date} for the newest finished run that matches");
  output.add<&O::format>("format", kAny, rows, "The format of the rows");
  output.add<&O::rows_per_file>("rows_per_file", whole(1), rows,
                                "A rows file ends with the window that reaches this many rows");
  output.add<&O::logprobs>("logprobs", kAny, rows, "Adds the log-probability of every value", {kOwnRows});
  output.add<&O::raw>("raw", kAny, rows, "Adds the text that the model wrote for every value", {kOwnRows});
  output.add<&O::reasoning>("reasoning", kAny, rows, "Adds what the model thought before each answer",
                            {kThinking, kOwnRows});
  output.add<&O::confidence>("confidence", kAny, rows, "Adds how likely every value or answer is right");
  output.add<&O::samples>("samples", kAny, rows,
                          "Of several samples: the most frequent answer with its share as confidence, or all",
                          {kSampled});
  output.add<&O::calibration>("calibration", kPath, file,
                              "The file that `sheaf calibrate` wrote, which scales the confidence",
                              {kConfidence});
  output.add<&O::spans>("spans", kAny, rows, "Adds where each value or answer stands in its document",
                        {kNotChat});
  output.add<&O::trace>("trace", kAny, rows,
                        "Adds which document spoke each token of an answer, and citations",
                        {kPced, kJsonRows});
  output.add<&O::sources>("sources", kAny, rows, "Adds which model gave each value", {kTrust});
  output.add<&O::tokens>("tokens", kAny, rows, "Adds how many tokens document and answers have", {kOwnRows});
  output.add<&O::timing>("timing", kAny, rows,
                         "Adds the seconds from when the engine takes the record until its last answer",
                         {kOwnRows});
}

void add_cost_keys(Keys& keys) {
  Section<&Job::cost> cost{keys, "cost"};
  cost.add<&Job::Cost::usd_per_hour>("usd_per_hour", real(0), nothing, "The price of one device");
  cost.add<&Job::Cost::devices>("devices", whole(1), nothing, "How many devices are paid for");
  cost.add<&Job::Cost::hardware>("hardware", kAny, nothing,
                                 "The device of `sheaf estimate` that the price is for, such as h200");
}

/// Read by io/files/estimate_section.cc; a run does not look at them.
void add_estimate_keys(Keys& keys) {
  const auto add = [&](std::string_view path, std::string_view takes, std::string_view help) {
    keys.push_back({std::string(path), {}, {.own_reader = true, .text = takes}, nothing, help});
  };
  add("estimate.model", "a named shape, a config.json, a folder or a GGUF file", "The model to estimate for");
  add("estimate.hardware", "a name or a list of names", "Devices of configs/hardware.yaml");
  add("estimate.within", "a time such as 2h, 90m or 30s", "The time limit");
  add("estimate.sample", "whole number ≥ 1", "How many records to look at");
  add("estimate.records", "whole number ≥ 1", "How many records the whole corpus has");
  add("estimate.devices", "whole number ≥ 1", "How many devices share the corpus");
  add("estimate.answer_tokens", "1 to 10,000,000", "Tokens of a free answer");
  add("estimate.tokens_per_byte", "0.01 to 4", "Tokens per byte of text, for models without a tokenizer");
  add("estimate.statistics.document_tokens", "number", "Mean tokens of a made-up document");
  add("estimate.statistics.documents_per_record", "number", "Mean documents of a made-up record");
  add("estimate.statistics.questions", "number", "Mean questions of a made-up record");
  add("estimate.statistics.question_tokens", "number", "Mean tokens of a made-up question");
  add("estimate.statistics.instruction_tokens", "number", "Tokens of the made-up instruction");
  add("estimate.sweep.method", "a list of values", "Methods to compare");
  add("estimate.sweep.model", "a list of values", "Models to compare");
  add("estimate.sweep.hardware", "a list of values", "Devices to compare");
  add("estimate.sweep.documents", "a list of values", "Values of method.documents to compare");
  add("estimate.sweep.prompt_tokens", "a list of values", "Values of method.prompt_tokens to compare");
  add("estimate.sweep.tokens_per_step", "a list of values", "Values of engine.tokens_per_step to compare");
  add("estimate.sweep.prompts", "a list of values", "Values of engine.prompts to compare");
  add("estimate.sweep.devices", "a list of values", "Numbers of devices to compare");
}

}  // namespace

void follow_task(Job& job) {
  if (job.task.kind == TaskKind::none) return;
  job.method.name = method_names(job.task.kind).front();
  if (job.task.kind == TaskKind::chat) job.input.format = "openai-batch";
}

std::span<const JobKey> job_keys() {
  static const Keys keys = [] {
    Keys all;
    add_model_keys(all);
    add_input_keys(all);
    add_task_keys(all);
    add_method_keys(all);
    add_engine_keys(all);
    add_output_keys(all);
    add_cost_keys(all);
    add_estimate_keys(all);
    return all;
  }();
  return keys;
}

}  // namespace sheaf
