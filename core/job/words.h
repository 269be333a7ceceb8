#pragma once
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/precision.h"
#include "core/segments/stack.h"

namespace sheaf {

// What the words of a job file stand for. Files, errors, help and reports share the words of each enum.

/// The words of an enum, in the order of its values; empty for a value that no file has.
template <class Enum>
inline constexpr std::string_view kWords[] = {};

enum class TaskKind : uint8_t {
  none,  ///< no word: lengths without a job, as `sheaf estimate` takes them
  extract,
  ask,
  chat,
};
template <>
inline constexpr std::string_view kWords<TaskKind>[] = {"", "extract", "ask", "chat"};

/// What becomes of a record whose document is too long for a prompt of its own.
enum class TooLong : uint8_t {
  refuse,
  truncate,  ///< its end is left out
  split,     ///< it is asked part by part
};
template <>
inline constexpr std::string_view kWords<TooLong>[] = {"refuse", "truncate", "split"};

/// How much a model thinks before it answers.
enum class Reasoning : uint8_t {
  none,  ///< it answers at once
  low,
  medium,
  high,
};
template <>
inline constexpr std::string_view kWords<Reasoning>[] = {"none", "low", "medium", "high"};

/// How HTML in documents is read.
enum class Html : uint8_t {
  keep,  ///< with its tags
  text,  ///< as a reader sees it
};
template <>
inline constexpr std::string_view kWords<Html>[] = {"keep", "text"};

/// What becomes of a record whose id an earlier one has.
enum class DuplicateIds : uint8_t { keep, refuse };
template <>
inline constexpr std::string_view kWords<DuplicateIds>[] = {"keep", "refuse"};

/// What the scores of a corpus are.
enum class ScoreKind : uint8_t {
  dense,        ///< cosines in [-1, 1], as of embeddings and of ColBERT
  sparse,       ///< not negative and without bound, as of BM25
  probability,  ///< in [0, 1]
  logit,        ///< any number, as a reranker gives before its sigmoid
};
template <>
inline constexpr std::string_view kWords<ScoreKind>[] = {"dense", "sparse", "probability", "logit"};

/// Whether values that are decoded side by side see each other.
enum class ValueSight : uint8_t { independent, positional };
template <>
inline constexpr std::string_view kWords<ValueSight>[] = {"independent", "positional"};

/// What stands before a value in the answer.
enum class KeyForm : uint8_t {
  name,    ///< the attribute's name, as a key of a JSON object
  marker,  ///< its number in the instruction's list of attributes
};
template <>
inline constexpr std::string_view kWords<KeyForm>[] = {"name", "marker"};

/// Where a value ends.
enum class ValueEnd : uint8_t {
  literal,  ///< where its JSON literal is complete, at the latest at a newline
  line,     ///< at a newline only
};
template <>
inline constexpr std::string_view kWords<ValueEnd>[] = {"literal", "line"};

/// What becomes of a value that reached method.max_value_tokens.
enum class CutValues : uint8_t {
  keep,  ///< as far as it was written, with a note
  null,  ///< null, with a note
};
template <>
inline constexpr std::string_view kWords<CutValues>[] = {"keep", "null"};

/// Whether a number or a date may be one whose digits its document does not hold.
enum class Numbers : uint8_t {
  any,     ///< with a note
  copied,  ///< null, with a note
};
template <>
inline constexpr std::string_view kWords<Numbers>[] = {"any", "copied"};

/// What the answer to a question may be.
enum class AnswerKind : uint8_t {
  free,    ///< any text
  span,    ///< a text that the context holds
  choice,  ///< one of the question's options
};
template <>
inline constexpr std::string_view kWords<AnswerKind>[] = {"free", "span", "choice"};

/// How a text that is copied from a document is chosen.
enum class SpanSearch : uint8_t {
  greedy,     ///< token by token, each the likeliest of those that a text of the document continues with
  likeliest,  ///< the one that is likeliest as a whole
};
template <>
inline constexpr std::string_view kWords<SpanSearch>[] = {"greedy", "likeliest"};

/// How one of several allowed answers is chosen.
enum class OptionChoice : uint8_t {
  likeliest,  ///< the one that is likeliest as a whole
  greedy,     ///< token by token, each the likeliest of the next tokens of options
};
template <>
inline constexpr std::string_view kWords<OptionChoice>[] = {"likeliest", "greedy"};

/// Where a free answer to a question ends, besides its length limit.
enum class AnswerEnd : uint8_t {
  line,         ///< at a line break
  end_of_text,  ///< where the model ends its turn
};
template <>
inline constexpr std::string_view kWords<AnswerEnd>[] = {"line", "end_of_text"};

/// What a row says of several samples of its answers.
enum class SampleRows : uint8_t {
  vote,  ///< the most frequent answer, with its share as confidence
  all,   ///< every sample
};
template <>
inline constexpr std::string_view kWords<SampleRows>[] = {"vote", "all"};

/// What each document of `map-reduce` gives.
enum class Findings : uint8_t {
  answers,    ///< its own answer to each question
  summaries,  ///< a summary, for all questions
};
template <>
inline constexpr std::string_view kWords<Findings>[] = {"answers", "summaries"};

/// How the documents of a prompt stand beside each other.
enum class Stacking : uint8_t { isolated, joint };
template <>
inline constexpr std::string_view kWords<Stacking>[] = {"isolated", "joint"};

/// How the CPU computes: quick, or as the plain fp32 definition.
enum class CpuKernels : uint8_t { automatic, reference };
template <>
inline constexpr std::string_view kWords<CpuKernels>[] = {"auto", "reference"};

enum class OutputFormat : uint8_t {
  jsonl,
  parquet,
  arrow,         ///< an Arrow IPC file
  openai_batch,  ///< chat: the output lines of OpenAI's batch API
};
template <>
inline constexpr std::string_view kWords<OutputFormat>[] = {"jsonl", "parquet", "arrow", "openai-batch"};
/// How the names of rows files end in each format.
inline constexpr std::string_view kRowsEndings[] = {".jsonl", ".parquet", ".arrow", ".jsonl"};
constexpr std::string_view rows_ending(OutputFormat format) {
  return kRowsEndings[static_cast<size_t>(format)];
}

// Enums of other folders.

template <>
inline constexpr std::string_view kWords<Precision>[] = {"auto", "f32", "int16", "int8", "bf16", "fp8"};

template <>
inline constexpr std::string_view kWords<KvPrecision>[] = {"auto", "fp8"};

template <>
inline constexpr std::string_view kWords<WeightStorage>[] = {"auto", "expanded", "packed"};

template <>
inline constexpr std::string_view kWords<Aggregate>[] = {"max", "mixture", "product"};

/// Empty where the value has none.
template <class Enum>
constexpr std::string_view word_of(Enum value) {
  return kWords<Enum>[static_cast<size_t>(value)];
}

template <class Enum>
std::optional<Enum> read_word(std::string_view word) {
  for (size_t i = 0; !word.empty() && i < std::size(kWords<Enum>); ++i)
    if (kWords<Enum>[i] == word) return static_cast<Enum>(i);
  return std::nullopt;
}

template <class Enum>
std::vector<std::string> all_words() {
  std::vector<std::string> all;
  for (const std::string_view word : kWords<Enum>)
    if (!word.empty()) all.emplace_back(word);
  return all;
}

}  // namespace sheaf
