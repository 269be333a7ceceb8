#pragma once
#include <memory>
#include <random>
#include <vector>

#include "core/methods/parts.h"

namespace sheaf::test {

/// Random token-level items: documents with keys that all items share, or with questions of their own.
struct RandomItems {
  int32_t items = 3;
  int32_t questions = 4;
  int32_t vocab = 61;
  int32_t max_tokens = 5;
  bool own_questions = false;
  int32_t longest = 9;  ///< tokens of a part
};

inline Tokens random_tokens(std::mt19937& random, int32_t most, int32_t vocab) {
  Tokens tokens(std::uniform_int_distribution<size_t>(1, static_cast<size_t>(most))(random));
  for (TokenId& token : tokens) token = std::uniform_int_distribution<TokenId>(0, vocab - 1)(random);
  return tokens;
}

inline std::vector<ItemParts> make_random_items(const RandomItems& wanted, uint32_t seed) {
  std::mt19937 random(seed);
  auto question = [&] {
    QuestionParts parts;
    parts.tokens = random_tokens(random, wanted.longest, wanted.vocab);
    parts.max_tokens = wanted.max_tokens;
    return parts;
  };
  auto bin = std::make_shared<BinParts>();
  bin->instruction = random_tokens(random, 2 * wanted.longest, wanted.vocab);
  if (!wanted.own_questions) {
    bin->opening = random_tokens(random, 3, wanted.vocab);
    for (int32_t q = 0; q < wanted.questions; ++q) bin->questions.push_back(question());
  }
  std::vector<DocumentLabel> labels;
  for (int32_t j = 0; j < wanted.items; ++j)
    labels.push_back({random_tokens(random, 3, wanted.vocab), random_tokens(random, 3, wanted.vocab),
                      random_tokens(random, 3, wanted.vocab), random_tokens(random, 3, wanted.vocab)});
  bin->label = [labels](size_t j) { return labels[j]; };
  std::vector<ItemParts> items;
  for (int32_t j = 0; j < wanted.items; ++j) {
    ItemParts item;
    item.bin = bin;
    item.item = j;
    item.stream = seed * 1000u + static_cast<uint64_t>(j);
    item.document = random_tokens(random, 2 * wanted.longest, wanted.vocab);
    for (int32_t q = 0; wanted.own_questions && q < wanted.questions; ++q)
      item.own_questions.push_back(question());
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace sheaf::test
