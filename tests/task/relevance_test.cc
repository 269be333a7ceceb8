#include "core/task/relevance.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sheaf {
namespace {

TEST(Relevance, ScoresAreNormalizedAsInAppendixBOfPced) {
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::dense, 0.5), 0.75);
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::dense, -1), 0);
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::dense, 1), 1 - 1e-8);
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::sparse, 1), 0.5);
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::sparse, -3), 0);
  EXPECT_NEAR(normalized_score(ScoreKind::sparse, 12.7), 0.95, 0.001);
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::logit, 0), 0.5);
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::logit, 1000), 1 - 1e-8);
  EXPECT_DOUBLE_EQ(normalized_score(ScoreKind::probability, 0.3), 0.3);
  EXPECT_NEAR(joined_relevance(0.2, 0.6), 0.3, 1e-7);
  EXPECT_EQ(joined_relevance(0, 0), 0);
  EXPECT_DOUBLE_EQ(clipped_relevance(0), 1e-8);
  EXPECT_LT(clipped_relevance(1), 1);
}

TEST(Relevance, LexicalScoresAreBm25OverTheDocumentsThemselves) {
  const std::vector<std::string> documents{"The mill of Arn.", "Arn is a town; the Town hall is old.",
                                           "Bread"};
  const auto scores = LexicalScorer(documents).scores("Which TOWN, the town of Arn?");
  ASSERT_EQ(scores.size(), 3u);
  // "town" is in one of three documents, twice; "the" and "arn" in two, "of" in one.
  const double mean = (4 + 9 + 1) / 3.0;
  const auto term = [&](double holding, double count, double length) {
    return std::log(1 + (3 - holding + 0.5) / (holding + 0.5)) * count * 2.5 /
           (count + 1.5 * (0.25 + 0.75 * length / mean));
  };
  EXPECT_NEAR(scores[0], 2 * term(2, 1, 4) + term(1, 1, 4), 1e-12);
  EXPECT_NEAR(scores[1], 2 * term(2, 1, 9) + term(1, 2, 9), 1e-12);
  EXPECT_EQ(scores[2], 0);
  EXPECT_EQ(LexicalScorer({"", "..."}).scores("?"), (std::vector<double>{0, 0}));
}

// Reading the documents again for every question, or every document for every word, would take minutes.
TEST(Relevance, ManyWordsDocumentsAndQuestionsAreScored) {
  std::vector<std::string> documents;
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    std::string& document = documents.emplace_back();
    for (int j = 0; j < 200; ++j) document += fmt::format("w{}x{} ", i, j);
    all += document;
  }
  const LexicalScorer scorer(documents);
  for (const double score : scorer.scores(all)) EXPECT_GT(score, 0);
  for (int i = 0; i < 10'000; ++i) {
    const auto scores = scorer.scores(fmt::format("Is w{}x7 there?", i % 1000));
    ASSERT_GT(scores[static_cast<size_t>(i % 1000)], 0);
    ASSERT_EQ(scores[static_cast<size_t>((i + 1) % 1000)], 0);
  }
}

}  // namespace
}  // namespace sheaf
