#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/task/relevance.h"
#include "core/text/spelling.h"
#include "io/corpus/record_mapper.h"
#include "io/passages/passage_index.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kMostDocuments = 1'000;

double score_of(const json& value, ScoreKind kind, const std::string& what) {
  if (!value.is_number()) reject("{} is {}, not a number", what, kind_of(value));
  const double score = value.get<double>();
  if (!std::isfinite(score)) reject("{} is not a finite number", what);
  if (!is_possible(kind, score)) reject("{} is {}, which is not {}", what, score, word_of(kind));
  return normalized_score(kind, score);
}

/// The relevances in a list column, one per document.
std::vector<double> scores_of(const json& cells, const std::string& column, ScoreKind kind,
                              size_t documents) {
  const json& list = cell(cells, column);
  if (!list.is_array()) reject("column \"{}\" is {}, not a list of scores", column, kind_of(list));
  if (list.size() != documents)
    reject("column \"{}\" has {} for {}", column, counted(std::ssize(list), "score"),
           counted(static_cast<int64_t>(documents), "document"));
  std::vector<double> scores;
  for (const json& value : list)
    scores.push_back(
        score_of(value, kind, fmt::format("score {} of column \"{}\"", scores.size() + 1, column)));
  return scores;
}

/// Where a document has no id, its number from 1.
json document_id(const json& value, size_t number) {
  const bool named = value.is_object() && value.contains("id") && !value["id"].is_null();
  return named ? id_of(value["id"], fmt::format("the id of document {}", number)) : json(number);
}

std::string document_of(const json& value, const std::string& what) {
  if (!value.is_object()) return text_of(value, what);
  const auto text = value.find("text"), title = value.find("title");
  if (text == value.end()) reject("{} has no \"text\"", what);
  std::string document;
  if (title != value.end() && !title->is_null()) document = text_of(*title, "the title of " + what) + "\n";
  return document + text_of(*text, what);
}

/// The scores that documents carry themselves: all of them or none.
std::vector<double> own_scores(const json& list, ScoreKind kind) {
  std::vector<double> scores;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool scored = list[i].is_object() && list[i].contains("score") && !list[i]["score"].is_null();
    if (scored ? scores.size() != i : !scores.empty())
      reject("document {} has {} score, unlike the documents before it", i + 1, scored ? "a" : "no");
    if (scored)
      scores.push_back(score_of(list[i]["score"], kind, fmt::format("the score of document {}", i + 1)));
  }
  return scores;
}

}  // namespace

void keep_most_relevant(size_t count, Record& record) {
  if (count >= record.documents.size()) return;
  std::vector<double> best(record.documents.size(), 0);
  for (const Question& question : record.questions)
    for (size_t i = 0; i < best.size(); ++i) best[i] = std::max(best[i], question.relevance[i]);
  std::vector<size_t> kept(best.size());
  std::iota(kept.begin(), kept.end(), size_t{0});
  std::stable_sort(kept.begin(), kept.end(), [&](size_t a, size_t b) { return best[a] > best[b]; });
  kept.resize(count);
  std::sort(kept.begin(), kept.end());
  const auto keep = [&](auto& list) {
    for (size_t i = 0; i < count; ++i)
      if (kept[i] != i) list[i] = std::move(list[kept[i]]);
    list.resize(count);
  };
  keep(record.documents);
  keep(record.document_ids);
  for (Question& question : record.questions) keep(question.relevance);
}

void map_documents(const json& cells, const Job::Input& input, Record& record) {
  const json& list = list_cell(cells, input.documents, "documents", kMostDocuments);
  size_t bytes = 0;
  for (const json& entry : list) {
    const std::string what = fmt::format("document {}", record.documents.size() + 1);
    record.documents.push_back(read_html(document_of(entry, what), input.html).text);
    record.document_ids.push_back(document_id(entry, record.documents.size()));
    bytes += record.documents.back().size();
    if (blank(record.documents.back())) reject("{} is empty", what);
  }
  if (bytes > kLongestDocument)
    reject("the documents have {} bytes together; at most {} are allowed", bytes, kLongestDocument);

  std::vector<double> scores = input.scores.empty() || input.scored_by_question()
                                   ? own_scores(list, input.scores_are)
                                   : scores_of(cells, input.scores, input.scores_are, list.size());
  if (!input.rerank_scores.empty()) {
    const auto rerank = scores_of(cells, input.rerank_scores, input.rerank_scores_are, list.size());
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = joined_relevance(scores[i], rerank[i]);
    if (scores.empty()) scores = rerank;
  }
  std::optional<LexicalScorer> scorer;
  if (scores.empty()) scorer.emplace(record.documents);
  for (Question& question : record.questions) {
    question.relevance = scores;
    if (scorer)
      for (const double score : scorer->scores(question.text))
        question.relevance.push_back(normalized_score(ScoreKind::sparse, score));
    for (double& relevance : question.relevance) relevance = clipped_relevance(relevance);
  }
  if (input.top_documents > 0) keep_most_relevant(static_cast<size_t>(input.top_documents), record);
}

void find_passages(const PassageIndex& passages, const Job::Input& input, Record& record) {
  const auto count = static_cast<size_t>(input.top_documents);
  std::vector<uint32_t> found;
  for (const Question& question : record.questions)
    for (const auto& [passage, score] : passages.search(question.text, count)) found.push_back(passage);
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  if (found.empty())
    reject("no passage of input.corpus has a word of {}",
           record.questions.size() == 1 ? "the question" : "the questions");
  for (const uint32_t number : found) {
    Passage passage = passages.passage(number);
    record.documents.push_back(read_html(passage.document(), input.html).text);
    record.document_ids.push_back(std::move(passage.id));
  }
  for (Question& question : record.questions)
    for (const double score : passages.scores(question.text, found))
      question.relevance.push_back(clipped_relevance(normalized_score(ScoreKind::sparse, score)));
  keep_most_relevant(count, record);
}

}  // namespace sheaf
