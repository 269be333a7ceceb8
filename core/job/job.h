#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/interrupted.h"
#include "core/job/device.h"
#include "core/job/words.h"

namespace sheaf {

class Passages;    // io/passages
class TableInput;  // io/base

/// What is proposed for the next tokens of answers.
struct Speculate {
  bool lookup = false;  ///< what followed, in the text that an answer sees, the tokens it ends with
  std::string draft;    ///< or what this smaller model says; empty: none
  bool always = false;  ///< with a draft: also where that should save no time
  bool any() const { return lookup || !draft.empty(); }
};

/// A job as its YAML file describes it. The defaults here are the only place where a default lives.
/// Paths are as the program opens them: those of the file are resolved against its folder.
struct Job {
  std::string file;  ///< where it was read from
  std::atomic<bool>* stop =
      &interrupted;  ///< set once the work on it is to stop in order; no key of the file

  struct ModelPart {
    std::string path;
    std::string adapter;  ///< PEFT folder; empty: none
    Precision dtype = Precision::automatic;
    Precision cpu_dtype = Precision::automatic;  ///< what `dtype: auto` is on a CPU
    Precision on_cpu() const { return dtype == Precision::automatic ? cpu_dtype : dtype; }
    WeightStorage weights = WeightStorage::automatic;
    int32_t context = 0;        ///< most positions of a prompt; 0: as the model says
    std::string chat = "auto";  ///< chat template: its name, a YAML file, or auto: as the model says
    Reasoning reasoning = Reasoning::none;  ///< chat
    int32_t reasoning_tokens = 1024;        ///< most tokens of a thought
    bool chat_is_file() const { return chat.ends_with(".yaml") || chat.ends_with(".yml"); }
  } model;

  struct Input {
    std::string path;             ///< file, folder or glob; "-": standard input
    std::string format = "auto";  ///< auto (by extension), parquet, jsonl, openai-batch, or a dataset's name
    std::string id;               ///< column names; empty: the row number
    std::string category;         ///< extract: column; empty: the schema's only category
    std::vector<std::string> document;  ///< extract: columns, joined by newlines
    std::string context;                ///< ask: column
    std::string context_id;             ///< ask: column; rows with one id have the context of any of them
    std::string documents;  ///< ask: a list column of texts or of {text, title, score}, instead of a context
    std::string scores;     ///< ask: a list column with the relevance of each document
    ScoreKind scores_are = ScoreKind::probability;
    /// Whether documents are as relevant as they make the question likely.
    bool scored_by_question() const { return scores == "question"; }
    std::string corpus;         ///< ask: file or folder of passages that questions are looked up in
    std::string corpus_index;   ///< ask: where their index lies; empty: beside them
    std::string rerank_scores;  ///< ask: a second such column, of a reranker
    ScoreKind rerank_scores_are = ScoreKind::probability;
    int32_t top_documents = 0;  ///< ask: only so many documents, the most relevant ones; 0: all
    /// Whether a record has documents that can be read one by one.
    bool has_documents() const { return !documents.empty() || !corpus.empty(); }
    std::string questions;    ///< ask: a list column of strings or of {id, question, options}
    std::string question;     ///< ask: a text column, for one row per question
    std::string options;      ///< ask: a list column with the choices of `question`
    std::string answer_kind;  ///< ask: a column with what the answer to `question` may be
    Html html = Html::keep;
    std::string locale;                         ///< extract: of numbers and dates; empty: not known
    std::vector<std::string> keep;              ///< columns that the rows repeat as they are
    std::map<std::string, std::string> places;  ///< of keys: "file:line: input.id" by "input.id"
    int64_t limit = 0;                          ///< most rows to read; 0: every row

    struct Dataset {
      std::string split = "test";  ///< narrativeqa: train, valid or test
      int32_t turns = 2;       ///< quac: earlier turns of the dialog before a question, with their answers
      int32_t shots = 0;       ///< examples that the instruction ends with
      std::string shots_from;  ///< the dataset they are taken from; narrativeqa: its train set
    } dataset;                 ///< where `format` names one
    TooLong too_long = TooLong::refuse;
    DuplicateIds duplicate_ids = DuplicateIds::keep;

    struct Copy {
      std::string path;
      int64_t bytes = 0;
      std::string sha256;
    } standard_input;  ///< where path is "-", or of a table: what is read in its place; no key of the file
    bool needs_questions = true;  ///< ask: false where documents without any are of use; no key of the file

    struct Listing {
      std::string path, format;        ///< keys that it is for
      std::vector<std::string> files;  ///< sorted
    };
    /// Files of the corpus, listed once so that the rows and the fingerprint of a run are of the same ones
    /// (io/corpus/corpus.h); no key of the file.
    std::shared_ptr<const Listing> listing;
    std::shared_ptr<Passages> passages;  ///< of `corpus`, once it is open; no key of the file
    std::shared_ptr<TableInput> table;   ///< records that come in place of `path`; no key of the file
  } input;

  struct Task {
    TaskKind kind = TaskKind::none;
    std::string schema;           ///< extract: YAML file
    std::string instruction;      ///< replaces the built-in text of the task
    bool list_attributes = true;  ///< extract: in the instruction; otherwise each where it is asked for
    AnswerKind answers = AnswerKind::free;  ///< ask: of questions without options that do not say it
    bool needs_schema = true;  ///< extract: false where it is yet to be written; no key of the file
    bool free_spans = false;  ///< spans are asked for as free texts: no answer is decoded; no key of the file

    /// The user's own words (core/task/own_prompt.h); a part that is not given has the built-in ones.
    struct Prompt {
      std::optional<std::string> system;       ///< empty: no system turn; not given: the chat template's own
      std::optional<std::string> instruction;  ///< begins the user's turn
      std::optional<std::string> document;     ///< a document with what stands around it
      std::optional<std::string> question;     ///< from the document to the end of the user's turn
      std::optional<std::string> example;      ///< each stands after the instruction
      AnswerEnd answer_end = AnswerEnd::line;  ///< ask
      std::string file;                        ///< gives the parts that the job leaves out; empty: none

      struct Column {
        std::string name;
        std::string place;  ///< "configs/demo.yaml:9: task.prompt.document"
      };
      std::string document_place;   ///< of `document`, for messages; no key of the file
      std::vector<Column> columns;  ///< of the corpus, which the parts name; no key of the file
      std::string shots;            ///< examples of input.shots as the prompt has them; no key of the file
    } prompt;

    struct Examples {
      std::string path;                 ///< records with gold values, or a dataset; empty: no examples
      int32_t per_category = 8;         ///< most examples of a category
      uint64_t seed = 0;                ///< of their choice
      bool unmentioned_absent = false;  ///< an attribute that gold does not name is null, not left out
    } examples;                         ///< earlier turns of the chat, shared by all prompts of a category

    struct Trust {
      std::string run;            ///< folder of a finished run; empty: none
      double at_least = 0;        ///< least confidence of a value that is taken
      double nulls_at_least = 0;  ///< least confidence of a null that is taken; 0: as at_least
      double precision = 0;       ///< in place of at_least: least mean confidence of what is taken
    } trust;  ///< extract: values of another model that are taken instead of decoding them
  } task;

  struct Method {
    std::string name = "hpd";                        ///< of core/methods/method.cc
    ValueSight values = ValueSight::independent;     ///< hpd
    Stacking stacking = Stacking::isolated;          ///< hpd
    KeyForm keys = KeyForm::name;                    ///< hpd
    ValueEnd value_end = ValueEnd::literal;          ///< hpd
    CutValues cut_values = CutValues::keep;          ///< extract
    Numbers numbers = Numbers::any;                  ///< extract
    OptionChoice options = OptionChoice::likeliest;  ///< of enum attributes
    int32_t documents = 6;          ///< documents or contexts per prompt; 0: as many as prompt_tokens allows
    int32_t questions = 0;          ///< most questions per prompt; 0: all of its documents
    int32_t prompt_tokens = 4096;   ///< most tokens of one prompt
    int32_t max_value_tokens = 30;  ///< K_max: most tokens of one value or answer
    float null_bias = 0;            ///< added to the log-probability of null
    SpanSearch search = SpanSearch::greedy;  ///< of spans
    float length_norm = 0;        ///< likeliest spans: the power of the length that scores are divided by
    int32_t search_tokens = 256;  ///< likeliest spans: tokens after which a search ends
    float contrast = -1;          ///< pced: of chains with the amateur; negative: dynamic
    float prior_weight = 2.5;     ///< pced: of the logarithm of a document's relevance
    Aggregate aggregate = Aggregate::max;   ///< pced
    Findings findings = Findings::answers;  ///< map-reduce
    int32_t finding_tokens = 64;            ///< map-reduce: most tokens of one finding
    float document_temperature = 1;         ///< ape: scores of documents' keys are divided by it
    float document_scale = 1;               ///< ape: the power of what these keys weigh together
    float temperature = 0;                  ///< 0: greedy
    int32_t top_k = 0;
    float top_p = 1;
    uint64_t seed = 0;
    int32_t samples = 1;  ///< answers that are drawn to each question; chat: where the request has no `n`
    Speculate speculate = {};
  } method;

  struct Engine {
    Device device;
    CpuKernels kernels = CpuKernels::automatic;
    bool reproducible = false;    ///< a row's answers do not depend, to the bit, on what runs beside it
    int32_t threads = 0;          ///< 0: every core
    int32_t tokens_per_step = 0;  ///< 0: auto
    double kv_memory_gb = 0;      ///< 0: auto
    KvPrecision kv_dtype = KvPrecision::automatic;
    struct KvStorePart {
      std::string path;      ///< folder; empty: none
      double gb = 50;        ///< most that it holds
      double memory_gb = 0;  ///< most of it in memory; 0: auto
      int32_t bits = 16;     ///< bits of a number in the store; 16: as it is computed, 8: rounded
      /// Whether answers may differ from those without it.
      bool rounds() const { return !path.empty() && bits == 8; }
    } kv_store;            ///< of keys and values that outlive the run
    int32_t prompts = 0;   ///< most prompts decoded at once; 0: as many as there is room for
    int32_t window = 512;  ///< corpus rows planned together
  } engine;

  struct Output {
    std::string path;        ///< {date}, {time} and {job} of the file are filled in
    bool needs_path = true;  ///< false where rows go elsewhere; no key of the file
    bool dated = false;      ///< the file's path has the date or the time in it; no key of the file
    std::string work;        ///< where the run works whose path is a URI; empty: in the user's cache
    std::string reuse;  ///< a finished run whose answers are taken where they are the same (docs/reuse.md)
    OutputFormat format = OutputFormat::jsonl;
    int64_t rows_per_file = 1000000;  ///< a rows file ends with the window that reaches it
    bool logprobs = false;            ///< the log-probability of every value
    bool raw = false;                 ///< the text the model wrote for every value
    bool spans = false;               ///< where every value stands in its document
    bool trace = false;               ///< pced: which document spoke each token of an answer
    bool sources = false;             ///< extract: rows say which model gave each value
    bool reasoning = false;           ///< what the model thought before an answer
    bool confidence = false;          ///< how likely every value is right
    SampleRows samples = SampleRows::vote;
    std::string calibration;  ///< file that `sheaf calibrate` wrote; empty: probabilities as decoded
    bool tokens = false;      ///< how many tokens document and answers have
    bool timing = false;      ///< seconds from the engine's taking the row to its last answer
  } output;

  struct Cost {
    double usd_per_hour = 0;  ///< of one device
    int32_t devices = 1;
    std::string hardware;  ///< the device of `sheaf estimate` that the price is for; empty: not said
  } cost;
};

}  // namespace sheaf
