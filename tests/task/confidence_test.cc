#include <cmath>
#include <gtest/gtest.h>

#include "core/task/record_row.h"

namespace sheaf {
namespace {

const Tokens kNull{5, 6};

/// An answer with these probabilities.
Answer answer(Tokens tokens, double decoded, double null, double alternative) {
  Answer made;
  made.tokens = std::move(tokens);
  made.logprob = std::log(decoded);
  made.null_logprob = std::log(null);
  made.alternative = std::log(alternative);
  return made;
}

double confidence(const RowAnswer& read, const Answer& made) {
  return confidence_of(read, made, kNull);
}

TEST(Confidence, OfAValueIsItsProbability) {
  EXPECT_DOUBLE_EQ(confidence({"x"}, answer({9}, 0.6, 0.1, 0.2)), 0.6 / 0.9);
  EXPECT_DOUBLE_EQ(confidence({"x"}, answer({9}, 0.6, 0, 0)), 1) << "there was nothing else";
  EXPECT_DOUBLE_EQ(confidence({"x"}, answer({9}, 0, 0, 0)), 0);
  EXPECT_NEAR(confidence({"x"}, answer({9}, 1e-300, 1e-300, 2e-300)), 0.25, 1e-9);
  EXPECT_DOUBLE_EQ(confidence({"null it"}, answer({5, 6, 7}, 0.1, 0.4, 0.1)), 0.2) << "a part of null";
}

TEST(Confidence, OfANullIsTheProbabilityOfNull) {
  // Its end costs it nothing.
  EXPECT_DOUBLE_EQ(confidence({nullptr}, answer({5, 6, 7}, 0.2, 0.5, 0.3)), 0.5 / 0.8);
  // Another word for it.
  EXPECT_DOUBLE_EQ(confidence({nullptr}, answer({9}, 0.2, 0.4, 0.3)), 0.6 / 0.9);
  EXPECT_DOUBLE_EQ(confidence({std::vector<std::string>{}}, answer({9}, 0.2, 0.4, 0.3)), 0.6 / 0.9);
  // What could not be read does not speak for null.
  EXPECT_DOUBLE_EQ(confidence({nullptr, "not a number"}, answer({9}, 0.2, 0.4, 0.3)), 0.4 / 0.9);
}

TEST(Confidence, IsWatchedWhereTheJobAsks) {
  Job job;
  EXPECT_EQ(make_watch(job, kNull), nullptr);
  job.method.null_bias = -1;
  ASSERT_NE(make_watch(job, kNull), nullptr);
  EXPECT_EQ(make_watch(job, kNull)->bias, -1);
  job.method.null_bias = 0;
  job.output.confidence = true;
  ASSERT_NE(make_watch(job, kNull), nullptr);
  EXPECT_EQ(make_watch(job, kNull)->null, kNull);
}

}  // namespace
}  // namespace sheaf
