#include <algorithm>
#include <cmath>
#include <set>

#include "core/backend/footprint.h"
#include "core/base/error.h"
#include "core/estimate/estimate.h"
#include "core/methods/method.h"

namespace sheaf {
namespace {

/// What the first of two rounds computes besides the documents, and the last prompt of what it gave.
size_t tokens_of_findings(const RecordParts& parts) {
  size_t asked = 0;
  for (const QuestionParts& question : parts.findings->asked)
    asked += question.tokens.size() + static_cast<size_t>(question.max_tokens);
  return parts.documents.size() * asked +
         parts.findings->asked.size() * parts.findings->most_tokens(parts.documents.size());
}

/// Tokens that the case computes for some records, the instruction that prompts share left out.
double tokens_of(std::span<const ReadyRecord> records, const EstimateCase& asked, TooLong too_long,
                 int32_t answer_tokens) {
  const Method& method = find_method(asked.method.name);
  const bool shared = method.shares;
  size_t tokens = 0;
  std::set<const Tokens*, decltype([](const Tokens* a, const Tokens* b) { return *a < *b; })> seen;
  for (const ReadyRecord& record : records) {
    const RecordParts& parts = record.parts;
    if (!record.refused.empty() ||
        (too_long == TooLong::refuse && least_positions(parts) > asked.config.context))
      continue;
    if (parts.findings) tokens += tokens_of_findings(parts);
    const size_t chains = 1 + (method.wording.fused ? parts.documents.size() : 0);
    size_t document = parts.document_tokens() + parts.bin->opening.size();
    if (too_long == TooLong::truncate)
      document = std::min(document, static_cast<size_t>(asked.config.context));
    if (shared && (!parts.documents.empty() || seen.insert(&parts.document).second)) tokens += document;
    for (const QuestionParts& question : parts.questions()) {
      const AnswerTrie* list = question.list();
      int32_t answer = list ? list->longest() - 1 : question.max_tokens;
      if (!list && answer_tokens > 0) answer = std::min(answer, answer_tokens);
      tokens += chains * (question.tokens.size() + static_cast<size_t>(answer));
      if (!shared) tokens += parts.bin->instruction.size() + document;
    }
  }
  return static_cast<double>(tokens);
}

}  // namespace

PlannedRecords plan_records(std::span<const ReadyRecord> records, const EstimateCase& asked,
                            const MemoryPlan& memory, const PackingRules& rules) {
  PlanLimits limits;
  limits.context = asked.config.context;
  limits.too_long = rules.too_long;
  limits.fits = [&](const Stack& stack) {
    int64_t pages = 0;
    for (const int32_t keys : stack.most_keys()) pages += pages_for(keys);
    return pages <= memory.pages;
  };
  limits.prompt_tokens = asked.method.prompt_tokens;
  PlanLimits endless = limits;  // tells records that memory cannot hold from those that no prompt holds
  endless.fits = [](const Stack&) { return true; };
  Planner planner(make_builder(asked.method), limits), alone(make_builder(asked.method), endless);
  PlannedRecords planned;
  const auto window = static_cast<size_t>(rules.window);
  for (; !records.empty(); records = records.subspan(std::min(window, records.size()))) {
    const auto taken = records.first(std::min(window, records.size()));
    Plan plan = planner.plan({taken.begin(), taken.end()});
    std::ranges::move(plan.stacks, std::back_inserter(planned.stacks));
    for (auto& [index, reason] : plan.refused) {
      const ReadyRecord& record = taken[static_cast<size_t>(index)];
      if (record.refused.empty()) planned.longest = std::max(planned.longest, least_positions(record.parts));
      if (record.refused.empty() && alone.plan({record}).refused.empty()) ++planned.unheld;
      if (planned.refused++ == 0) planned.reason = std::move(reason);
    }
  }
  return planned;
}

std::vector<ReadyRecord> repeat_records(std::span<const ReadyRecord> records, int64_t count, int32_t vocab) {
  // A document that many records have and no other is the whole corpus's.
  const bool same =
      std::ssize(records) >= kFewRecords && std::ranges::all_of(records, [&](const ReadyRecord& record) {
        return record.parts.documents.empty() && record.parts.document == records[0].parts.document;
      });
  std::vector<ReadyRecord> repeated;
  repeated.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    ReadyRecord record = records[static_cast<size_t>(i) % records.size()];
    const int64_t shift = i / std::ssize(records);
    const auto change = [&](Tokens& tokens) {
      for (TokenId& token : tokens) token = static_cast<TokenId>((token + shift) % vocab);
    };
    if (!same) change(record.parts.document);
    for (DocumentParts& chain : record.parts.documents) change(chain.tokens);
    for (QuestionParts& question : record.parts.own_questions) change(question.tokens);
    repeated.push_back(std::move(record));
  }
  return repeated;
}

double sampling_error(std::span<const ReadyRecord> records, int64_t whole, const EstimateCase& asked,
                      const PackingRules& rules, int32_t answer_tokens) {
  constexpr size_t kMostRuns = 16;
  constexpr double kUsualSpread = 0.5;  // of records' tokens, as a share of their mean
  constexpr double kOfOneRow = 2;       // a third to three times
  const size_t runs = std::min(kMostRuns, records.size());
  const double left_out = 1 - static_cast<double>(records.size()) / static_cast<double>(whole);
  if (left_out <= 0) return 0;
  if (runs < 2) return kOfOneRow;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < runs; ++i) {
    const size_t begin = records.size() * i / runs, end = records.size() * (i + 1) / runs;
    const double mean = tokens_of(records.subspan(begin, end - begin), asked, rules.too_long, answer_tokens) /
                        static_cast<double>(end - begin);
    sum += mean;
    squares += mean * mean;
  }
  const auto count = static_cast<double>(runs);
  if (!(sum > 0)) return 0;
  const double variance = std::max(0.0, squares - sum * sum / count) / (count - 1);
  // Student's t for nine in ten, by degrees of freedom.
  constexpr double kT[kMostRuns] = {0,    6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89,
                                    1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75};
  double spread = std::sqrt(variance) / (sum / count);
  if (std::ssize(records) < kFewRecords) spread = std::max(spread, kUsualSpread);
  return std::min(kOfOneRow, kT[runs - 1] * spread * std::sqrt(left_out / count));
}

}  // namespace sheaf
