#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/weight_storage.h"
#include "core/segments/aggregate.h"

namespace sheaf {

// What the words of a job file stand for. words.cc has the words of each enum, which files, errors, help and
// reports share.

enum class TaskKind : uint8_t {
  none,  ///< no word: lengths without a job, as `sheaf estimate` takes them
  extract,
  ask,
  chat,
};

/// What becomes of a record whose document is too long for a prompt of its own.
enum class TooLong : uint8_t {
  refuse,
  truncate,  ///< its end is left out
  split,     ///< it is asked part by part
};

/// What becomes of a record whose id an earlier one has.
enum class DuplicateIds : uint8_t { keep, refuse };

/// What the scores of a corpus are.
enum class ScoreKind : uint8_t {
  dense,        ///< cosines in [-1, 1], as of embeddings and of ColBERT
  sparse,       ///< not negative and without bound, as of BM25
  probability,  ///< in [0, 1]
  logit,        ///< any number, as a reranker gives before its sigmoid
};

/// Whether values that are decoded side by side see each other.
enum class ValueSight : uint8_t { independent, positional };

/// What stands before a value in the answer.
enum class KeyForm : uint8_t {
  name,    ///< the attribute's name, as a key of a JSON object
  marker,  ///< its number in the instruction's list of attributes
};

/// Where a value ends.
enum class ValueEnd : uint8_t {
  literal,  ///< where its JSON literal is complete, at the latest at a newline
  line,     ///< at a newline only
};

/// What becomes of a value that reached method.max_value_tokens.
enum class CutValues : uint8_t {
  keep,  ///< as far as it was written, with a note
  null,  ///< null, with a note
};

/// How one of several allowed answers is chosen.
enum class OptionChoice : uint8_t {
  likeliest,  ///< the one that is likeliest as a whole
  greedy,     ///< token by token, each the likeliest of those that an option goes on with
};

/// What each document of `map-reduce` gives.
enum class Findings : uint8_t {
  answers,    ///< its own answer to each question
  summaries,  ///< a summary, for all questions
};

/// How the documents of a prompt stand beside each other.
enum class Stacking : uint8_t { isolated, joint };

/// What weights are computed as: fp32 and whole numbers on the CPU only, bf16 and FP8 on a GPU only.
enum class Precision : uint8_t { automatic, f32, int16, int8, bf16, fp8 };
constexpr bool only_on_gpu(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp8;
}

/// What keys and values are kept as: as the engine has them, or e4m3 (GPU only).
enum class KvPrecision : uint8_t { automatic, fp8 };

/// How the CPU computes: quick, or as the plain fp32 definition.
enum class CpuKernels : uint8_t { automatic, reference };

enum class OutputFormat : uint8_t {
  jsonl,
  parquet,
  openai_batch,  ///< chat: the output lines of OpenAI's batch API
};

template <class Enum>
struct Word {
  Enum value;
  std::string_view word;
};

/// The words of an enum, in the order in which people read them.
template <class Enum>
std::span<const Word<Enum>> words_of();
template <>
std::span<const Word<TaskKind>> words_of();
template <>
std::span<const Word<TooLong>> words_of();
template <>
std::span<const Word<DuplicateIds>> words_of();
template <>
std::span<const Word<ScoreKind>> words_of();
template <>
std::span<const Word<ValueSight>> words_of();
template <>
std::span<const Word<KeyForm>> words_of();
template <>
std::span<const Word<ValueEnd>> words_of();
template <>
std::span<const Word<CutValues>> words_of();
template <>
std::span<const Word<OptionChoice>> words_of();
template <>
std::span<const Word<Findings>> words_of();
template <>
std::span<const Word<Stacking>> words_of();
template <>
std::span<const Word<Precision>> words_of();
template <>
std::span<const Word<KvPrecision>> words_of();
template <>
std::span<const Word<WeightStorage>> words_of();
template <>
std::span<const Word<CpuKernels>> words_of();
template <>
std::span<const Word<OutputFormat>> words_of();
template <>
std::span<const Word<Aggregate>> words_of();

/// Empty where the value has none.
template <class Enum>
std::string_view word_of(Enum value) {
  for (const Word<Enum>& each : words_of<Enum>())
    if (each.value == value) return each.word;
  return {};
}

template <class Enum>
std::optional<Enum> read_word(std::string_view word) {
  for (const Word<Enum>& each : words_of<Enum>())
    if (each.word == word) return each.value;
  return std::nullopt;
}

template <class Enum>
std::vector<std::string> all_words() {
  std::vector<std::string> all;
  for (const Word<Enum>& each : words_of<Enum>()) all.emplace_back(each.word);
  return all;
}

}  // namespace sheaf
