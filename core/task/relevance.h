#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sheaf {

/// What the scores of a corpus are.
enum class ScoreKind : uint8_t {
  dense,        ///< cosines in [-1, 1], as of embeddings and of ColBERT
  sparse,       ///< not negative and without bound, as of BM25
  probability,  ///< in [0, 1]
  logit,        ///< any number, as a reranker gives before its sigmoid
};
ScoreKind score_kind(const std::string& name);
bool is_possible(ScoreKind kind, double score);

/// A score as a relevance in [0, 1), as in appendix B of PCED.
double normalized_score(ScoreKind kind, double score);

/// Two relevances as one: their harmonic mean.
double joined_relevance(double retrieval, double rerank);

/// Kept away from 0, whose logarithm is no number, and from 1.
double clipped_relevance(double relevance);

/// BM25 of every document for the question, with the documents themselves as the collection: not negative.
std::vector<double> lexical_scores(const std::string& question, const std::vector<std::string>& documents);

}  // namespace sheaf
