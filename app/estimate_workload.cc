#include <algorithm>
#include <cmath>
#include <random>

#include "app/estimate_inputs.h"

namespace sheaf {
namespace {

constexpr uint32_t kSeed = 7;
constexpr int32_t kVocab = 30000;

/// Lengths as real corpora have them: gamma, with a standard deviation of half the mean.
class Draws {
 public:
  int32_t length(double mean) {
    std::gamma_distribution<double> gamma(4, mean / 4);
    return std::max(1, static_cast<int32_t>(std::lround(gamma(random_))));
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

Workload make_up_workload(const RowStatistics& statistics, int64_t rows) {
  Draws draws;
  Workload workload;
  workload.name = "statistics";
  workload.vocab = kVocab;
  auto bin = std::make_shared<BinParts>();
  bin->instruction = draws.tokens(static_cast<int32_t>(std::lround(statistics.instruction)));
  workload.common = static_cast<int64_t>(bin->instruction.size());
  std::vector<ItemParts> items;
  for (int64_t row = 0; row < rows; ++row) {
    ItemParts item;
    item.bin = bin;
    item.item = static_cast<int32_t>(row);
    item.stream = static_cast<uint64_t>(row);
    item.document = draws.tokens(draws.length(statistics.document));
    const int32_t questions = draws.count(statistics.questions);
    for (int32_t i = 0; i < questions; ++i) {
      const int32_t tokens = draws.length(statistics.question);
      // An answer of one token is the letter of an option: always one.
      const int32_t answer = statistics.answer <= 1 ? 1 : draws.length(statistics.answer);
      item.own_questions.push_back({draws.tokens(tokens), answer, Stop::line, nullptr});
    }
    workload.questions += questions;
    items.push_back(std::move(item));
  }
  workload.bins.push_back(std::move(items));
  return workload;
}

}  // namespace sheaf
