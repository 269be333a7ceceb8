#include "core/task/relevance.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string_view>

namespace sheaf {
namespace {

constexpr double kEpsilon = 1e-8;                    // the paper's
constexpr double kSaturation = 1.5, kLength = 0.75;  // BM25's k1 and b
constexpr double kRounding = 1e-3;                   // cosines and probabilities may be off by as much

/// Words in lower case; what is not ASCII counts as letters.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool upper = c >= 'A' && c <= 'Z';
    if (byte >= 0x80 || upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += upper ? static_cast<char>(c + ('a' - 'A')) : c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

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

LexicalScorer::LexicalScorer(const std::vector<std::string>& documents) {
  double total = 0;
  for (const std::string& document : documents) {
    const auto words = words_of(document);
    for (const std::string& word : words) {
      std::vector<Count>& counts = counts_[word];
      if (counts.empty() || counts.back().document != lengths_.size()) counts.push_back({lengths_.size(), 0});
      counts.back().times += 1;
    }
    lengths_.push_back(static_cast<double>(words.size()));
    total += lengths_.back();
  }
  mean_length_ = std::max(1.0, total / static_cast<double>(documents.size()));
}

std::vector<double> LexicalScorer::scores(const std::string& question) const {
  const auto number = static_cast<double>(lengths_.size());
  std::vector<double> scores(lengths_.size(), 0);
  const auto asked = words_of(question);
  for (const std::string& word : std::set(asked.begin(), asked.end())) {
    const auto found = counts_.find(word);
    if (found == counts_.end()) continue;
    const auto holding = static_cast<double>(found->second.size());
    const double rarity = std::log(1 + (number - holding + 0.5) / (holding + 0.5));
    for (const Count& count : found->second) {
      const double length = kSaturation * (1 - kLength + kLength * lengths_[count.document] / mean_length_);
      scores[count.document] += rarity * count.times * (kSaturation + 1) / (count.times + length);
    }
  }
  return scores;
}

}  // namespace sheaf
