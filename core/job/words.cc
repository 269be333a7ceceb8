#include "core/job/words.h"

namespace sheaf {

template <>
std::span<const Word<TaskKind>> words_of() {
  static constexpr Word<TaskKind> words[] = {
      {TaskKind::extract, "extract"}, {TaskKind::ask, "ask"}, {TaskKind::chat, "chat"}};
  return words;
}

template <>
std::span<const Word<TooLong>> words_of() {
  static constexpr Word<TooLong> words[] = {
      {TooLong::refuse, "refuse"}, {TooLong::truncate, "truncate"}, {TooLong::split, "split"}};
  return words;
}

template <>
std::span<const Word<DuplicateIds>> words_of() {
  static constexpr Word<DuplicateIds> words[] = {{DuplicateIds::keep, "keep"},
                                                 {DuplicateIds::refuse, "refuse"}};
  return words;
}

template <>
std::span<const Word<ScoreKind>> words_of() {
  static constexpr Word<ScoreKind> words[] = {{ScoreKind::dense, "dense"},
                                              {ScoreKind::sparse, "sparse"},
                                              {ScoreKind::probability, "probability"},
                                              {ScoreKind::logit, "logit"}};
  return words;
}

template <>
std::span<const Word<ValueSight>> words_of() {
  static constexpr Word<ValueSight> words[] = {{ValueSight::independent, "independent"},
                                               {ValueSight::positional, "positional"}};
  return words;
}

template <>
std::span<const Word<KeyForm>> words_of() {
  static constexpr Word<KeyForm> words[] = {{KeyForm::name, "name"}, {KeyForm::marker, "marker"}};
  return words;
}

template <>
std::span<const Word<ValueEnd>> words_of() {
  static constexpr Word<ValueEnd> words[] = {{ValueEnd::literal, "literal"}, {ValueEnd::line, "line"}};
  return words;
}

template <>
std::span<const Word<CutValues>> words_of() {
  static constexpr Word<CutValues> words[] = {{CutValues::keep, "keep"}, {CutValues::null, "null"}};
  return words;
}

template <>
std::span<const Word<OptionChoice>> words_of() {
  static constexpr Word<OptionChoice> words[] = {{OptionChoice::likeliest, "likeliest"},
                                                 {OptionChoice::greedy, "greedy"}};
  return words;
}

template <>
std::span<const Word<Findings>> words_of() {
  static constexpr Word<Findings> words[] = {{Findings::answers, "answers"},
                                             {Findings::summaries, "summaries"}};
  return words;
}

template <>
std::span<const Word<Stacking>> words_of() {
  static constexpr Word<Stacking> words[] = {{Stacking::isolated, "isolated"}, {Stacking::joint, "joint"}};
  return words;
}

template <>
std::span<const Word<Precision>> words_of() {
  static constexpr Word<Precision> words[] = {{Precision::automatic, "auto"}, {Precision::f32, "f32"},
                                              {Precision::int16, "int16"},    {Precision::int8, "int8"},
                                              {Precision::bf16, "bf16"},      {Precision::fp8, "fp8"}};
  return words;
}

template <>
std::span<const Word<KvPrecision>> words_of() {
  static constexpr Word<KvPrecision> words[] = {{KvPrecision::automatic, "auto"}, {KvPrecision::fp8, "fp8"}};
  return words;
}

template <>
std::span<const Word<WeightStorage>> words_of() {
  static constexpr Word<WeightStorage> words[] = {{WeightStorage::automatic, "auto"},
                                                  {WeightStorage::expanded, "expanded"},
                                                  {WeightStorage::packed, "packed"}};
  return words;
}
template <>
std::span<const Word<CpuKernels>> words_of() {
  static constexpr Word<CpuKernels> words[] = {{CpuKernels::automatic, "auto"},
                                               {CpuKernels::reference, "reference"}};
  return words;
}

template <>
std::span<const Word<OutputFormat>> words_of() {
  static constexpr Word<OutputFormat> words[] = {{OutputFormat::jsonl, "jsonl"},
                                                 {OutputFormat::parquet, "parquet"},
                                                 {OutputFormat::openai_batch, "openai-batch"}};
  return words;
}

template <>
std::span<const Word<Aggregate>> words_of() {
  static constexpr Word<Aggregate> words[] = {
      {Aggregate::max, "max"}, {Aggregate::mixture, "mixture"}, {Aggregate::product, "product"}};
  return words;
}

}  // namespace sheaf
