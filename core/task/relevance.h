#pragma once
#include <unordered_map>

#include "core/job/words.h"

namespace sheaf {

bool is_possible(ScoreKind kind, double score);

/// A score as a relevance in [0, 1), as in appendix B of PCED.
double normalized_score(ScoreKind kind, double score);

/// Two relevances as one: their harmonic mean.
double joined_relevance(double retrieval, double rerank);

/// Kept away from 0, whose logarithm is no number, and from 1.
double clipped_relevance(double relevance);

// BM25: the score of a document is the sum, over the different words of a question, of word_rarity() times
// word_weight().
constexpr double kSaturation = 1.5, kLengthShare = 0.75;  // BM25's k1 and b

/// Of a word that `holding` of so many documents have.
double word_rarity(double documents, double holding);
/// Of a document: what word_weight() needs to know of its length.
inline double length_norm(double words, double mean_words) {
  return kSaturation * (1 - kLengthShare + kLengthShare * words / mean_words);
}
/// Of a word that stands `times` times in a document.
inline double word_weight(double times, double norm) {
  return times * (kSaturation + 1) / (times + norm);
}

/// BM25 of documents, with the documents themselves as the collection. They are read once, however many
/// questions are asked.
class LexicalScorer {
 public:
  explicit LexicalScorer(const std::vector<std::string>& documents);

  /// Of every document for the question; not negative.
  std::vector<double> scores(const std::string& question) const;

 private:
  struct Count {
    size_t document;
    double times;
  };
  std::unordered_map<std::string, std::vector<Count>> counts_;  ///< of a word, by document
  std::vector<double> lengths_;                                 ///< of the documents, in words
  double mean_length_;
};

}  // namespace sheaf
