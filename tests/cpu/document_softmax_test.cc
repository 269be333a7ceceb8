#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "cpu/reference/ops.h"

namespace sheaf {
namespace {

/// Keys that weigh 2 and 3 are documents', the key that weighs 5 is not; their values are 10, 20 and 30.
float attend_by_hand(float temperature, float scale, float sink_weight) {
  const std::vector<float> query{1}, keys{std::log(2.0f), std::log(5.0f), std::log(3.0f)}, values{10, 30, 20};
  const std::vector<reference::SeenKey> seen{{0, true}, {1, false}, {2, true}};
  std::vector<float> out(1);
  const reference::Scores how{.scale = 1,
                              .cap = 0,
                              .sink = std::log(sink_weight),
                              .document_temperature = temperature,
                              .document_scale = scale};
  reference::attend(query, how, keys.data(), values.data(), 1, seen, out);
  return out[0];
}

TEST(DocumentSoftmax, IsWhatTheDefinitionGivesByHand) {
  // (2 · 10 + 3 · 20 + 5 · 30) / (2 + 3 + 5)
  EXPECT_NEAR(attend_by_hand(1, 1, 0), 23, 1e-5);
  // At half the temperature the documents weigh 4 and 9: (4 · 10 + 9 · 20 + 5 · 30) / (4 + 9 + 5)
  EXPECT_NEAR(attend_by_hand(0.5f, 1, 0), 20.555556, 1e-5);
  // Together they weigh √5 in place of 5, and their mean is 16: (√5 · 16 + 5 · 30) / (√5 + 5)
  EXPECT_NEAR(attend_by_hand(1, 0.5f, 0), 25.673762, 1e-5);
  // √13 in place of 13, and their mean is 220 / 13: (√13 · 220 / 13 + 5 · 30) / (√13 + 5)
  EXPECT_NEAR(attend_by_hand(0.5f, 0.5f, 0), 24.521034, 1e-5);
  // A sink that weighs 2 takes its share of the whole.
  EXPECT_NEAR(attend_by_hand(0.5f, 0.5f, 2), 19.896846, 1e-5);
}

}  // namespace
}  // namespace sheaf
