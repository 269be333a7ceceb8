#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>

#include "core/base/error.h"
#include "cpu/cpu_backend.h"
#include "tests/cpu/graph_runner.h"
#include "tests/dense_model.h"
#include "tests/random_model.h"

namespace sheaf::test {
namespace {

struct Variant {
  const char* name;
  RandomModelShape shape;
};

std::vector<Variant> variants() {
  using S = RandomModelShape;
  return {
      {"plain", S{}},
      {"tied", S{.tied_output = true}},
      {"group1_biases", S{.heads = 2, .kv_heads = 2, .head_dim = 16, .biases = true}},
      {"group3_odd_sizes",
       S{.hidden = 30, .ffn = 50, .heads = 3, .kv_heads = 1, .head_dim = 10, .vocab = 37}},
      {"group4_per_head_norm",
       S{.hidden = 48, .heads = 8, .kv_heads = 2, .head_dim = 20, .qk_norm = QkNorm::per_head}},
      {"whole_norm_post_norm",
       S{.heads = 4, .kv_heads = 4, .head_dim = 8, .qk_norm = QkNorm::whole, .post_norm = true}},
      {"partial_rotary",
       S{.layers = 3, .heads = 6, .kv_heads = 3, .head_dim = 24, .rotary_dim = 6, .biases = true}},
      {"wide_head", S{.layers = 1, .hidden = 24, .heads = 2, .kv_heads = 1, .head_dim = 72}},
      {"factors", S{.tied_output = true,
                    .change =
                        [](ModelConfig& config) {
                          config.embedding_scale = 1.75f;
                          config.score_scale = 0.6f;
                          config.residual_scale = 0.4f;
                          config.logit_scale = 0.3f;
                        }}},
      {"caps", S{.change =
                     [](ModelConfig& config) {
                       config.score_scale = 1.5f;
                       config.score_cap = 2;
                       config.logit_cap = 3;
                     }}},
      {"four_norms_gelu", S{.qk_norm = QkNorm::per_head,
                            .change =
                                [](ModelConfig& config) {
                                  config.norms = kNormsAround;
                                  config.activation = Activation::gelu_tanh;
                                }}},
      {"norm_before_attention_only", S{.change = [](ModelConfig& config) { config.norms.pre_mlp = false; }}},
      {"every_bias",
       S{.ffn = 50,
         .change =
             [](ModelConfig& config) { config.biases = {true, false, true, true, true, true, true, true}; }}},
      {"ropes_by_layer", S{.layers = 4,
                           .rotary_dim = 6,
                           .change =
                               [](ModelConfig& config) {
                                 config.ropes.push_back({{0.5f, 0.2f, 0.01f}, 1.25f});
                                 config.layers[1].rope = 1;
                                 config.layers[2].rope = -1;
                               }}},
      {"window_of_5", S{.change =
                            [](ModelConfig& config) {
                              for (LayerConfig& layer : config.layers) layer.window = 5;
                            }}},
      {"windows_by_layer", S{.layers = 4,
                             .hidden = 48,
                             .heads = 6,
                             .kv_heads = 2,
                             .head_dim = 20,
                             .change =
                                 [](ModelConfig& config) {
                                   config.layers[0].window = 37;
                                   config.layers[1].window = 1;
                                   config.layers[2].window = 100;
                                   config.score_cap = 4;
                                 }}},
      // All of them, so that no rounding changes a choice.
      {"experts", S{.layers = 3,
                    .change =
                        [](ModelConfig& config) {
                          test::use_experts(config);
                          config.experts.per_token = config.experts.count;
                        }}},
      {"sigmoid_experts", S{.hidden = 48,
                            .change =
                                [](ModelConfig& config) {
                                  test::use_sigmoid_experts(config);
                                  config.experts.per_token = config.experts.count;
                                }}},
      {"sinks", S{.heads = 6,
                  .kv_heads = 2,
                  .head_dim = 20,
                  .change =
                      [](ModelConfig& config) {
                        config.sinks = true;
                        config.score_cap = 4;
                      }}},
      {"clamped", S{.biases = true,
                    .change =
                        [](ModelConfig& config) {
                          config.activation = Activation::clamped;
                          config.biases.gate = config.biases.up = true;
                        }}},
      {"gpt_oss", S{.layers = 3,
                    .heads = 8,
                    .kv_heads = 1,
                    .change =
                        [](ModelConfig& config) {
                          test::use_gpt_oss(config);
                          config.experts.per_token = config.experts.count;
                        }}},
      {"deep_sums", S{.layers = 1, .hidden = 40, .ffn = 1100, .heads = 2, .kv_heads = 1, .head_dim = 16}},
  };
}

enum class Kind { reference, quick, int16, int8 };

/// Each kind, and how far its logits may be from the exact ones. Random weights have no outliers.
struct KindAndRoom {
  Kind kind;
  double room;
};
constexpr KindAndRoom kKinds[] = {
    {Kind::reference, 2e-5}, {Kind::quick, 2e-5}, {Kind::int16, 2e-3}, {Kind::int8, 0.3}};

std::unique_ptr<Backend> make_backend(Kind kind, const Model& model, int threads) {
  if (kind == Kind::reference) return make_reference_backend(model);
  return make_quick_backend(model, threads,
                            kind == Kind::int8    ? Precision::int8
                            : kind == Kind::int16 ? Precision::int16
                                                  : Precision::f32);
}

bool same_bits(const GraphLogits& a, const GraphLogits& b) {
  if (a.size() != b.size()) return false;
  for (size_t s = 0; s < a.size(); ++s) {
    if (a[s].size() != b[s].size()) return false;
    for (size_t i = 0; i < a[s].size(); ++i)
      if (std::memcmp(a[s][i].data(), b[s][i].data(), a[s][i].size() * sizeof(float)) != 0) return false;
  }
  return true;
}

/// The largest difference, as a share of the row's own spread.
double difference(const GraphLogits& a, const GraphLogits& b) {
  double worst = 0;
  for (size_t s = 0; s < a.size(); ++s)
    for (size_t i = 0; i < a[s].size(); ++i) {
      double spread = 0;
      for (const float value : b[s][i]) spread = std::max(spread, std::abs(static_cast<double>(value)));
      for (size_t n = 0; n < a[s][i].size(); ++n) {
        const double gap = std::abs(static_cast<double>(a[s][i][n]) - static_cast<double>(b[s][i][n]));
        worst = std::isnan(gap) ? 1e9 : std::max(worst, gap / spread);
      }
    }
  return worst;
}

GraphLogits dense_logits(const Model& model, const Graph& graph) {
  Tokens tokens;
  std::vector<int32_t> positions;
  std::vector<std::pair<size_t, size_t>> places;  // segment and index
  for (size_t s = 0; s < graph.size(); ++s)
    for (size_t i = 0; i < graph[s].tokens.size(); ++i) {
      tokens.push_back(graph[s].tokens[i]);
      positions.push_back(graph[s].position + static_cast<int32_t>(i));
      places.emplace_back(s, i);
    }
  std::vector<uint8_t> mask;
  for (const auto& [segment, index] : places)
    for (const auto& [other, at] : places) {
      const auto in = [&, seen = static_cast<int32_t>(other)](const std::vector<int32_t>& list) {
        return std::ranges::count(list, seen) > 0 ? 1 : 0;
      };
      mask.push_back(static_cast<uint8_t>(
          segment == other ? at <= index : in(graph[segment].sees) + in(graph[segment].apart)));
    }
  const auto rows = DenseModel(model).run(tokens, positions, mask, graph.front().softmax);
  GraphLogits logits(graph.size());
  for (size_t row = 0; row < rows.size(); ++row)
    logits[places[row].first].emplace_back(rows[row].begin(), rows[row].end());
  return logits;
}

class EveryVariant : public ::testing::TestWithParam<int> {
 protected:
  Variant variant = variants()[static_cast<size_t>(GetParam())];
  Model model = make_random_model(variant.shape, 17);
  std::mt19937 random{static_cast<uint32_t>(GetParam())};
};

TEST_P(EveryVariant, AgreesWithDenseMaskInDoublePrecision) {
  for (int round = 0; round < 3; ++round) {
    const Graph graph = random_graph(random, 5, 12, model.config.vocab);
    const GraphLogits expected = dense_logits(model, graph);
    for (const auto& [kind, room] : kKinds) {
      const auto backend = make_backend(kind, model, 2);
      const RunLayout layout{random(), 3, 20, true, true};
      EXPECT_LT(difference(run_graph(*backend, graph, layout), expected), room) << backend->describe();
    }
  }
}

TEST_P(EveryVariant, AgreesWithDenseMaskWhereDocumentsAreWeighedApart) {
  for (const DocumentSoftmax& softmax :
       {DocumentSoftmax{0.5f, 1}, DocumentSoftmax{1, 0.7f}, DocumentSoftmax{0.2f, 0.3f}}) {
    const Graph plain = random_graph(random, 10, 12, model.config.vocab);
    const Graph graph = weighed_apart(random, plain, softmax);
    const GraphLogits expected = dense_logits(model, graph);
    EXPECT_GT(difference(expected, dense_logits(model, plain)), 1e-3);
    for (const auto& [kind, room] : kKinds) {
      const auto backend = make_backend(kind, model, 2);
      const RunLayout layout{random(), 3, 20, true, true};
      // What rounding does to a score, a temperature makes larger.
      const double more = kind < Kind::int16 ? 1 : 1 / static_cast<double>(softmax.temperature);
      EXPECT_LT(difference(run_graph(*backend, graph, layout), expected), more * room) << backend->describe();
    }
  }
}

TEST_P(EveryVariant, ResultsDoNotDependOnTheBatchWhereDocumentsAreWeighedApart) {
  const Graph plain = random_graph(random, 7, 90, model.config.vocab);
  const Graph graph = weighed_apart(random, plain, {0.6f, 0.8f}), same = weighed_apart(random, plain, {});
  for (const auto& [kind, room] : kKinds) {
    const auto first = make_backend(kind, model, 1), second = make_backend(kind, model, 2);
    const GraphLogits expected = run_graph(*first, graph, {});
    EXPECT_TRUE(same_bits(run_graph(*first, plain, {}), run_graph(*second, same, {})))
        << "a temperature and a scale of 1 must change nothing";
    for (int round = 0; round < 4; ++round) {
      const auto backend = make_backend(kind, model, 1 + round % 3);
      const RunLayout layout{random(), std::array{1, 17, 32, 16}[static_cast<size_t>(round)],
                             std::array{1 << 20, 3, 64, 33}[static_cast<size_t>(round)], round % 4 != 1,
                             round % 3 != 0};
      EXPECT_TRUE(same_bits(run_graph(*backend, graph, layout), expected))
          << backend->describe() << ", pages of " << layout.page_size << ", up to " << layout.most_rows
          << " rows";
    }
  }
}

TEST(RoutingCounts, AreTheSameOfAllBackendsAndCountEveryChoice) {
  const Model model = make_random_model(RandomModelShape{.layers = 3, .change = use_experts}, 5);
  std::mt19937 random(9);
  const Graph graph = random_graph(random, 6, 40, model.config.vocab);
  int64_t tokens = 0;
  for (const GraphSegment& segment : graph) tokens += std::ssize(segment.tokens);
  const RunLayout layout{3, 16, 50};
  const auto routing_of = [&](Kind kind) {
    const auto backend = make_backend(kind, model, 2);
    EXPECT_EQ(backend->routing().passes, 0);
    run_graph(*backend, graph, layout);
    return backend->routing();
  };
  const Routing reference = routing_of(Kind::reference), quick = routing_of(Kind::quick);
  EXPECT_EQ(reference.experts, 5);
  EXPECT_EQ(reference.tokens, tokens * 2 * 2) << "two layers have experts, and a token chooses two of them";
  EXPECT_GE(reference.passes, 2);
  EXPECT_EQ(reference.expert_tokens.json()["count"], 5 * reference.passes);
  EXPECT_EQ(quick.passes, reference.passes);
  EXPECT_EQ(quick.tokens, reference.tokens);
  EXPECT_EQ(quick.busiest_tokens, reference.busiest_tokens);
  EXPECT_EQ(quick.expert_tokens.json(), reference.expert_tokens.json());
}

TEST_P(EveryVariant, QuickAgreesWithReferenceOnLongSpans) {
  const Graph graph = random_graph(random, 4, 300, model.config.vocab);
  const auto reference = make_reference_backend(model);
  const auto quick = make_quick_backend(model, 2);
  EXPECT_LT(difference(run_graph(*quick, graph, {}), run_graph(*reference, graph, {})), 1e-4);
}

TEST_P(EveryVariant, ResultsDoNotDependOnTheBatch) {
  const Graph graph = random_graph(random, 8, 90, model.config.vocab);
  for (const auto& [kind, room] : kKinds) {
    const auto first = make_backend(kind, model, 1);
    const GraphLogits expected = run_graph(*first, graph, {});
    for (int round = 0; round < 8; ++round) {
      const auto backend = make_backend(kind, model, 1 + round % 3);
      const int32_t page_sizes[] = {1, 5, 16, 17, 32, 256, 40, 16};
      const int32_t most_rows[] = {1 << 20, 1, 3, 17, 64, 200, 7, 33};
      const RunLayout layout{random(), page_sizes[round], most_rows[round], round % 4 != 1, round % 3 != 0};
      EXPECT_TRUE(same_bits(run_graph(*backend, graph, layout), expected))
          << backend->describe() << ", pages of " << layout.page_size << ", up to " << layout.most_rows
          << " rows";
    }
  }
}

TEST_P(EveryVariant, ResultsDoNotDependOnHowThePromptIsCut) {
  const Tokens tokens = random_tokens(random, 150, model.config.vocab);
  for (const auto& [kind, room] : kKinds) {
    const auto whole = make_backend(kind, model, 2);
    const Graph one{{tokens, 4, {}}};
    const std::vector<std::vector<float>> expected = run_graph(*whole, one, {})[0];
    for (int round = 0; round < 4; ++round) {
      Graph chain;
      std::vector<int32_t> before;
      for (size_t begin = 0; begin < tokens.size();) {
        const size_t end = std::min(tokens.size(), begin + random() % 40);
        const auto at = [&](size_t i) { return tokens.begin() + static_cast<std::ptrdiff_t>(i); };
        chain.push_back({Tokens(at(begin), at(end)), 4 + static_cast<int32_t>(begin), before});
        before.push_back(static_cast<int32_t>(before.size()));
        begin = end;
      }
      // Another prompt that shares the steps.
      chain.push_back({random_tokens(random, 33, model.config.vocab), 0, {}});
      const auto backend = make_backend(kind, model, 2);
      GraphLogits cut = run_graph(*backend, chain, {random(), 16, 50, true, true});
      cut.pop_back();
      std::vector<std::vector<float>> joined;
      for (auto& segment : cut) joined.insert(joined.end(), segment.begin(), segment.end());
      EXPECT_TRUE(same_bits({joined}, {expected}))
          << backend->describe() << ", " << chain.size() << " segments";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, EveryVariant, ::testing::Range(0, static_cast<int>(variants().size())),
                         [](const auto& variant) {
                           return std::string(variants()[static_cast<size_t>(variant.param)].name);
                         });

class EveryBackend : public ::testing::TestWithParam<Kind> {
 protected:
  Model model = make_random_model({}, 3);
  std::unique_ptr<Backend> backend = make_backend(GetParam(), model, 2);
};

TEST_P(EveryBackend, RowThatSeesNothingIsFinite) {
  backend->allocate_kv(2, 16);
  StepBatch batch;
  batch.tokens = {5};
  batch.positions = {0};
  batch.kv_slots = {3};
  batch.picks.resize(1);
  std::vector<Picked> picked(1);
  std::vector<float> logits(static_cast<size_t>(model.config.vocab));
  backend->step(batch, picked, logits);
  for (const float logit : logits) EXPECT_TRUE(std::isfinite(logit));
  batch.clear();
  picked.clear();
  backend->step(batch, picked);
}

TEST_P(EveryBackend, ForeignGarbageInAPageDoesNotLeak) {
  // Slots of the span's last page that the row does not see hold NaN from an earlier tenant: of a token whose
  // norm overflows.
  const Graph graph{{{1, 2, 3, 4, 5}, 0, {}}};
  const GraphLogits expected = run_graph(*make_backend(GetParam(), model, 2), graph, {});
  Model poisoned_model = make_random_model({}, 3);
  std::vector<float> embedding = model.embedding.read_all();
  for (int32_t i = 0; i < model.config.hidden; ++i)
    embedding[static_cast<size_t>(60 * model.config.hidden + i)] = 1e25f;
  poisoned_model.embedding.data = reinterpret_cast<const std::byte*>(embedding.data());
  const auto poisoned = make_backend(GetParam(), poisoned_model, 2);
  GraphRunner runner(*poisoned, graph, {});
  StepBatch batch;
  for (int32_t slot = 0; slot < 32; ++slot) {
    batch.tokens.push_back(60);
    batch.positions.push_back(0);
    batch.kv_slots.push_back(slot);
  }
  poisoned->step(batch, {});
  EXPECT_TRUE(same_bits(runner.run(), expected));
}

TEST_P(EveryBackend, MalformedBatchesAreErrors) {
  StepBatch good;
  good.tokens = {1, 2};
  good.positions = {0, 1};
  good.kv_slots = {0, 1};
  good.pages = {0};
  good.spans = {{0, 2}};
  good.tile_rows = {{0, 1}, {1, 2}};
  good.tiles = {{0, 0, 2}};
  good.picks.resize(1);
  good.picks[0].row = 1;
  good.allowed = {1, 4};
  std::vector<Picked> picked(1);
  EXPECT_THROW(backend->step(good, picked), Error) << "no pool yet";
  backend->allocate_kv(2, 4);
  EXPECT_NO_THROW(backend->step(good, picked));
  const auto refuses = [&](auto&& spoil) {
    StepBatch batch = good;
    spoil(batch);
    EXPECT_THROW(backend->step(batch, picked), Error);
  };
  refuses([](StepBatch& b) { b.tokens[0] = 61; });
  refuses([](StepBatch& b) { b.tokens[0] = -1; });
  refuses([](StepBatch& b) { b.positions[1] = -1; });
  refuses([](StepBatch& b) { b.positions.pop_back(); });
  refuses([](StepBatch& b) { b.kv_slots[1] = 8; });
  refuses([](StepBatch& b) { b.pages[0] = 2; });
  refuses([](StepBatch& b) { b.spans[0].keys = 5; });
  refuses([](StepBatch& b) { b.spans[0].first_page = 1; });
  refuses([](StepBatch& b) { b.tiles[0].span = 1; });
  refuses([](StepBatch& b) { b.tiles[0].row_count = 3; });
  refuses([](StepBatch& b) { b.tile_rows[1].row = 2; });
  refuses([](StepBatch& b) { b.tile_rows[1].row = 0; });
  refuses([](StepBatch& b) { b.tile_rows[1].visible = 3; });
  for (const float bad : {0.0f, -1.0f, 1.5f, NAN}) {
    refuses([&](StepBatch& b) { b.document_softmax.temperature = bad; });
    refuses([&](StepBatch& b) { b.document_softmax.scale = bad; });
  }
  refuses([](StepBatch& b) { b.picks[0].row = 2; });
  refuses([](StepBatch& b) { b.picks[0].allowed_count = 3; });
  refuses([](StepBatch& b) { b.allowed[0] = 61; });
  picked.resize(2);
  EXPECT_THROW(backend->step(good, picked), Error) << "room for more picks than there are";
}

TEST_P(EveryBackend, TooLargeAPoolIsAnError) {
  EXPECT_THROW(backend->allocate_kv(1 << 30, 1 << 10), Error);
  EXPECT_THROW(backend->allocate_kv(2147483647, 2147483647), Error);
  EXPECT_THROW(backend->allocate_kv(0, 16), Error);
}

std::string kind_name(const ::testing::TestParamInfo<Kind>& kind) {
  constexpr const char* kNames[] = {"reference", "quick", "int16", "int8"};
  return kNames[static_cast<size_t>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(Cpu, EveryBackend,
                         ::testing::Values(Kind::reference, Kind::quick, Kind::int16, Kind::int8), kind_name);

// More keys than sums of 32 bits could hold. The segments see only themselves, so they cost little.
TEST(IntAttention, SumsOverSeventyThousandKeysDoNotOverflow) {
  const Model model = make_random_model({.layers = 1, .heads = 2, .kv_heads = 1, .head_dim = 8}, 5);
  std::mt19937 random(9);
  Graph graph;
  std::vector<int32_t> all;
  for (int32_t i = 0; i < 350; ++i) {
    graph.push_back({random_tokens(random, 200, model.config.vocab), 0, {}});
    all.push_back(i);
  }
  graph.push_back({random_tokens(random, 3, model.config.vocab), 200, all});
  const auto last = [&](Kind kind) {
    return GraphLogits{run_graph(*make_backend(kind, model, 2), graph, {}).back()};
  };
  EXPECT_LT(difference(last(Kind::int16), last(Kind::quick)), 2e-3);
}

}  // namespace
}  // namespace sheaf::test
