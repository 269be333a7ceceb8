#include "core/segments/allowed_answers.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"

namespace sheaf {

constexpr AnswerTrie::Node kDone = -1;

AnswerTrie::AnswerTrie(std::vector<Tokens> answers, TokenId stop, bool scored)
    : answers_(std::move(answers)), stop_(stop) {
  std::vector<std::map<TokenId, Node>> children(1);
  std::vector<bool> ends(1, false);
  for (const Tokens& answer : answers_) {
    if (answer.empty()) fail("an allowed answer has no tokens");
    Node node = root;
    for (TokenId token : answer) {
      const auto [at, added] = children[node].try_emplace(token, static_cast<Node>(children.size()));
      node = at->second;
      if (added) {
        children.emplace_back();
        ends.push_back(false);
      }
    }
    ends[node] = true;
  }
  for (const Tokens& answer : answers_) {
    longest_ = std::max(longest_, static_cast<int32_t>(answer.size()) + 1);
    if (scored) options_.push_back(std::make_shared<AnswerTrie>(std::vector<Tokens>{answer}, -1));
  }

  nodes_.resize(children.size());
  for (size_t node = 0; node < children.size(); ++node) {
    auto& ways = children[node];
    if (ends[node] && !ways.empty()) ways.try_emplace(stop, kDone);
    nodes_[node] = {static_cast<int32_t>(tokens_.size()), static_cast<int32_t>(ways.size())};
    for (const auto& [token, next] : ways) {
      tokens_.push_back(token);
      next_.push_back(next != kDone && children[next].empty() ? kDone : next);
    }
  }
}

std::span<const TokenId> AnswerTrie::allowed(Node node) const {
  const Entry& entry = nodes_[node];
  return {tokens_.data() + entry.first, static_cast<size_t>(entry.count)};
}

AnswerTrie::Node AnswerTrie::advance(Node node, TokenId token) const {
  const auto ways = allowed(node);
  const auto at = std::lower_bound(ways.begin(), ways.end(), token);
  if (at == ways.end() || *at != token) fail("token {} does not continue an answer of the trie", token);
  return next_[static_cast<size_t>(nodes_[node].first + (at - ways.begin()))];
}

int32_t AnswerTrie::find(std::span<const TokenId> tokens) const {
  for (size_t i = 0; i < answers_.size(); ++i) {
    const Tokens& answer = answers_[i];
    const bool stopped = tokens.size() == answer.size() + 1 && tokens.back() == stop_;
    if ((tokens.size() == answer.size() || stopped) &&
        std::equal(answer.begin(), answer.end(), tokens.begin()))
      return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace sheaf
