// The way of rows to their experts and back, against core/model/router.h and plain loops.
#include "cuda/ops/experts.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "core/model/router.h"
#include "cuda/base/devices.h"
#include "cuda/ops/ops.h"
#include "tests/cuda/activated.h"
#include "tests/cuda/copies.h"
#include "tests/cuda/need_gpu.h"

namespace sheaf {
namespace {

using namespace cuda;
using test::poisoned;
using test::to_device;
using test::to_host;

/// Room for routes.
struct RoutesRoom {
  RoutesRoom(int64_t rows, const Experts& experts)
      : chosen(poisoned<int32_t>(rows * experts.per_token)),
        weights(poisoned<float>(rows * experts.per_token)),
        places(poisoned<int32_t>(rows * experts.per_token)),
        sources(poisoned<int32_t>(rows * experts.per_token)),
        offsets(poisoned<int32_t>(experts.count + 1)) {}
  Routes routes() const {
    return {chosen.data(), weights.data(), places.data(), sources.data(), offsets.data()};
  }
  DeviceMemory<int32_t> chosen;
  DeviceMemory<float> weights;
  DeviceMemory<int32_t> places, sources, offsets;
};

/// Logits of `rows` rows of `stride` values. Multiples of a quarter: many are equal, and no rounding makes
/// others so. The first rows are special; what lies beyond the experts is no number.
std::vector<float> make_logits(int32_t rows, int32_t count, int32_t stride, std::mt19937& random) {
  std::vector<float> logits(static_cast<size_t>(rows * stride), NAN);
  for (int32_t row = 0; row < rows; ++row) {
    const auto own = std::span(logits).subspan(static_cast<size_t>(row * stride), static_cast<size_t>(count));
    for (float& logit : own) logit = 0.25f * static_cast<float>(static_cast<int>(random() % 33) - 16);
    if (row == 0) std::ranges::fill(own, 1.5f);
    if (row == 1) std::ranges::fill(own, -1e30f);
    if (row == 2) own[random() % own.size()] = NAN;
    if (row == 3) own[random() % own.size()] = INFINITY;
    if (row == 4) own[random() % own.size()] = -INFINITY;
    if (row == 5) own.back() = 80;
  }
  return logits;
}

void compare_choices(const Experts& experts, std::mt19937& random) {
  const int32_t rows = 203, stride = experts.count + 3;
  const std::vector<float> logits = make_logits(rows, experts.count, stride, random);
  std::vector<float> bias;
  for (int32_t i = 0; (experts.choice_bias || experts.logit_bias) && i < experts.count; ++i)
    bias.push_back(0.125f * static_cast<float>(static_cast<int>(random() % 9) - 4));
  const DeviceMemory<float> values = to_device(logits), biases = to_device(bias);
  const RoutesRoom room(rows, experts);
  const float* const of_logits = experts.logit_bias ? biases.data() : nullptr;
  route(experts, {values.data(), stride, experts.choice_bias ? biases.data() : nullptr, of_logits}, rows,
        room.routes(), nullptr);
  check(cudaDeviceSynchronize(), "route");
  const std::vector<int32_t> chosen = to_host(room.chosen);
  const std::vector<float> weights = to_host(room.weights);
  for (int32_t row = 0; row < rows; ++row) {
    std::vector<float> own(logits.begin() + row * stride, logits.begin() + row * stride + experts.count);
    const bool finite = std::ranges::all_of(own, [](float logit) { return std::isfinite(logit); });
    std::vector<Choice> right(static_cast<size_t>(experts.per_token));
    route(experts, own, bias, right);
    std::vector<int32_t> seen;
    for (int32_t i = 0; i < experts.per_token; ++i) {
      const auto at = static_cast<size_t>(row * experts.per_token + i);
      const Choice& choice = right[static_cast<size_t>(i)];
      EXPECT_TRUE(chosen[at] >= 0 && chosen[at] < experts.count) << "row " << row;
      seen.push_back(chosen[at]);
      EXPECT_EQ(std::isnan(weights[at]), !finite) << "row " << row;
      if (!finite) continue;
      EXPECT_EQ(chosen[at], choice.expert) << "row " << row << ", choice " << i;
      EXPECT_NEAR(weights[at], choice.weight, 1e-5f * std::abs(choice.weight) + 1e-30f) << "row " << row;
    }
    std::ranges::sort(seen);
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end()) << "row " << row << " chooses an expert twice";
  }
}

TEST(Experts, ChoicesAreThoseOfTheDefinition) {
  NEED_GPU();
  std::mt19937 random(3);
  for (const auto& [count, per_token] :
       {std::pair{1, 1}, {5, 2}, {6, 6}, {31, 3}, {64, 8}, {128, 8}, {129, 4}, {300, 32}, {512, 10}}) {
    for (const bool sigmoid : {false, true}) {
      for (const int biased : {0, 1, 2}) {  // not, for the choice, on the logits
        SCOPED_TRACE(testing::Message()
                     << per_token << " of " << count << (sigmoid ? ", sigmoid" : "") << ", bias " << biased);
        Experts experts;
        experts.count = count;
        experts.per_token = per_token;
        experts.scores = sigmoid ? RouterScores::sigmoid : RouterScores::softmax;
        experts.choice_bias = biased == 1;
        experts.logit_bias = biased == 2;
        experts.normalized = count % 2 == 0;
        experts.factor = biased == 1 ? 1.5f : 1.0f;
        compare_choices(experts, random);
      }
    }
  }
}

enum class Spread { random, first, last, same };

/// The choices of rows: distinct experts for each.
std::vector<int32_t> make_choices(const Experts& experts, int32_t rows, Spread spread, std::mt19937& random) {
  std::vector<int32_t> all(static_cast<size_t>(experts.count)), choices;
  std::iota(all.begin(), all.end(), 0);
  if (spread == Spread::last) std::ranges::reverse(all);
  if (spread == Spread::same) std::shuffle(all.begin(), all.end(), random);
  for (int32_t row = 0; row < rows; ++row) {
    if (spread == Spread::random) std::shuffle(all.begin(), all.end(), random);
    choices.insert(choices.end(), all.begin(), all.begin() + experts.per_token);
  }
  return choices;
}

TEST(Experts, GatheredRowsFollowTheRowsOfTheStep) {
  NEED_GPU();
  std::mt19937 random(4);
  for (const auto& [count, per_token, rows] :
       {std::tuple{1, 1, 1}, {5, 2, 1}, {6, 3, 33}, {128, 8, 1000}, {512, 32, 77}, {64, 8, 8448}}) {
    for (const Spread spread : {Spread::random, Spread::first, Spread::last, Spread::same}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << per_token << " of " << count << ", spread "
                                      << static_cast<int>(spread));
      Experts experts;
      experts.count = count;
      experts.per_token = per_token;
      const std::vector<int32_t> choices = make_choices(experts, rows, spread, random);
      RoutesRoom room(rows, experts);
      room.chosen = to_device(choices);
      gather_choices(experts, rows, room.routes(), nullptr);
      check(cudaDeviceSynchronize(), "gather");
      std::vector<size_t> order(choices.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, {}, [&](size_t choice) { return choices[choice]; });
      std::vector<int32_t> places(choices.size()), sources(choices.size()),
          offsets(static_cast<size_t>(count) + 1);
      for (size_t place = 0; place < order.size(); ++place) {
        places[order[place]] = static_cast<int32_t>(place);
        sources[place] = static_cast<int32_t>(order[place]) / per_token;
      }
      for (const int32_t choice : choices) ++offsets[static_cast<size_t>(choice) + 1];
      std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
      EXPECT_EQ(to_host(room.places), places);
      EXPECT_EQ(to_host(room.sources), sources);
      EXPECT_EQ(to_host(room.offsets), offsets);
    }
  }
}

TEST(Experts, RowsAreCopied) {
  NEED_GPU();
  std::mt19937 random(6);
  for (const int32_t cols : {8, 72, 2056}) {
    std::vector<int32_t> in(static_cast<size_t>(50 * cols / 2)), sources(333), right;  // two bf16 each
    for (int32_t& value : in) value = static_cast<int32_t>(random());
    for (int32_t& source : sources) source = static_cast<int32_t>(random() % 50);
    for (const int32_t source : sources) {
      const auto from = in.begin() + source * cols / 2;
      right.insert(right.end(), from, from + cols / 2);
    }
    const auto d_in = to_device(in), d_sources = to_device(sources);
    const auto out = poisoned<int32_t>(static_cast<int64_t>(right.size()));
    copy_rows(reinterpret_cast<const bf16*>(d_in.data()), d_sources.data(), 333, cols,
              reinterpret_cast<bf16*>(out.data()), nullptr);
    check(cudaDeviceSynchronize(), "copy");
    EXPECT_EQ(to_host(out), right) << cols;
  }
}

/// What sum_experts() is asked for besides the experts.
struct Beside {
  bool shared, gated, add, in_place, biased = false;
};

void compare_sums(int32_t hidden, int32_t per_token, const Beside& beside, std::mt19937& random) {
  const int32_t rows = 37, stride = 8;
  const auto size = static_cast<size_t>(rows * hidden);
  std::normal_distribution<float> normal(0, 1);
  const auto floats = [&](size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  };
  std::vector<bf16> given(size * static_cast<size_t>(per_token));
  for (bf16& value : given) value = __float2bfloat16(normal(random));
  std::vector<int32_t> places(static_cast<size_t>(rows * per_token));
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), random);
  const std::vector<float> weights = floats(places.size()), shared = floats(size), before = floats(size),
                           gates = floats(static_cast<size_t>(rows * stride));
  const auto d_given = to_device(given);
  const auto d_places = to_device(places);
  const auto d_weights = to_device(weights), d_shared = to_device(shared), d_gates = to_device(gates);
  const auto out = to_device(beside.in_place ? shared : before);
  Routes routes{};
  routes.weights = d_weights.data();
  routes.places = d_places.data();
  // Biases of five experts, of which a row may choose one twice here.
  const std::vector<float> bias = floats(static_cast<size_t>(5 * hidden));
  std::vector<int32_t> chosen(places.size());
  for (int32_t& expert : chosen) expert = static_cast<int32_t>(random() % 5);
  const auto d_bias = to_device(bias);
  const auto d_chosen = to_device(chosen);
  routes.experts = d_chosen.data();
  const float* beside_it = beside.in_place ? out.data() : d_shared.data();
  sum_experts({d_given.data(), beside.shared ? beside_it : nullptr,
               beside.gated ? d_gates.data() + 5 : nullptr, stride, beside.biased ? d_bias.data() : nullptr},
              routes, per_token, rows, hidden, beside.add, out.data(), nullptr);
  check(cudaDeviceSynchronize(), "sum");
  const std::vector<float> got = to_host(out);
  double worst = 0;
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t col = 0; col < hidden; ++col) {
      const auto at = static_cast<size_t>(row * hidden + col);
      double right = beside.add ? static_cast<double>(before[at]) : 0;
      for (int32_t i = 0; i < per_token; ++i) {
        const auto choice = static_cast<size_t>(row * per_token + i);
        const float more = beside.biased ? bias[static_cast<size_t>(chosen[choice] * hidden + col)] : 0.0f;
        const float one = __bfloat162float(given[static_cast<size_t>(places[choice] * hidden + col)]);
        right +=
            static_cast<double>(weights[choice]) * (static_cast<double>(one) + static_cast<double>(more));
      }
      const double gate = static_cast<double>(gates[static_cast<size_t>(row * stride + 5)]);
      if (beside.shared)
        right += (beside.gated ? 1 / (1 + std::exp(-gate)) : 1) * static_cast<double>(shared[at]);
      worst = std::max(worst, std::abs(static_cast<double>(got[at]) - right));
      ASSERT_FALSE(std::isnan(got[at]));
    }
  }
  EXPECT_LT(worst, 2e-5) << "hidden " << hidden << ", " << per_token << " choices";
}

TEST(Experts, BiasesOfGateAndUpGoToTheirExpertsRows) {
  NEED_GPU();
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 1);
  for (const std::vector<int32_t>& offsets :
       {std::vector<int32_t>{0, 3, 3, 10, 11}, {0, 0, 0, 7}, {0, 5}, {0, 0, 1, 1, 1, 2, 2}}) {
    for (const int32_t cols : {16, 48, 5760}) {
      const auto experts = static_cast<int32_t>(offsets.size()) - 1, rows = offsets.back();
      std::vector<float> bias(static_cast<size_t>(experts * cols));
      std::vector<bf16> values(static_cast<size_t>(rows * cols));
      for (float& value : bias) value = normal(random);
      for (bf16& value : values) value = __float2bfloat16(normal(random));
      const auto d_bias = to_device(bias);
      const auto d_offsets = to_device(offsets);
      const auto out = to_device(values);
      add_expert_biases(d_bias.data(), d_offsets.data(), experts, rows, cols, out.data(), nullptr);
      check(cudaDeviceSynchronize(), "biases");
      const std::vector<bf16> got = to_host(out);
      for (int32_t expert = 0; expert < experts; ++expert)
        for (int32_t row = offsets[static_cast<size_t>(expert)];
             row < offsets[static_cast<size_t>(expert) + 1]; ++row)
          for (int32_t col = 0; col < cols; ++col) {
            const auto at = static_cast<size_t>(row * cols + col);
            const float right = __bfloat162float(values[at]) + bias[static_cast<size_t>(expert * cols + col)];
            ASSERT_EQ(__bfloat162float(got[at]), __bfloat162float(__float2bfloat16(right)))
                << "row " << row << ", column " << col;
          }
    }
  }
}

TEST(Experts, ClampedGatesFollowTheFormula) {
  NEED_GPU();
  constexpr int32_t rows = 3, ffn = 40;
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, 6);
  std::vector<float> both(2 * rows * ffn);
  for (float& value : both) value = __bfloat162float(__float2bfloat16(normal(random)));
  both[3] = NAN;   // a gate
  both[12] = NAN;  // an up
  both[16] = INFINITY;
  both[25] = -INFINITY;
  std::vector<bf16> narrow;
  for (const float value : both) narrow.push_back(__float2bfloat16(value));
  const auto d_both = to_device(both);
  const auto d_narrow = to_device(narrow);
  for (const bool wide : {false, true}) {
    const auto out = poisoned<bf16>(rows * ffn);
    if (wide)
      apply_gates(Activation::clamped, d_both.data(), rows, ffn, out.data(), nullptr);
    else
      apply_gates(Activation::clamped, d_narrow.data(), rows, ffn, out.data(), nullptr);
    check(cudaDeviceSynchronize(), "gates");
    const std::vector<bf16> got = to_host(out);
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t gate = i / 8 * 16 + i % 8;
      const auto value = static_cast<double>(__bfloat162float(got[i]));
      if (std::isnan(both[gate]) || std::isnan(both[gate + 8])) {
        EXPECT_TRUE(std::isnan(value)) << i;
        continue;
      }
      const double right = test::gated(Activation::clamped, static_cast<double>(both[gate]),
                                       static_cast<double>(both[gate + 8]));
      EXPECT_NEAR(value, right, 0.004 * std::abs(right) + 1e-6) << i;
    }
  }
}

TEST(Experts, SumsEqualPlainOnes) {
  NEED_GPU();
  std::mt19937 random(5);
  for (const int32_t hidden : {8, 72, 2056, 4096})
    for (const int32_t per_token : {1, 2, 8, 9})
      for (const Beside& beside : {Beside{false, false, true, false},
                                   {false, false, false, false},
                                   {true, false, true, false},
                                   {true, true, true, false},
                                   {true, true, false, true},
                                   {false, false, true, false, true},
                                   {true, true, false, true, true}})
        compare_sums(hidden, per_token, beside, random);
}

}  // namespace
}  // namespace sheaf
