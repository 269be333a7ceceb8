#include "cpu/expert_mlp.h"

#include <algorithm>
#include <cmath>

namespace sheaf {
PackedExperts::PackedExperts(const LayerWeights& weights, const Products& products, ThreadPool& threads)
    : router(pack({&weights.router}, RowOrder::stacked, threads)),
      router_bias(weights.router_bias.read_all()),
      shared_gate(weights.shared_gate.read_all()) {
  for (const ExpertWeights& expert : weights.experts) {
    gate_up.push_back(products.pack({&expert.gate, &expert.up}, RowOrder::in_turns));
    down.push_back(products.pack({&expert.down}));
    gate_up_bias.push_back(biases_in_turns(expert.gate_bias, expert.up_bias));
    down_bias.push_back(expert.down_bias.read_all());
  }
}

void ExpertMlp::choose(const PackedExperts& experts, const ProductRows& normed, int64_t rows) {
  const int64_t count = config_.experts.count, stride = round_up_to_panel(count);
  const auto per_token = static_cast<size_t>(config_.experts.per_token);
  logits_.reserve(rows * stride, "router logits");
  apply(experts.router, kernels_, threads_, normed.data(), config_.hidden, rows, logits_.data(), stride);
  chosen_.resize(static_cast<size_t>(rows) * per_token);
  threads_.run(rows, [&](int64_t row, int) {
    route(config_.experts, {logits_.data() + row * stride, static_cast<size_t>(count)}, experts.router_bias,
          std::span(chosen_).subspan(static_cast<size_t>(row) * per_token, per_token));
  });
}

void ExpertMlp::gather(const ProductRows& normed, int64_t rows) {
  const int64_t per_token = config_.experts.per_token, together = products_.rows_together();
  std::vector<int64_t> counts(static_cast<size_t>(config_.experts.count));
  for (const Choice& choice : chosen_) ++counts[static_cast<size_t>(choice.expert)];
  routing_.add(counts);
  groups_.clear();
  int64_t room = 0;
  std::vector<int64_t> next(counts.size());
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    if (counts[expert] == 0) continue;
    groups_.push_back({static_cast<int64_t>(expert), room, counts[expert]});
    next[expert] = room;
    room += (counts[expert] + together - 1) / together * together;
  }
  std::ranges::stable_sort(groups_, std::greater<>(), &Group::count);
  places_.resize(chosen_.size());
  for (size_t i = 0; i < chosen_.size(); ++i) places_[i] = next[static_cast<size_t>(chosen_[i].expert)]++;
  gathered_.reserve(room, config_.hidden, config_.hidden, "rows of experts");
  gated_.reserve(room, config_.experts.ffn, round_up_to_panel(config_.experts.ffn), "MLP rows of experts");
  given_.reserve(room * round_up_to_panel(config_.hidden), "what experts give");
  threads_.run(rows, [&](int64_t row, int) {
    for (int64_t i = row * per_token; i < (row + 1) * per_token; ++i) {
      const int64_t place = places_[static_cast<size_t>(i)];
      std::copy_n(normed.row(row), config_.hidden, gathered_.row(place));
      gathered_.ready(place);
    }
  });
}

void ExpertMlp::run(const PackedExperts& experts, const ProductRows& normed, int64_t rows, bool shared,
                    float* y, int64_t y_stride) {
  choose(experts, normed, rows);
  gather(normed, rows);
  const int64_t gated_stride = round_up_to_panel(config_.experts.ffn),
                stride = round_up_to_panel(config_.hidden);
  products_.each_group(groups_, [&](const Group& group, ThreadPool& threads) {
    const RowShare share{group.first, group.count, threads};
    const auto expert = static_cast<size_t>(group.expert);
    const std::vector<float>& bias = experts.gate_up_bias[expert];
    const Gating gating{kernels_.gated(config_.activation), bias.empty() ? nullptr : bias.data()};
    gathered_.multiply_gated(experts.gate_up[expert], gating, share, gated_.data(), gated_stride);
    if (products_.whole_numbers())
      threads.run(group.count, [&](int64_t row, int) { gated_.ready(group.first + row); });
    gated_.multiply(experts.down[expert], share, given_.data(), stride);
  });
  const int64_t per_token = config_.experts.per_token;
  threads_.run(rows, [&](int64_t row, int) {
    float* out = y + row * y_stride;
    float weight = 1;
    if (!experts.shared_gate.empty()) {
      const float* x = normed.row(row);
      float gate = 0;
      for (int64_t i = 0; i < config_.hidden; ++i) gate += experts.shared_gate[static_cast<size_t>(i)] * x[i];
      weight = 1 / (1 + std::exp(-gate));
    }
    for (int64_t i = 0; i < config_.hidden; ++i) out[i] = shared ? weight * out[i] : 0;
    for (int64_t rank = 0; rank < per_token; ++rank) {
      const auto i = static_cast<size_t>(row * per_token + rank);
      const float* given = given_.data() + places_[i] * stride;
      const std::vector<float>& bias = experts.down_bias[static_cast<size_t>(chosen_[i].expert)];
      if (bias.empty())
        for (int64_t j = 0; j < config_.hidden; ++j) out[j] += chosen_[i].weight * given[j];
      else
        for (int64_t j = 0; j < config_.hidden; ++j)
          out[j] += chosen_[i].weight * (given[j] + bias[static_cast<size_t>(j)]);
    }
  });
}

}  // namespace sheaf
