// Several samples of a question behind one prompt.
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers;

/// Every question so many times in a row.
void repeat_questions(std::vector<RecordParts>& records, int32_t samples) {
  const auto repeated = [&](const std::vector<QuestionParts>& questions) {
    std::vector<QuestionParts> out;
    for (const QuestionParts& question : questions)
      out.insert(out.end(), static_cast<size_t>(samples), question);
    return out;
  };
  auto bin = std::make_shared<BinParts>(*records[0].bin);
  bin->questions = repeated(bin->questions);
  for (RecordParts& record : records) {
    record.samples = samples;
    record.bin = bin;
    record.own_questions = repeated(record.own_questions);
    for (DocumentParts& document : record.documents) {
      std::vector<float> relevance;
      for (const float each : document.relevance)
        relevance.insert(relevance.end(), static_cast<size_t>(samples), each);
      document.relevance = std::move(relevance);
    }
  }
}

using BuildStacks = std::function<void(std::span<const RecordParts>, std::vector<Stack>&)>;

std::vector<Stack> build_all(const std::vector<RecordParts>& records, const BuildStacks& build) {
  std::vector<Stack> stacks;
  for (size_t first = 0; first < records.size(); first += 3)
    build(std::span(records).subspan(first, std::min<size_t>(3, records.size() - first)), stacks);
  for (const Stack& stack : stacks) check_stack(stack);
  return stacks;
}

EngineOptions sampling(int32_t tokens_per_step) {
  EngineOptions options;
  options.tokens_per_step = tokens_per_step;
  options.pages = 4000;
  options.page_size = 4;
  options.temperature = 1.3f;
  options.seed = 5;
  return options;
}

TEST(Samples, AreThoseOfOnePromptEach) {
  const Model model = test::make_random_model({}, 3);
  const auto backend = make_quick_backend(model, 2, Precision::f32);
  for (uint32_t seed = 0; seed < 4; ++seed) {
    auto records = test::make_random_records(
        {.records = 6, .questions = 3, .max_tokens = 6, .own_questions = seed % 2 == 0, .longest = 12}, seed);
    repeat_questions(records, 4);
    const Answers apart = test::decode(*backend, build_all(records, build_separate), sampling(64));
    ASSERT_EQ(apart.size(), 6u * 3 * 4);
    int different = 0;
    for (const auto& [key, answer] : apart)
      different += answer.tokens != apart.at({key.first, key.second / 4 * 4}).tokens;
    EXPECT_GT(different, 20) << "samples differ from the first one";
    for (const int32_t tokens : {3, 200})
      for (const BuildStacks& build : {BuildStacks(build_tree), BuildStacks(build_prefix)})
        test::expect_same(test::decode(*backend, build_all(records, build), sampling(tokens)), apart,
                          "in steps of " + std::to_string(tokens));
  }
}

TEST(Samples, OfDocumentsReadOneByOneAreThoseWithNothingShared) {
  const Model model = test::make_random_model({}, 4);
  const auto backend = make_quick_backend(model, 2, Precision::f32);
  auto records = test::make_random_records(
      {.records = 4, .questions = 2, .max_tokens = 5, .own_questions = true, .longest = 10}, 9);
  test::add_random_chains(records, 3, 10, 9);
  repeat_questions(records, 3);
  for (const bool chains : {true, false}) {
    const auto decode = [&](bool shared, int32_t tokens) {
      return test::decode(*backend,
                          build_all(records,
                                    [&](std::span<const RecordParts> some, std::vector<Stack>& out) {
                                      chains ? build_pced(some, Job::Method(), shared, out)
                                             : build_ape(some, shared, out);
                                    }),
                          sampling(tokens));
    };
    test::expect_same(decode(true, 9), decode(false, 300), chains ? "pced" : "ape");
  }
}

TEST(Samples, ThatAreKnownAreLeftOut) {
  const Model model = test::make_random_model({}, 5);
  const auto backend = make_quick_backend(model, 2, Precision::f32);
  auto records =
      test::make_random_records({.records = 3, .questions = 2, .max_tokens = 5, .own_questions = true}, 2);
  repeat_questions(records, 4);
  const Answers all = test::decode(*backend, build_all(records, build_tree), sampling(50));
  for (RecordParts& record : records) record.leave_out({true, false, true, true, false, true, false, false});
  const Answers some = test::decode(*backend, build_all(records, build_tree), sampling(50));
  EXPECT_EQ(some.size(), 3u * 4);
  for (const auto& [key, answer] : some) EXPECT_EQ(answer.tokens, all.at(key).tokens);
}

}  // namespace
}  // namespace sheaf
