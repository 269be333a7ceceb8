// PCED against the equations of its paper, applied by hand to chains that are computed apart.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "cpu/cpu_backend.h"
#include "tests/dense_model.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same;
using test::make_random_records, test::make_random_model;
using Logits = std::vector<double>;

Logits softmax(const Logits& logits) {
  Logits out;
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (const double logit : logits) out.push_back(std::exp(logit) / sum);
  return out;
}

double divergence(const Logits& p, const Logits& q) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double m = (p[i] + q[i]) / 2;
    sum += p[i] * std::log(p[i] / m) / 2 + q[i] * std::log(q[i] / m) / 2;
  }
  return sum;
}

Logits contrasted(const Logits& chain, const Logits& amateur, double contrast) {
  Logits out;
  for (size_t i = 0; i < chain.size(); ++i) out.push_back((1 + contrast) * chain[i] - contrast * amateur[i]);
  return out;
}

/// An answer, and the chain that spoke each of its tokens.
struct ByHand {
  Tokens tokens;
  std::vector<int32_t> voices;
};

/// One answer by equations 2 and 3, or by a mixture or product of the chains' probabilities.
ByHand decode_by_hand(const test::DenseModel& model, const RecordParts& record, size_t q,
                      const Job::Method& method) {
  std::vector<Tokens> prompts;
  for (size_t k = 0; k <= record.documents.size(); ++k) {
    Tokens& prompt = prompts.emplace_back(record.bin->instruction);
    if (k > 0) append(prompt, record.documents[k - 1].tokens);
    append(prompt, record.bin->opening);
    append(prompt, record.questions()[q].tokens);
  }
  double contrast = static_cast<double>(method.contrast), weights = 0;
  const auto gamma = static_cast<double>(method.prior_weight);
  for (const DocumentParts& chain : record.documents)
    weights += std::pow(static_cast<double>(chain.relevance[q]), gamma);
  ByHand by_hand;
  Tokens& answer = by_hand.tokens;
  while (true) {
    std::vector<Logits> logits, said(1);
    for (const Tokens& prompt : prompts) logits.push_back(model.run_causal(prompt));
    if (answer.empty() && contrast < 0) {
      contrast = 0;
      for (size_t k = 1; k < logits.size(); ++k)
        contrast +=
            divergence(softmax(logits[k]), softmax(logits[0])) / static_cast<double>(logits.size() - 1);
    }
    Logits score(logits[0].size(), method.aggregate == Aggregate::max ? -1e30 : 0);
    for (size_t k = 1; k < logits.size(); ++k) {
      const double relevance = static_cast<double>(record.documents[k - 1].relevance[q]);
      const double weight = std::pow(relevance, gamma) / weights;
      const Logits row = contrasted(logits[k], logits[0], contrast), share = softmax(row);
      Logits& own = said.emplace_back();
      for (size_t v = 0; v < row.size(); ++v)
        own.push_back(method.aggregate == Aggregate::max ? row[v] + gamma * std::log(relevance)
                                                         : weight * share[v]);
      for (size_t v = 0; v < score.size(); ++v) {
        if (method.aggregate == Aggregate::max)
          score[v] = std::max(score[v], row[v] + gamma * std::log(relevance));
        if (method.aggregate == Aggregate::mixture) score[v] += weight * share[v];
        if (method.aggregate == Aggregate::product) score[v] += weight * std::log(share[v]);
      }
    }
    const auto token = static_cast<TokenId>(std::max_element(score.begin(), score.end()) - score.begin());
    if (token == 3 || token == 7) return by_hand;  // what ends a text in decode()
    answer.push_back(token);
    int32_t voice = 1;
    for (size_t k = 1; k < said.size(); ++k)
      if (said[k][static_cast<size_t>(token)] > said[static_cast<size_t>(voice)][static_cast<size_t>(token)])
        voice = static_cast<int32_t>(k);
    by_hand.voices.push_back(voice);
    if (static_cast<int32_t>(answer.size()) == record.questions()[q].max_tokens) return by_hand;
    for (Tokens& prompt : prompts) prompt.push_back(token);
  }
}

std::vector<RecordParts> random_chain_rows(uint32_t seed, size_t most_chains) {
  auto records = make_random_records(
      {.records = 4, .questions = 2, .max_tokens = 6, .own_questions = seed % 2 == 0}, seed);
  test::add_random_chains(records, most_chains, 10, seed);
  return records;
}

Answers run(Backend& backend, const std::vector<RecordParts>& records, const Job::Method& method, bool shared,
            const EngineOptions& options, EngineStats* stats = nullptr) {
  std::vector<Stack> stacks;
  build_pced(records, method, shared, stacks);
  return decode(backend, std::move(stacks), options, stats);
}

TEST(Pced, DocumentsAreAsRelevantAsTheyMakeTheQuestionLikely) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model = make_random_model({}, 400 + seed);
    const test::DenseModel dense(model);
    auto records = random_chain_rows(seed, 4);
    Job::Method method;
    method.aggregate = std::vector{Aggregate::max, Aggregate::mixture, Aggregate::product}[seed / 2];
    const auto backend = make_quick_backend(model, 1);
    std::vector<RecordParts> scored = records;
    for (RecordParts& record : scored) record.scored_by_question = true;
    for (const bool shared : {true, false}) {
      const Answers answers = run(*backend, scored, method, shared, {.tokens_per_step = 16, .pages = 500});
      ASSERT_EQ(answers.size(), records.size() * 2);
      for (size_t i = 0; i < records.size(); ++i)
        for (size_t q = 0; q < 2; ++q) {
          RecordParts& record = records[i];
          Tokens question = record.bin->opening;
          append(question, record.questions()[q].tokens);
          if (question.size() > 1) {
            Logits likely;
            for (const DocumentParts& chain : record.documents) {
              Tokens prompt = record.bin->instruction;
              append(prompt, chain.tokens);
              prompt.push_back(question[0]);
              double& sum = likely.emplace_back(0);
              for (size_t t = 1; t < question.size(); prompt.push_back(question[t++]))
                sum += std::log(softmax(dense.run_causal(prompt))[static_cast<size_t>(question[t])]);
            }
            const double best = *std::ranges::max_element(likely);
            for (size_t k = 0; k < likely.size(); ++k)
              record.documents[k].relevance[q] = static_cast<float>(std::min(
                  std::exp((likely[k] - best) / static_cast<double>(question.size() - 1)), 1 - 1e-6));
          }
          const auto [wanted, voices] = decode_by_hand(dense, record, q, method);
          const Answer& answer = answers.at({static_cast<int32_t>(i), static_cast<int32_t>(q)});
          EXPECT_EQ(answer.tokens, wanted) << "seed " << seed << ", record " << i << ", question " << q;
          EXPECT_EQ(answer.voices, voices) << "seed " << seed << ", record " << i << ", question " << q;
        }
    }
  }
}

TEST(Pced, EqualsThePapersEquations) {
  int64_t tokens = 0, differ = 0;
  for (uint32_t seed = 0; seed < 9; ++seed) {
    const Model model = make_random_model({}, 300 + seed);
    const test::DenseModel dense(model);
    const auto records = random_chain_rows(seed, 4);
    Job::Method method;
    method.contrast = std::vector{-1.0f, 0.0f, 0.7f}[seed % 3];
    method.prior_weight = seed % 2 == 0 ? 2.5f : 0.5f;
    method.aggregate = std::vector{Aggregate::max, Aggregate::mixture, Aggregate::product}[seed / 3];
    const auto reference = make_reference_backend(model);
    const Answers first = run(*reference, records, method, true, {.tokens_per_step = 64, .pages = 500});
    for (size_t i = 0; i < records.size(); ++i)
      for (size_t q = 0; q < 2; ++q) {
        const auto [wanted, voices] = decode_by_hand(dense, records[i], q, method);
        const Answer& answer = first.at({static_cast<int32_t>(i), static_cast<int32_t>(q)});
        EXPECT_EQ(answer.tokens, wanted) << "seed " << seed << ", record " << i << ", question " << q;
        EXPECT_EQ(answer.voices, voices) << "seed " << seed << ", record " << i << ", question " << q;
        tokens += static_cast<int64_t>(wanted.size());
      }
    Job::Method other = method;
    other.contrast = method.contrast == 0 ? 1 : 0;
    const auto again = make_reference_backend(model);
    for (const auto& [key, answer] : run(*again, records, other, true, {.tokens_per_step = 64, .pages = 500}))
      differ += answer.tokens != first.at(key).tokens;
  }
  EXPECT_GT(tokens, 200);
  EXPECT_GT(differ, 10) << "the contrast should matter";
}

TEST(Pced, DoesNotDependOnStepsPagesOrSharing) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model = make_random_model({}, 400 + seed);
    const auto records = random_chain_rows(seed, 7);
    Job::Method method;
    method.aggregate = seed % 2 ? Aggregate::max : Aggregate::mixture;
    EngineStats alone_stats, shared_stats;
    const auto plain = make_quick_backend(model, 1);
    const Answers alone =
        run(*plain, records, method, false, {.tokens_per_step = 64, .pages = 900}, &alone_stats);
    EXPECT_EQ(alone_stats.alone_tokens, alone_stats.tokens());
    for (const auto& [rows, page] : {std::pair{200, 16}, {7, 4}, {1, 1}, {13, 8}}) {
      const auto quick = make_quick_backend(model, 2);
      expect_same(alone,
                  run(*quick, records, method, true,
                      {.tokens_per_step = rows, .pages = 4000, .page_size = page}, &shared_stats),
                  fmt::format("seed {}, {} rows, pages of {}", seed, rows, page));
      EXPECT_EQ(shared_stats.alone_tokens, alone_stats.tokens());
      EXPECT_LT(shared_stats.tokens(), alone_stats.tokens());
    }
  }
}

TEST(Pced, OneChainWithoutContrastAndPriorIsThePlainPrompt) {
  const Model model = make_random_model({}, 500);
  auto records = random_chain_rows(2, 1);
  Job::Method method;
  method.contrast = 0;
  method.prior_weight = 0;
  for (const float temperature : {0.0f, 1.0f}) {
    const EngineOptions options{.tokens_per_step = 30, .pages = 500, .temperature = temperature, .seed = 5};
    const auto one = make_quick_backend(model, 1), other = make_quick_backend(model, 1);
    const Answers got = run(*one, records, method, true, options);
    auto plain = records;
    for (RecordParts& record : plain) {
      record.document = record.documents[0].tokens;
      record.documents.clear();
    }
    std::vector<Stack> stacks;
    build_separate(plain, stacks);
    expect_same(decode(*other, std::move(stacks), options), got, "the plain prompt");
  }
}

}  // namespace
}  // namespace sheaf
