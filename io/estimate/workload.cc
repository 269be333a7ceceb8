#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "io/estimate/inputs.h"

namespace sheaf {
namespace {

constexpr uint32_t kSeed = 7;
constexpr int32_t kVocab = 30000;
constexpr double kUsualQuestion = 12;  // tokens

/// Where a gamma distribution of shape 4 and mean 1 reaches the share `u`.
double gamma_quantile(double u) {
  double low = 0, high = 8;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2, x = 4 * middle;
    const double below = 1 - std::exp(-x) * (1 + x + x * x / 2 + x * x * x / 6);
    (below < u ? low : high) = middle;
  }
  return low;
}

/// Lengths as real corpora have them: gamma, with a standard deviation of half the mean.
class Draws {
 public:
  int32_t length(double mean) {
    std::gamma_distribution<double> gamma(4, mean / 4);
    return std::max(1, static_cast<int32_t>(std::lround(gamma(random_))));
  }
  /// The same of the n-th of many, evenly spread in any first part of them: few long documents have the right
  /// mean.
  static int32_t even_length(double mean, int64_t n) {
    const double u = std::fmod((static_cast<double>(n) + 0.5) * std::numbers::phi, 1.0);
    return std::max(1, static_cast<int32_t>(std::lround(mean * gamma_quantile(u))));
  }
  /// One of the two whole numbers around the mean, at least 1.
  int32_t count(double mean) {
    const double whole = std::floor(mean);
    const bool more = std::uniform_real_distribution<double>()(random_) < mean - whole;
    return std::max(1, static_cast<int32_t>(whole) + (more ? 1 : 0));
  }
  Tokens tokens(int32_t count) {
    Tokens tokens;
    for (int32_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(random_() % kVocab));
    return tokens;
  }

 private:
  std::mt19937 random_{kSeed};
};

}  // namespace

Tokens make_up_tokens(double count) {
  return Draws().tokens(static_cast<int32_t>(std::lround(count)));
}

std::vector<ReadyItem> make_up_rows(const RowStatistics& statistics, int64_t rows,
                                    const std::vector<RowHead>& heads, int32_t most_answer, bool apart) {
  Draws draws;
  int64_t drawn = 0;  // documents
  std::vector<ReadyItem> made;
  for (int64_t row = 0; row < rows; ++row) {
    const auto& [name, bin] = heads[static_cast<size_t>(row) % heads.size()];
    ItemParts item;
    item.bin = bin;
    const int32_t documents = statistics.documents ? draws.count(*statistics.documents) : 1;
    for (int32_t i = 0; i < documents; ++i) {
      Tokens document = draws.tokens(Draws::even_length(statistics.document, drawn++));
      if (apart)
        item.experts.push_back({std::move(document), {}});
      else
        append(item.document, document);
    }
    const int32_t questions = bin->questions.empty() ? draws.count(statistics.questions.value_or(1)) : 0;
    for (int32_t i = 0; i < questions; ++i) {
      const int32_t tokens = draws.length(statistics.question.value_or(kUsualQuestion));
      // An answer of one token is the letter of an option: always one.
      const int32_t answer = statistics.answer <= 1            ? 1
                             : statistics.answer < most_answer ? draws.length(statistics.answer)
                                                               : most_answer;
      item.own_questions.push_back(
          {draws.tokens(tokens), std::min(answer, most_answer), Stop::line, nullptr});
    }
    for (DocumentParts& expert : item.experts) expert.relevance.assign(item.questions().size(), 0.5f);
    made.push_back({name, std::move(item)});
  }
  return made;
}

Workload make_up_workload(const RowStatistics& statistics, int64_t rows) {
  auto bin = std::make_shared<BinParts>();
  bin->instruction = make_up_tokens(statistics.instruction.value_or(0));
  Workload workload;
  workload.name = "statistics";
  workload.vocab = kVocab;
  workload.common = static_cast<int64_t>(bin->instruction.size());
  std::vector<ItemParts>& items = workload.bins.emplace_back();
  for (ReadyItem& row : make_up_rows(statistics, rows, {{"", bin}}, INT32_MAX)) {
    row.parts.item = static_cast<int32_t>(items.size());
    row.parts.stream = items.size();
    workload.questions += static_cast<int64_t>(row.parts.own_questions.size());
    items.push_back(std::move(row.parts));
  }
  return workload;
}

}  // namespace sheaf
