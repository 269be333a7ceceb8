#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "io/estimate/inputs.h"

namespace sheaf {
namespace {

constexpr uint32_t kSeed = 7;
constexpr int32_t kVocab = 30000;

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
  /// Length of the n-th of many, evenly spread in any first part of them: few long documents have the right
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

std::vector<ReadyRecord> make_up_records(const RecordStatistics& statistics, int64_t records,
                                         const std::vector<RecordHead>& heads, int32_t most_answer,
                                         bool apart) {
  const double mean_answer = statistics.answer.value_or(kUsualAnswer);
  Draws draws;
  int64_t drawn = 0;  // documents
  std::vector<ReadyRecord> made;
  for (int64_t n = 0; n < records; ++n) {
    const auto& [name, bin] = heads[static_cast<size_t>(n) % heads.size()];
    RecordParts record;
    record.bin = bin;
    const int32_t documents = statistics.documents ? draws.count(*statistics.documents) : 1;
    for (int32_t i = 0; i < documents; ++i) {
      Tokens document = draws.tokens(Draws::even_length(statistics.document, drawn++));
      if (apart)
        record.documents.push_back({std::move(document), {}});
      else
        append(record.document, document);
    }
    const int32_t questions = bin->questions.empty() ? draws.count(statistics.questions.value_or(1)) : 0;
    for (int32_t i = 0; i < questions; ++i) {
      const int32_t tokens = draws.length(statistics.question.value_or(kUsualQuestion));
      // An answer of one token is the letter of an option: always one.
      const int32_t answer = mean_answer <= 1            ? 1
                             : mean_answer < most_answer ? draws.length(mean_answer)
                                                         : most_answer;
      record.own_questions.push_back(
          {draws.tokens(tokens), std::min(answer, most_answer), Stop::line, nullptr});
    }
    for (DocumentParts& chain : record.documents) chain.relevance.assign(record.questions().size(), 0.5f);
    made.push_back({name, std::move(record)});
  }
  return made;
}

void ByteTokenizer::encode(std::string_view text, bool, Tokens& out) const {
  const auto count = static_cast<size_t>(std::ceil(static_cast<double>(text.size()) * tokens_per_byte_));
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = text.size() * i / count, end = text.size() * (i + 1) / count;
    const size_t hash = std::hash<std::string_view>()(text.substr(begin, end - begin));
    out.push_back(static_cast<TokenId>(hash % static_cast<size_t>(vocab_)));
  }
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids, bool) const {
  return std::string(static_cast<size_t>(std::round(static_cast<double>(ids.size()) / tokens_per_byte_)),
                     'x');
}

std::string ByteTokenizer::describe() const {
  return fmt::format("{:.2f} tokens per byte", tokens_per_byte_);
}

}  // namespace sheaf
