// Span attention on the device against fp64 sums over what the step says each row sees.
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <optional>

#include "core/model/e4m3.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/attention/documents.h"
#include "cuda/base/device_memory.h"
#include "cuda/base/devices.h"
#include "cuda/ops/ops.h"
#include "tests/cuda/need_gpu.h"
#include "tests/cuda/random_looks.h"

namespace sheaf {
namespace {

using namespace cuda;

struct Heads {
  int32_t heads, kv_heads, head_dim, padded_dim;
};

template <class T>
DeviceMemory<T> send(const std::vector<T>& values) {
  DeviceMemory<T> device(std::max<int64_t>(1, static_cast<int64_t>(values.size())));
  if (!values.empty())
    check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          "send");
  return device;
}

/// Of e4m3's three bits: half a step of 1/8, evenly spread, of numbers just above a power of two.
constexpr double kMostRounding = 0.0361;

using Attend = std::function<void(const AttentionTensors& tensors)>;

/// Attends again, with e4m3 results.
void expect_same_in_fp8(const Attend& attend, const HeadLayout& layout, AttentionTensors tensors,
                        const std::vector<float>& right) {
  const auto cols = int64_t{layout.heads} * layout.head_dim, rows = static_cast<int64_t>(right.size()) / cols;
  const DeviceMemory<e4m3> values(rows * cols);
  const DeviceMemory<float> scales(rows), blocks(rows * layout.heads);
  check(cudaMemset(values.data(), 0x7f, static_cast<size_t>(values.size())), "poison");
  check(cudaMemset(blocks.data(), 0xff, static_cast<size_t>(blocks.size()) * 4), "poison");
  tensors.out = nullptr;
  tensors.out8 = {values.data(), scales.data(), blocks.data()};
  attend(tensors);
  align_rows(tensors.out8, static_cast<int32_t>(rows), static_cast<int32_t>(cols), nullptr);
  check(cudaDeviceSynchronize(), "attention");
  std::vector<e4m3> got(right.size());
  std::vector<float> by(static_cast<size_t>(rows));
  check(cudaMemcpy(got.data(), values.data(), got.size(), cudaMemcpyDeviceToHost), "result");
  check(cudaMemcpy(by.data(), scales.data(), by.size() * 4, cudaMemcpyDeviceToHost), "result");
  double error = 0, square = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const auto value = static_cast<double>(from_e4m3(got[i].__x) * by[i / static_cast<size_t>(cols)]);
    error += (value - static_cast<double>(right[i])) * (value - static_cast<double>(right[i]));
    square += static_cast<double>(right[i]) * static_cast<double>(right[i]);
  }
  EXPECT_LT(std::sqrt(error / square), kMostRounding);
}

/// Numbers in e4m3 on the device, made of fp16 there.
struct Narrow {
  std::vector<float> scales;  ///< [heads + 2 kv_heads]
  DeviceMemory<float> device_scales;
  DeviceMemory<e4m3> q, keys, values;
  NarrowKeys view() const { return {keys.data(), values.data(), device_scales.data()}; }
};

Narrow make_narrow(const HeadLayout& layout, const std::vector<f16>& q, const std::vector<f16>& k,
                   const std::vector<f16>& v) {
  Narrow made;
  for (int32_t head = 0; head < layout.heads + 2 * layout.kv_heads; ++head)
    made.scales.push_back((head < layout.heads ? 0.003f : 0.02f) * static_cast<float>(1 + head % 3));
  made.device_scales = send(made.scales);
  made.q.grow(static_cast<int64_t>(q.size()));
  made.keys.grow(static_cast<int64_t>(k.size()));
  made.values.grow(static_cast<int64_t>(v.size()));
  // In order, whole pages; the others one by one.
  std::vector<int32_t> slots(static_cast<size_t>(layout.slots));
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int32_t>(i);
  std::reverse(slots.begin() + static_cast<int64_t>(slots.size() / 3), slots.end());
  std::vector<f16> both = k;
  both.insert(both.end(), v.begin(), v.end());
  const auto dq = send(q), wide = send(both);
  const auto on_device = send(slots);
  round_keys(on_device.data(), static_cast<int32_t>(slots.size()), layout, wide.data(), made.view(), nullptr);
  round_queries(dq.data(),
                static_cast<int32_t>(static_cast<int64_t>(q.size()) / layout.heads / layout.padded_dim),
                layout, made.device_scales.data(), made.q.data(), nullptr);
  check(cudaDeviceSynchronize(), "rounding");
  return made;
}

/// Vectors [heads, per_head, dim] as e4m3 has them.
void round_like(std::vector<f16>& values, const float* scales, int64_t heads, int64_t per_head, int64_t dim,
                bool heads_inside) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto vector = static_cast<int64_t>(i) / dim;
    const float scale = scales[heads_inside ? vector % heads : vector / per_head];
    const e4m3 rounded(__half2float(values[i]) * (1 / scale));
    values[i] = __float2half(static_cast<float>(rounded) * scale);
  }
}

/// Runs the plan on the device and returns out [rows, heads, head_dim]; with `narrow`, of e4m3.
std::vector<float> attend_on_device(const StepBatch& batch, const HeadLayout& layout, int32_t page_size,
                                    int32_t wanted, bool fixed, const std::vector<f16>& q,
                                    const std::vector<f16>& k, const std::vector<f16>& v,
                                    const Narrow* narrow, int32_t window, const std::vector<float>& sinks) {
  const AttentionPlanner planner =
      make_attention_planner({layout.heads / layout.kv_heads, page_size, wanted, fixed});
  AttentionPlan plan;
  planner(batch, window, plan);
  const auto items = send(plan.items);
  const auto rows = send(plan.rows);
  const auto pages = send(plan.pages);
  const auto page_positions = send(plan.page_positions);
  const auto row_positions = send(batch.positions);
  const auto merged = send(plan.merged_rows);
  const auto begin = send(plan.partial_begin);
  const auto partials = send(plan.partials);
  const auto dq = send(q), dk = send(k), dv = send(v);
  const int64_t count = int64_t{batch.rows()} * layout.heads * layout.head_dim;
  const DeviceMemory<float> partial_out(int64_t{plan.partial_rows} * layout.heads * layout.padded_dim + 1);
  const DeviceMemory<float> partial_lse(int64_t{plan.partial_rows} * layout.heads + 1);
  const DeviceMemory<bf16> out(count);
  check(cudaMemset(out.data(), 0xff, static_cast<size_t>(count) * sizeof(bf16)), "poison");
  AttentionInputs in{items.data(),
                     plan.small_items,
                     static_cast<int32_t>(plan.items.size()) - plan.small_items,
                     rows.data(),
                     pages.data(),
                     page_size,
                     merged.data(),
                     begin.data(),
                     partials.data(),
                     static_cast<int32_t>(plan.merged_rows.size()),
                     plan.partial_rows,
                     fixed};
  in.window = window;
  in.page_positions = page_positions.data();
  in.row_positions = row_positions.data();
  const auto on_device = send(std::vector{in});
  AttentionTensors tensors{dq.data(),          dk.data(),  dv.data(), partial_out.data(),
                           partial_lse.data(), out.data(), {}};
  if (narrow) {
    tensors.q8 = narrow->q.data();
    tensors.narrow = narrow->view();
  }
  const auto d_sinks = send(sinks);
  if (!sinks.empty()) tensors.sinks = d_sinks.data();
  const auto document_items = send(plan.document_items);
  const auto all_documents = static_cast<int32_t>(plan.document_items.size());
  const DocumentBlocks documents{document_items.data(),
                                 plan.small_document_items,
                                 all_documents - plan.small_document_items,
                                 plan.first_document_partial,
                                 batch.document_softmax.temperature,
                                 batch.document_softmax.scale};
  const Attend attend = [&](const AttentionTensors& with) {
    all_documents > 0 ? attend_with_documents(in, on_device.data(), layout, with, documents, nullptr)
                      : cuda::attend(in, on_device.data(), layout, with, nullptr);
  };
  attend(tensors);
  check(cudaDeviceSynchronize(), "attention");
  std::vector<bf16> result(static_cast<size_t>(count));
  check(cudaMemcpy(result.data(), out.data(), result.size() * sizeof(bf16), cudaMemcpyDeviceToHost),
        "result");
  std::vector<float> values(result.size());
  for (size_t i = 0; i < result.size(); ++i) values[i] = __bfloat162float(result[i]);
  if (rounds_to_fp8(layout, page_size)) expect_same_in_fp8(attend, layout, tensors, values);
  return values;
}

void compare_numbers(const test::RandomLooks& looks, const Heads& heads, int32_t page_size, int32_t wanted,
                     std::mt19937& random, const std::string& what, bool fixed, bool in_fp8,
                     bool sink = false, int32_t window = 0, float cap = 0,
                     const std::vector<float>& sinks = {}) {
  const StepBatch& batch = looks.batch;
  HeadLayout layout{};
  layout.heads = heads.heads;
  layout.kv_heads = heads.kv_heads;
  layout.head_dim = heads.head_dim;
  layout.padded_dim = heads.padded_dim;
  layout.slots = int64_t{looks.pages} * page_size;
  layout.score_cap = cap;
  std::normal_distribution<float> normal(0, 1);
  auto noise = [&](int64_t vectors, float scale) {
    std::vector<f16> values(static_cast<size_t>(vectors * heads.padded_dim));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = __float2half(
          static_cast<int32_t>(i) % heads.padded_dim < heads.head_dim ? scale * normal(random) : 0.0f);
    return values;
  };
  // Scores with a spread of about 1.5 in base 2: some keys matter much more than others.
  auto q = noise(int64_t{batch.rows()} * heads.heads, 1.5f / std::sqrt(static_cast<float>(heads.head_dim)));
  auto k = noise(heads.kv_heads * layout.slots, 1), v = noise(heads.kv_heads * layout.slots, 1);
  if (sink) {
    // As in real models: the first key outweighs thousands of others and has no value. The others' values do
    // not cancel out, so that sums grow with every key.
    const auto dim = static_cast<size_t>(heads.padded_dim);
    for (f16& value : v) value = __float2half(__half2float(value) + 0.5f);
    for (size_t i = 0; i < q.size(); i += dim) q[i] = q[i + 1] = __float2half(1);
    for (int32_t head = 0; head < heads.kv_heads; ++head) {
      const auto at = static_cast<size_t>(head * layout.slots + batch.pages[0] * page_size) * dim;
      k[at] = k[at + 1] = __float2half(6);
      std::fill_n(v.begin() + static_cast<int64_t>(at), dim, __float2half(0));
    }
  }
  std::optional<Narrow> narrow;
  if (in_fp8) {
    if (!hopper_attention(layout, page_size)) return;
    narrow = make_narrow(layout, q, k, v);
    const float* scales = narrow->scales.data();
    round_like(q, scales, heads.heads, 1, heads.padded_dim, true);
    round_like(k, scales + heads.heads, heads.kv_heads, layout.slots, heads.padded_dim, false);
    round_like(v, scales + heads.heads + heads.kv_heads, heads.kv_heads, layout.slots, heads.padded_dim,
               false);
  }
  const auto got = attend_on_device(batch, layout, page_size, wanted, fixed, q, k, v,
                                    narrow ? &*narrow : nullptr, window, sinks);

  struct Seen {
    int32_t slot;
    bool apart;
  };
  std::vector<std::vector<Seen>> slots(static_cast<size_t>(batch.rows()));
  for (const AttentionTile& tile : batch.tiles) {
    const int32_t* pages = batch.pages.data() + batch.spans[static_cast<size_t>(tile.span)].first_page;
    for (int32_t i = tile.first_row; i < tile.first_row + tile.row_count; ++i) {
      const TileRow& look = batch.tile_rows[static_cast<size_t>(i)];
      const int32_t first = batch.spans[static_cast<size_t>(tile.span)].first_seen(
          window > 0 ? batch.positions[static_cast<size_t>(look.row)] : 0, window);
      for (int32_t key = first; key < look.visible; ++key)
        slots[static_cast<size_t>(look.row)].push_back(
            {pages[key / page_size] * page_size + key % page_size, tile.apart});
    }
  }
  const auto floats = [](const std::vector<f16>& from) {
    std::vector<float> to(from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i] = __half2float(from[i]);
    return to;
  };
  const std::vector<float> queries = floats(q), keys = floats(k), values = floats(v);
  const int32_t group = heads.heads / heads.kv_heads;
  double worst = 0;
  for (size_t row = 0; row < slots.size(); ++row) {
    // Every row's first and last head: the others take the same way, but each has a sink of its own.
    for (int32_t head = 0; head < heads.heads; ++head) {
      if (sinks.empty() && head > 0 && head < heads.heads - 1) continue;
      const float* query =
          queries.data() + (static_cast<int64_t>(row) * heads.heads + head) * heads.padded_dim;
      std::vector<double> out(static_cast<size_t>(heads.head_dim), 0.0), of_documents = out;
      double sum = sinks.empty() ? 0 : std::exp2(static_cast<double>(sinks[static_cast<size_t>(head)]));
      double documents = 0;
      for (const auto& [slot, apart] : slots[row]) {
        const int64_t at = (int64_t{head / group} * layout.slots + slot) * heads.padded_dim;
        double score = 0;
        for (int32_t d = 0; d < heads.head_dim; ++d)
          score += static_cast<double>(query[d]) * static_cast<double>(keys[static_cast<size_t>(at + d)]);
        if (cap > 0) score = static_cast<double>(cap) * std::tanh(score / static_cast<double>(cap));
        if (apart) score /= static_cast<double>(batch.document_softmax.temperature);
        const double weight = std::exp2(score);
        (apart ? documents : sum) += weight;
        for (int32_t d = 0; d < heads.head_dim; ++d)
          (apart ? of_documents : out)[static_cast<size_t>(d)] +=
              weight * static_cast<double>(values[static_cast<size_t>(at + d)]);
      }
      if (documents > 0) {
        const double scaled = std::pow(documents, static_cast<double>(batch.document_softmax.scale));
        for (size_t d = 0; d < out.size(); ++d) out[d] += scaled / documents * of_documents[d];
        sum += scaled;
      }
      double error = 0, square = 0;
      for (int32_t d = 0; d < heads.head_dim; ++d) {
        const double right = out[static_cast<size_t>(d)] / sum;
        const double value =
            static_cast<double>(got[(row * static_cast<size_t>(heads.heads) + static_cast<size_t>(head)) *
                                        static_cast<size_t>(heads.head_dim) +
                                    static_cast<size_t>(d)]);
        error += (value - right) * (value - right);
        square += right * right;
      }
      const double relative = std::sqrt(error / square);
      worst = std::max(worst, std::isnan(relative) ? 1e9 : relative);
    }
  }
  // E4M3 has three bits for a weight, too.
  EXPECT_LT(worst, in_fp8 && !sink ? 0.06 : 0.02) << what;
}

void compare(const test::RandomLooks& looks, const Heads& heads, int32_t page_size, int32_t wanted,
             std::mt19937& random, const std::string& what, bool fixed = false) {
  compare_numbers(looks, heads, page_size, wanted, random, what, fixed, false);
  if (!fixed) compare_numbers(looks, heads, page_size, wanted, random, what + ", in FP8", false, true);
}

TEST(Attention, EqualsPlainSumsOnRandomGraphs) {
  NEED_GPU();
  std::mt19937 random(11);
  const Heads kinds[] = {{8, 2, 128, 128},  {4, 4, 128, 128}, {6, 2, 64, 64}, {9, 3, 64, 64},
                         {16, 1, 128, 128}, {4, 2, 96, 128},  {4, 2, 32, 32}, {4, 2, 256, 256},
                         {4, 1, 80, 128},   {2, 2, 20, 32}};
  for (int round = 0; round < 60; ++round) {
    const Heads heads = kinds[round % 10];
    test::LooksShape shape;
    shape.page_size = round % 4 == 3 ? std::array{8, 32, 64}[static_cast<size_t>(round / 4 % 3)] : 16;
    shape.longest = round % 5 == 0 ? 1500 : 150;
    shape.longest_run = round % 3 == 0 ? 300 : 30;
    shape.children = round % 7 == 0 ? 20 : 4;
    const test::RandomLooks looks = make_random_looks(random, shape);
    compare(looks, heads, shape.page_size, round % 2 == 0 ? 4 : 500, random,
            fmt::format("round {}: heads {}/{} of {}, pages of {}, {} rows", round, heads.heads,
                        heads.kv_heads, heads.head_dim, shape.page_size, looks.batch.rows()));
  }
}

TEST(Attention, EqualsPlainSumsInWindowsAndUnderCaps) {
  NEED_GPU();
  std::mt19937 random(16);
  const Heads kinds[] = {{8, 2, 128, 128}, {6, 2, 64, 64}, {4, 1, 256, 256}, {4, 2, 96, 128}, {4, 2, 32, 32}};
  for (int round = 0; round < 40; ++round) {
    const Heads heads = kinds[round % 5];
    test::LooksShape shape;
    shape.longest = round % 4 == 0 ? 1500 : 150;
    shape.longest_run = round % 3 == 0 ? 300 : 30;
    const test::RandomLooks looks = make_random_looks(random, shape);
    const int32_t window = std::array{1, 7, 64, 300, 1000}[static_cast<size_t>(round / 5 % 5)];
    const int32_t wanted = round % 2 == 0 ? 4 : 500;
    const std::string what = fmt::format("round {}, heads of {}, window {}", round, heads.head_dim, window);
    const bool fixed = round % 6 == 5;
    compare_numbers(looks, heads, 16, wanted, random, what, fixed, false, false, window);
    if (!fixed)
      compare_numbers(looks, heads, 16, wanted, random, what + ", in FP8", false, true, false, window);
    compare_numbers(looks, heads, 16, wanted, random, what + ", capped", fixed, false, false, window, 2.0f);
    compare_numbers(looks, heads, 16, wanted, random, what + ", capped, all keys", fixed, false, false, 0,
                    2.0f);
  }
}

/// Logits of no key, in base 2: from one without weight to one that outweighs all keys.
std::vector<float> make_sinks(int32_t heads, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> sinks;
  for (int32_t head = 0; head < heads; ++head) sinks.push_back(normal(random));
  sinks[random() % sinks.size()] = -140;
  sinks[random() % sinks.size()] = 20;
  return sinks;
}

TEST(Attention, EqualsPlainSumsWithSinks) {
  NEED_GPU();
  std::mt19937 random(19);
  // gpt-oss has 8 query heads of 64 to a key/value head.
  const Heads kinds[] = {{16, 2, 64, 64}, {6, 2, 64, 64}, {8, 2, 128, 128}, {4, 1, 256, 256},
                         {4, 2, 96, 128}, {4, 2, 32, 32}, {4, 2, 192, 256}, {4, 2, 48, 64}};
  for (int round = 0; round < 48; ++round) {
    const Heads heads = kinds[round % 8];
    test::LooksShape shape;
    shape.page_size = round % 6 == 5 ? 32 : 16;  // by 32: the kernels for any GPU
    shape.longest = round % 4 == 0 ? 1500 : 150;
    shape.longest_run = round % 3 == 0 ? 300 : 30;
    shape.most_rows = 300;
    const test::RandomLooks looks = make_random_looks(random, shape);
    const int32_t window = std::array{0, 7, 128, 0, 300}[static_cast<size_t>(round % 5)];
    // Few blocks, or so many that long ones are cut and merged.
    const int32_t wanted = round % 2 == 0 ? 4 : 500;
    const std::vector<float> sinks = make_sinks(heads.heads, random);
    const std::string what =
        fmt::format("round {}: heads {}/{} of {}, pages of {}, window {}", round, heads.heads, heads.kv_heads,
                    heads.head_dim, shape.page_size, window);
    for (const bool fixed : {false, true})
      compare_numbers(looks, heads, shape.page_size, wanted, random, what + (fixed ? ", fixed" : ""), fixed,
                      false, false, window, 0, sinks);
    compare_numbers(looks, heads, shape.page_size, wanted, random, what + ", in FP8", false, true, false,
                    window, 0, sinks);
  }
}

TEST(Attention, CountsASinkOnceHoweverManyPiecesThereAre) {
  NEED_GPU();
  std::mt19937 random(20);
  for (const Heads heads : {Heads{8, 2, 64, 64}, Heads{4, 2, 128, 128}, Heads{4, 2, 32, 32}}) {
    test::RandomLooks looks;
    StepBatch& batch = looks.batch;
    batch.spans = {{0, 9000}};
    looks.pages = 9000 / 16 + 1;
    for (int32_t page = 0; page < looks.pages; ++page) batch.pages.push_back(looks.pages - 1 - page);
    batch.tiles = {{0, 0, 70}};
    for (int32_t row = 0; row < 70; ++row) {
      batch.tokens.push_back(0);
      batch.positions.push_back(9000 - 70 + row);
      batch.tile_rows.push_back({row, 9000 - 69 + row});
    }
    // Scores spread by 1.5 in base 2, so that all keys together weigh about 2^14.7.
    const std::vector<float> sinks(static_cast<size_t>(heads.heads), 15);
    for (const int32_t wanted : {1, 66, 500})
      for (const bool fixed : {false, true})
        compare_numbers(
            looks, heads, 16, wanted, random,
            fmt::format("heads of {}, cut for {}{}", heads.head_dim, wanted, fixed ? ", fixed" : ""), fixed,
            false, false, 0, 0, sinks);
  }
}

TEST(Attention, EqualsPlainSumsWhereDocumentsAreWeighedApart) {
  NEED_GPU();
  std::mt19937 random(21);
  const Heads kinds[] = {
      {8, 2, 128, 128}, {16, 2, 64, 64}, {4, 1, 256, 256}, {4, 2, 96, 128}, {4, 2, 32, 32}};
  const DocumentSoftmax softmaxes[] = {{0.5f, 1}, {1, 0.7f}, {0.3f, 0.4f}, {1, 1}};
  for (int round = 0; round < 40; ++round) {
    const Heads heads = kinds[round % 5];
    test::LooksShape shape;
    shape.page_size = round % 6 == 5 ? 32 : 16;  // by 32: the kernels for any GPU
    shape.longest = round % 4 == 0 ? 1500 : 150;
    shape.longest_run = round % 3 == 0 ? 300 : 30;
    shape.most_rows = 300;
    test::RandomLooks looks = make_random_looks(random, shape);
    test::weigh_apart(random, softmaxes[round % 4], looks.batch);
    const int32_t wanted = round % 2 == 0 ? 4 : 500;
    const int32_t window = std::array{0, 7, 128, 0, 300}[static_cast<size_t>(round / 5 % 5)];
    const std::vector<float> sinks = make_sinks(heads.heads, random);
    const std::string what =
        fmt::format("round {}: heads {}/{} of {}, pages of {}, window {}, {} documents", round, heads.heads,
                    heads.kv_heads, heads.head_dim, shape.page_size, window, round % 4);
    for (const bool fixed : {false, true}) {
      const std::string how = what + (fixed ? ", fixed" : "");
      const auto compare = [&](const std::string& with, float cap, const std::vector<float>& own_sinks) {
        compare_numbers(looks, heads, shape.page_size, wanted, random, how + with, fixed, false, false,
                        window, cap, own_sinks);
      };
      compare("", 0, {});
      compare(", capped", 2, {});
      compare(", sinks", 0, sinks);
    }
  }
}

TEST(Attention, OnHopperTakesHeadsOf256AndTheirCaps) {
  NEED_GPU();
  HeadLayout layout{};
  layout.heads = layout.kv_heads = 1;
  layout.head_dim = layout.padded_dim = 128;
  const bool hopper = hopper_attention(layout, 16);
  for (const float cap : {0.0f, 72.0f}) {
    layout.score_cap = cap;
    for (const int32_t dim : {64, 128, 256}) {
      layout.head_dim = layout.padded_dim = dim;
      EXPECT_EQ(hopper_attention(layout, 16), hopper && (cap == 0 || dim == 256))
          << "heads of " << dim << ", cap " << cap;
      EXPECT_FALSE(hopper_attention(layout, 32)) << "heads of " << dim << ", cap " << cap;
    }
  }
}

TEST(Attention, EqualsPlainSumsInHeadsOf256) {
  NEED_GPU();
  std::mt19937 random(17);
  const Heads kinds[] = {{16, 8, 256, 256}, {4, 1, 256, 256}, {4, 2, 192, 256}, {4, 4, 256, 256}};
  for (int round = 0; round < 24; ++round) {
    const Heads heads = kinds[round % 4];
    test::LooksShape shape;
    shape.longest = round % 3 == 0 ? 1500 : 150;
    shape.longest_run = round % 2 == 0 ? 300 : 30;
    shape.most_rows = 400;
    const test::RandomLooks looks = make_random_looks(random, shape);
    const int32_t window = std::array{0, 7, 64, 300, 1000}[static_cast<size_t>(round % 5)];
    const int32_t wanted = round % 2 == 0 ? 500 : 4;
    for (const float cap : {0.0f, 2.0f}) {
      const std::string what = fmt::format("round {}: heads {}/{} of {}, window {}, cap {}", round,
                                           heads.heads, heads.kv_heads, heads.head_dim, window, cap);
      compare_numbers(looks, heads, 16, wanted, random, what, false, false, false, window, cap);
      compare_numbers(looks, heads, 16, wanted, random, what + ", fixed", true, false, false, window, cap);
      compare_numbers(looks, heads, 16, wanted, random, what + ", in FP8", false, true, false, window, cap);
    }
  }
}

TEST(Attention, EqualsPlainSumsUnderCapsOfEverySize) {
  NEED_GPU();
  std::mt19937 random(18);
  for (const Heads heads : {Heads{8, 2, 128, 128}, Heads{6, 2, 64, 64}, Heads{4, 2, 96, 128}}) {
    // Of the scores, whose spread is 1.5: nearly all at the cap, about half, and none.
    for (const float cap : {0.25f, 2.0f, 72.0f}) {
      test::LooksShape shape;
      shape.longest = cap == 2 ? 1500 : 150;
      shape.longest_run = cap == 2 ? 300 : 30;
      const test::RandomLooks looks = make_random_looks(random, shape);
      for (const int32_t window : {0, 64}) {
        const std::string what = fmt::format("heads of {}, cap {}, window {}", heads.head_dim, cap, window);
        compare_numbers(looks, heads, 16, 500, random, what, false, false, false, window, cap);
        compare_numbers(looks, heads, 16, 500, random, what + ", fixed", true, false, false, window, cap);
        compare_numbers(looks, heads, 16, 500, random, what + ", in FP8", false, true, false, window, cap);
      }
    }
  }
}

TEST(Attention, EqualsPlainSumsWithFixedBlocks) {
  NEED_GPU();
  std::mt19937 random(14);
  for (int round = 0; round < 8; ++round) {
    test::LooksShape shape;
    shape.longest = round % 2 == 0 ? 5000 : 150;
    shape.most_rows = 150;
    test::RandomLooks looks = make_random_looks(random, shape);
    looks.batch.decode_tokens = looks.batch.rows() / 2;
    const Heads kinds[] = {{8, 2, 128, 128}, {6, 2, 64, 64}, {4, 2, 32, 32}, {4, 2, 256, 256}};
    compare(looks, kinds[round / 2], 16, 500, random, fmt::format("fixed, round {}", round), true);
  }
}

TEST(Attention, EqualsPlainSumsOnFortyThousandKeys) {
  NEED_GPU();
  std::mt19937 random(12);
  for (const Heads heads : {Heads{8, 2, 128, 128}, Heads{3, 1, 64, 64}}) {
    for (int32_t wanted : {1, 66}) {
      test::RandomLooks looks;
      StepBatch& batch = looks.batch;
      batch.spans = {{0, 40000}};
      for (int32_t page = 0; page < 2500; ++page) batch.pages.push_back(2499 - page);
      looks.pages = 2500;
      batch.tiles = {{0, 0, 70}};
      for (int32_t row = 0; row < 70; ++row) {
        batch.tokens.push_back(0);
        batch.tile_rows.push_back({row, 40000 - 69 + row});
      }
      compare(looks, heads, 16, wanted, random, fmt::format("cut for {}", wanted));
    }
  }
}

TEST(Attention, KeepsSmallWeightsAndLongSums) {
  NEED_GPU();
  std::mt19937 random(15);
  for (const Heads heads : {Heads{4, 2, 128, 128}, Heads{3, 1, 64, 64}, Heads{2, 1, 256, 256}}) {
    for (int32_t rows : {8, 64}) {  // small blocks and large ones
      test::RandomLooks looks;
      StepBatch& batch = looks.batch;
      batch.spans = {{0, 40000}};
      for (int32_t page = 0; page < 2500; ++page) batch.pages.push_back(2499 - page);
      looks.pages = 2500;
      batch.tiles = {{0, 0, rows}};
      for (int32_t row = 0; row < rows; ++row) {
        batch.tokens.push_back(0);
        batch.tile_rows.push_back({row, 40000 - rows + row});
      }
      for (const bool in_fp8 : {false, true})
        compare_numbers(looks, heads, 16, 1, random, fmt::format("{} rows of {}", rows, heads.head_dim),
                        false, in_fp8, true);
    }
  }
}

TEST(Attention, TakesRunsOfEveryLength) {
  NEED_GPU();
  std::mt19937 random(13);
  for (int32_t rows : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257}) {
    test::RandomLooks looks;
    StepBatch& batch = looks.batch;
    batch.spans = {{0, rows}};
    looks.pages = (rows + 15) / 16;
    for (int32_t page = 0; page < looks.pages; ++page) batch.pages.push_back(page);
    batch.tiles = {{0, 0, rows}};
    for (int32_t row = 0; row < rows; ++row) {
      batch.tokens.push_back(0);
      batch.tile_rows.push_back({row, row + 1});
    }
    compare(looks, {4, 2, 128, 128}, 16, 500, random, fmt::format("{} rows of 128", rows));
    compare(looks, {4, 2, 64, 64}, 16, 500, random, fmt::format("{} rows of 64", rows));
    compare(looks, {4, 2, 256, 256}, 16, 500, random, fmt::format("{} rows of 256", rows));
  }
}

}  // namespace
}  // namespace sheaf
