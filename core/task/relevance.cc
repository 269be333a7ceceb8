#include "core/task/relevance.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "core/text/words.h"

namespace sheaf {
namespace {

constexpr double kEpsilon = 1e-8;   // the paper's
constexpr double kRounding = 1e-3;  // cosines and probabilities may be off by as much

}  // namespace

bool is_possible(ScoreKind kind, double score) {
  if (kind == ScoreKind::dense) return std::abs(score) <= 1 + kRounding;
  if (kind == ScoreKind::probability) return score >= -kRounding && score <= 1 + kRounding;
  return true;
}

double normalized_score(ScoreKind kind, double score) {
  double relevance = score;
  if (kind == ScoreKind::dense) relevance = (score + 1) / 2;
  if (kind == ScoreKind::sparse) relevance = 2 / std::numbers::pi * std::atan(std::max(score, 0.0));
  if (kind == ScoreKind::logit) relevance = 1 / (1 + std::exp(-score));
  return std::clamp(relevance, 0.0, 1 - kEpsilon);
}

double joined_relevance(double retrieval, double rerank) {
  return 2 * retrieval * rerank / (retrieval + rerank + kEpsilon);
}

double clipped_relevance(double relevance) {
  return std::clamp(relevance, kEpsilon, 1 - kEpsilon);
}

double word_rarity(double documents, double holding) {
  return std::log(1 + (documents - holding + 0.5) / (holding + 0.5));
}

LexicalScorer::LexicalScorer(const std::vector<std::string>& documents) {
  double total = 0;
  for (const std::string& document : documents) {
    double words = 0;
    each_word(document, [&](std::string_view word) {
      std::vector<Count>& counts = counts_[std::string(word)];
      if (counts.empty() || counts.back().document != lengths_.size()) counts.push_back({lengths_.size(), 0});
      counts.back().times += 1;
      ++words;
    });
    lengths_.push_back(words);
    total += lengths_.back();
  }
  mean_length_ = std::max(1.0, total / static_cast<double>(documents.size()));
}

std::vector<double> LexicalScorer::scores(const std::string& question) const {
  const auto number = static_cast<double>(lengths_.size());
  std::vector<double> scores(lengths_.size(), 0);
  std::set<std::string> asked;
  each_word(question, [&](std::string_view word) { asked.emplace(word); });
  for (const std::string& word : asked) {
    const auto found = counts_.find(word);
    if (found == counts_.end()) continue;
    const auto holding = static_cast<double>(found->second.size());
    const double rarity = word_rarity(number, holding);
    for (const Count& count : found->second)
      scores[count.document] +=
          rarity * word_weight(count.times, length_norm(lengths_[count.document], mean_length_));
  }
  return scores;
}

}  // namespace sheaf
