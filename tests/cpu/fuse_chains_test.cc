// The scores of several chains as one row, by hand.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "core/engine/step_batch.h"

namespace sheaf {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Pick> group(float contrast, Aggregate aggregate, const std::vector<float>& priors) {
  std::vector<Pick> picks(1);
  picks[0].chains = static_cast<int32_t>(priors.size());
  picks[0].contrast = contrast;
  picks[0].aggregate = aggregate;
  for (const float prior : priors) picks.push_back({.prior = prior});
  return picks;
}

struct Fused {
  std::vector<float> scores;
  float contrast;
};
Fused fuse(const std::vector<Pick>& picks, const std::vector<std::vector<float>>& rows) {
  const size_t vocab = rows[0].size(), stride = vocab + 3;
  std::vector<float> logits(rows.size() * stride, std::nanf(""));
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), logits.begin() + static_cast<ptrdiff_t>(i * stride));
  Fused fused{std::vector<float>(vocab), 0};
  fused.contrast = fuse_chains(picks, logits.data(), stride, fused.scores);
  // In place it is the same.
  EXPECT_EQ(fuse_chains(picks, logits.data(), stride, std::span(logits).first(vocab)), fused.contrast);
  EXPECT_EQ(std::vector(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(vocab)), fused.scores);
  return fused;
}

TEST(FuseChains, MaxIsTheLargestContrastedScoreWithItsPrior) {
  const auto fused = fuse(group(0.5f, Aggregate::max, {0, -1}), {{1, 2, 3}, {4, 0, 2}, {1, 6, 4.5f}});
  // 1.5 * 4 - 0.5 and 1.5 * 1 - 0.5 - 1; 0 - 1 and 9 - 1 - 1; 3 - 1.5 and 6.75 - 1.5 - 1.
  EXPECT_EQ(fused.scores, (std::vector<float>{5.5f, 7, 4.25f}));
  EXPECT_EQ(fused.contrast, 0.5f);
}

TEST(FuseChains, WithoutContrastAndPriorOneChainStaysAsItIs) {
  const auto fused = fuse(group(0, Aggregate::max, {0}), {{9, -kInfinity, 0}, {0.1f, 0.2f, 0.3f}});
  EXPECT_EQ(fused.scores, (std::vector<float>{0.1f, 0.2f, 0.3f}));
}

TEST(FuseChains, ADynamicContrastIsTheMeanJensenShannonDivergence) {
  // Probabilities (1/2, 1/2) and (1/4, 3/4), and the amateur's own.
  const float l3 = std::log(3.0f);
  const auto fused = fuse(group(kDynamicContrast, Aggregate::max, {0, 0}), {{0, 0}, {0, l3}, {5, 5}});
  const double m0 = 0.375, m1 = 0.625;
  const double jsd = 0.5 * (0.25 * std::log(0.25 / m0) + 0.75 * std::log(0.75 / m1)) +
                     0.5 * (0.5 * std::log(0.5 / m0) + 0.5 * std::log(0.5 / m1));
  EXPECT_NEAR(static_cast<double>(fused.contrast), jsd / 2, 1e-7);
  EXPECT_GT(fused.contrast, 0.01f);
  EXPECT_EQ(fuse(group(kDynamicContrast, Aggregate::max, {0}), {{1, 2}, {1, 2}}).contrast, 0);
}

TEST(FuseChains, MixtureAndProductWeighProbabilities) {
  const float l3 = std::log(3.0f);
  const std::vector<std::vector<float>> rows{{9, 9}, {0, l3}, {1, 1}};  // (1/4, 3/4) and (1/2, 1/2)
  // Priors 0 and log 3: weights 1/4 and 3/4.
  const auto mixture = fuse(group(0, Aggregate::mixture, {0, l3}), rows).scores;
  EXPECT_NEAR(std::exp(mixture[0]), 0.25f * 0.25f + 0.75f * 0.5f, 1e-6f);
  EXPECT_NEAR(std::exp(mixture[1]), 0.25f * 0.75f + 0.75f * 0.5f, 1e-6f);
  const auto product = fuse(group(0, Aggregate::product, {0, l3}), rows).scores;
  EXPECT_NEAR(product[0], 0.25f * std::log(0.25f) + 0.75f * std::log(0.5f), 1e-6f);
  EXPECT_NEAR(product[1], 0.25f * std::log(0.75f) + 0.75f * std::log(0.5f), 1e-6f);
}

TEST(FuseChains, MinusInfinityNeverWins) {
  for (const Aggregate aggregate : {Aggregate::max, Aggregate::mixture, Aggregate::product})
    for (const float contrast : {0.0f, 0.5f, kDynamicContrast}) {
      const std::vector<Pick> picks = group(contrast, aggregate, {0, 0});
      const std::vector<float> logits{0, -kInfinity, 0, 0, -kInfinity, 1, -kInfinity, -kInfinity, 0};
      const Picked picked = pick_next(picks, {}, logits.data(), 3, 3);
      EXPECT_NE(picked.token, 1);
      EXPECT_GE(picked.contrast, 0);
      EXPECT_FALSE(std::isnan(picked.logprob));
    }
}

TEST(FuseChains, NanOrInfinityOfAnyRowLeavesNoLogProbability) {
  for (const Aggregate aggregate : {Aggregate::max, Aggregate::mixture, Aggregate::product})
    for (const float contrast : {0.0f, 0.5f, kDynamicContrast})
      for (const float odd : {std::nanf(""), kInfinity})
        for (size_t at = 0; at < 9; ++at) {
          const std::vector<Pick> picks = group(contrast, aggregate, {0, 0});
          std::vector<float> logits{0, 1, 2, 3, 1, -1, 0.5f, 2, 1};
          logits[at] = odd;
          const Picked picked = pick_next(picks, {}, logits.data(), 3, 3);
          EXPECT_TRUE(std::isnan(picked.logprob)) << odd << " at " << at;
          EXPECT_TRUE(picked.token >= 0 && picked.token < 3);
        }
}

TEST(FuseChains, OnlyAllowedTokensAreChosenAndTiesGoToTheLowestId) {
  std::vector<Pick> picks = group(0, Aggregate::max, {0, 0});
  const std::vector<float> logits{0, 0, 0, 0, 5, 2, 3, 1, 3, 0, 2, 3};
  EXPECT_EQ(pick_next(picks, {}, logits.data(), 4, 4).token, 0);
  picks[0].first_allowed = 1;
  picks[0].allowed_count = 2;
  EXPECT_EQ(pick_next(picks, std::vector<TokenId>{0, 2, 3}, logits.data(), 4, 4).token, 2);
}

TEST(FuseChains, PicksAreComputedTogetherWithTheirChains) {
  std::vector<Pick> picks(10);
  picks[1].chains = 4;
  picks[7].chains = 2;
  EXPECT_EQ(picks_end(picks, 0, 3), 1u);
  EXPECT_EQ(picks_end(picks, 1, 3), 6u);
  EXPECT_EQ(picks_end(picks, 6, 3), 7u);
  EXPECT_EQ(picks_end(picks, 7, 100), 10u);
  EXPECT_EQ(most_picks_together(picks, 3), 5u);
  StepBatch batch;
  batch.tokens.resize(10);
  for (size_t i = 0; i < picks.size(); ++i) picks[i].row = static_cast<int32_t>(i);
  batch.picks = picks;
  EXPECT_EQ(middle_row(batch), 1);
  batch.picks = {picks.begin() + 1, picks.begin() + 6};
  for (Pick& pick : batch.picks) --pick.row;
  batch.tokens.resize(8);
  EXPECT_EQ(middle_row(batch), 5);
  batch.tokens.resize(5);
  EXPECT_EQ(middle_row(batch), 0);
}

}  // namespace
}  // namespace sheaf
