#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/engine/step_batch.h"

namespace sheaf {
namespace {

constexpr float kEndless = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

std::vector<float> random_logits(size_t count, std::mt19937::result_type seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

double exact_logprob(const std::vector<float>& logits, TokenId token) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(sum);
}

Pick sampled(float temperature, float uniform, int32_t top_k = 0, float top_p = 1) {
  Pick pick;
  pick.temperature = temperature;
  pick.uniform = uniform;
  pick.top_k = top_k;
  pick.top_p = top_p;
  return pick;
}

TEST(Pick, GreedyTakesTheHighestWithTheLowestId) {
  for (const size_t size : {1, 15, 16, 17, 100, 1003}) {
    std::vector<float> logits = random_logits(size, size);
    for (size_t i = 0; i < size; ++i) {
      std::vector<float> raised = logits;
      raised[i] = 50;
      raised.back() = 50;
      EXPECT_EQ(pick_token(raised, {}, {}).token, static_cast<TokenId>(i));
    }
  }
}

TEST(Pick, LogProbabilityIsOverTheWholeVocabulary) {
  for (const size_t size : {1, 5, 33, 50000}) {
    const std::vector<float> logits = random_logits(size, 7);
    const Picked picked = pick_token(logits, {}, {});
    EXPECT_NEAR(static_cast<double>(picked.logprob), exact_logprob(logits, picked.token), 1e-6);
    const Tokens allowed{static_cast<TokenId>(size / 2)};
    const Picked forced = pick_token(logits, sampled(0.7f, 0.5f), allowed);
    EXPECT_EQ(forced.token, allowed[0]);
    EXPECT_NEAR(static_cast<double>(forced.logprob), exact_logprob(logits, allowed[0]), 1e-5);
  }
}

TEST(Pick, OnlyAllowedTokensAreChosen) {
  const std::vector<float> logits{9, 1, 5, 5, 0, 8};
  const Tokens allowed{1, 2, 3, 4};
  EXPECT_EQ(pick_token(logits, {}, allowed).token, 2);
  for (int i = 0; i < 100; ++i) {
    const TokenId token = pick_token(logits, sampled(2, static_cast<float>(i) / 100), allowed).token;
    EXPECT_TRUE(token >= 1 && token <= 4);
  }
  const Tokens outside{1, 6};
  EXPECT_THROW(pick_token(logits, {}, outside), Error);
}

TEST(Pick, LogitsThatAreNotSoundHaveNoLogProbability) {
  std::mt19937 random(3);
  for (const float odd : {kNan, -kNan, kEndless})
    for (const size_t size : {1, 15, 16, 17, 300, 1003})
      for (int i = 0; i < 40; ++i) {
        std::vector<float> logits = random_logits(size, random());
        if (i % 2 == 0) logits[random() % size] = -kEndless;
        logits[i < 2 ? static_cast<size_t>(i) * (size - 1) : random() % size] = odd;
        Tokens allowed;
        if (i % 4 == 3) allowed = {static_cast<TokenId>(random() % size)};
        Pick pick = i % 3 == 0 ? sampled(0.7f, 0.5f) : Pick{};
        pick.rivals = i % 5 == 0;
        const Picked picked = pick_token(logits, pick, allowed);
        EXPECT_TRUE(std::isnan(picked.logprob)) << odd << " among " << size;
        EXPECT_GE(picked.token, 0);
        EXPECT_LT(picked.token, static_cast<TokenId>(size));
        EXPECT_TRUE(allowed.empty() || picked.token == allowed[0]);
      }
  EXPECT_TRUE(std::isnan(pick_token(std::vector<float>(5, -kEndless), {}, {}).logprob));
}

TEST(Pick, MinusInfinityIsNeverDrawn) {
  const Tokens allowed{1, 2};
  EXPECT_EQ(pick_token(std::vector<float>{3, -kEndless, -100}, {}, allowed).token, 2);
  EXPECT_EQ(pick_token(std::vector<float>{3, -kEndless, -kEndless}, {}, allowed).logprob, -kEndless);
  EXPECT_NEAR(pick_token(std::vector<float>{-kEndless, 2, -kEndless, 2}, {}, {}).logprob, std::log(0.5f),
              1e-6f);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(
        pick_token(std::vector<float>{-kEndless, 0, -kEndless}, sampled(1, static_cast<float>(i) / 20), {})
            .token,
        1);
}

/// The definition, sorted in full: falling probability, rising id, inverse of the running sum.
TokenId sample_plainly(const std::vector<float>& logits, const Pick& pick) {
  std::vector<std::pair<double, TokenId>> sorted;
  for (size_t i = 0; i < logits.size(); ++i)
    sorted.emplace_back(-static_cast<double>(logits[i]), static_cast<TokenId>(i));
  std::sort(sorted.begin(), sorted.end());
  if (pick.top_k > 0 && sorted.size() > static_cast<size_t>(pick.top_k))
    sorted.resize(static_cast<size_t>(pick.top_k));
  double total = 0;
  for (const auto& [logit, token] : sorted) total += std::exp(-logit / static_cast<double>(pick.temperature));
  double kept = 0;
  size_t count = 0;
  while (count < sorted.size() && kept < static_cast<double>(pick.top_p) * total)
    kept += std::exp(-sorted[count++].first / static_cast<double>(pick.temperature));
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += std::exp(-sorted[i].first / static_cast<double>(pick.temperature));
    if (sum > static_cast<double>(pick.uniform) * kept) return sorted[i].second;
  }
  return sorted[count - 1].second;
}

TEST(Pick, SamplesAsTheDefinitionSays) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int i = 0; i < 300; ++i) {
    std::vector<float> logits = random_logits(1 + random() % 3000, random());
    for (size_t j = 0; j < logits.size(); j += 3) logits[j] = std::round(logits[j]);  // ties
    const int32_t ks[] = {0, 1, 2, 40, 5000};
    const float ps[] = {1, 0.9f, 0.5f, 0.05f};
    const Pick pick =
        sampled(0.2f + 2 * uniform(random), uniform(random), ks[random() % 5], ps[random() % 4]);
    EXPECT_EQ(pick_token(logits, pick, {}).token, sample_plainly(logits, pick)) << i;
  }
}

TEST(Pick, SamplesInProportion) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.2f), std::log(0.3f)};
  int counts[3] = {};
  for (int i = 0; i < 1000; ++i)
    ++counts[pick_token(logits, sampled(1, (static_cast<float>(i) + 0.5f) / 1000), {}).token];
  EXPECT_NEAR(counts[0], 500, 1);
  EXPECT_NEAR(counts[1], 200, 1);
  EXPECT_NEAR(counts[2], 300, 1);
}

TEST(Pick, TinyTemperatureIsGreedy) {
  const std::vector<float> logits = random_logits(500, 11);
  EXPECT_EQ(pick_token(logits, sampled(1e-30f, 0.999f), {}).token, pick_token(logits, {}, {}).token);
}

/// The definition, over every token: the bias decides, log-probabilities do not know it.
TEST(Pick, RivalsAndBiasAreAsTheDefinitionSays) {
  std::mt19937 random(9);
  int watched = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<float> logits = random_logits(2 + random() % 300, random());
    for (size_t j = 0; j < logits.size(); j += 2) logits[j] = std::round(logits[j]);  // ties
    if (i % 10 == 0) logits[random() % logits.size()] = -kEndless;
    Tokens allowed;
    for (size_t j = 0; i % 2 == 1 && j < logits.size(); j += 1 + random() % 7)
      allowed.push_back(static_cast<TokenId>(j));
    Pick pick;
    pick.rivals = true;
    if (i % 3 > 0)
      pick.watch = allowed.empty() ? static_cast<TokenId>(random() % logits.size())
                                   : allowed[random() % allowed.size()];
    if (i % 3 == 2) pick.bias = static_cast<float>(random() % 13) - 6;

    std::vector<TokenId> candidates = allowed;
    for (size_t j = 0; allowed.empty() && j < logits.size(); ++j)
      candidates.push_back(static_cast<TokenId>(j));
    const auto logit = [&](TokenId token) { return logits[static_cast<size_t>(token)]; };
    TokenId best = candidates[0];
    for (const TokenId token : candidates) {
      const auto biased = [&](TokenId one) { return logit(one) + (one == pick.watch ? pick.bias : 0); };
      if (biased(token) > biased(best)) best = token;
    }
    float second = -kEndless;
    for (const TokenId token : candidates)
      if (token != best && token != pick.watch) second = std::max(second, logit(token));
    double sum = 0;
    for (const float value : logits) sum += std::exp(static_cast<double>(value));
    const double total = std::log(sum);

    const Picked picked = pick_token(logits, pick, allowed);
    EXPECT_EQ(picked.token, best) << i;
    EXPECT_NEAR(picked.logprob, static_cast<double>(logit(best)) - total, 1e-5);
    const auto near = [&](float got, float value) {
      return std::isinf(value)
                 ? got == value
                 : std::abs(static_cast<double>(got) - (static_cast<double>(value) - total)) < 1e-5;
    };
    EXPECT_TRUE(near(picked.second, second)) << i;
    EXPECT_TRUE(near(picked.watched, pick.watch < 0 ? -kEndless : logit(pick.watch))) << i;
    watched += picked.token == pick.watch;
  }
  EXPECT_GT(watched, 10);
}

TEST(Pick, SamplingTakesTheNullBias) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.5f)};
  Pick pick = sampled(1, 0.6f);
  EXPECT_EQ(pick_token(logits, pick, {}).token, 1);
  pick.watch = 0;
  pick.bias = std::log(2.0f);
  EXPECT_EQ(pick_token(logits, pick, {}).token, 0);
}

}  // namespace
}  // namespace sheaf
