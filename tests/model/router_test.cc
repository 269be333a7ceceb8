#include "core/model/router.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace sheaf {
namespace {

std::vector<Choice> routed(const Experts& experts, std::vector<float> logits, std::vector<float> bias = {}) {
  std::vector<Choice> chosen(static_cast<size_t>(experts.per_token));
  route(experts, logits, bias, chosen);
  return chosen;
}

TEST(Router, WeighsTheHighestScoresByASoftmaxOverAll) {
  const std::vector<float> logits{1, 3, 2, 0};
  const auto chosen = routed({.count = 4, .per_token = 2}, logits);
  EXPECT_EQ(chosen[0].expert, 1);
  EXPECT_EQ(chosen[1].expert, 2);
  float sum = 0;
  for (const float logit : logits) sum += std::exp(logit);
  EXPECT_NEAR(chosen[0].weight, std::exp(3.0f) / sum, 1e-6f);
  EXPECT_NEAR(chosen[1].weight, std::exp(2.0f) / sum, 1e-6f);
}

TEST(Router, NormalizedWeightsAreASoftmaxOverTheChosen) {
  const auto chosen = routed({.count = 4, .per_token = 2, .normalized = true, .factor = 3}, {1, 3, 2, 0});
  EXPECT_NEAR(chosen[0].weight, 3 / (1 + std::exp(-1.0f)), 1e-6f);
  EXPECT_NEAR(chosen[0].weight + chosen[1].weight, 3, 1e-6f);
}

TEST(Router, ABiasChangesTheChoiceAndNotTheWeights) {
  const Experts experts{.count = 3, .per_token = 1, .scores = RouterScores::sigmoid, .choice_bias = true};
  EXPECT_EQ(routed(experts, {0, 1, -1}).front().expert, 1);
  const Choice biased = routed(experts, {0, 1, -1}, {0, 0, 0.9f}).front();
  EXPECT_EQ(biased.expert, 2);
  EXPECT_NEAR(biased.weight, 1 / (1 + std::exp(1.0f)), 1e-6f);
}

TEST(Router, OfEqualScoresTheFirstIsChosen) {
  const auto chosen = routed({.count = 5, .per_token = 3}, {1, 2, 2, 2, 2});
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(chosen[static_cast<size_t>(i)].expert, i + 1);
}

TEST(Router, AllExpertsMayBeChosen) {
  const auto chosen = routed({.count = 3, .per_token = 3}, {0, 5, 1});
  EXPECT_EQ(chosen[0].expert, 1);
  EXPECT_EQ(chosen[2].expert, 0);
  EXPECT_NEAR(chosen[0].weight + chosen[1].weight + chosen[2].weight, 1, 1e-6f);
}

TEST(Router, LogitsThatAreNotFiniteGiveWeightsThatAreNot) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()})
    for (const RouterScores scores : {RouterScores::softmax, RouterScores::sigmoid})
      for (const Choice& choice : routed({.count = 3, .per_token = 2, .scores = scores}, {1, odd, 2})) {
        EXPECT_TRUE(std::isnan(choice.weight));
        EXPECT_TRUE(choice.expert >= 0 && choice.expert < 3);
      }
}

}  // namespace
}  // namespace sheaf
