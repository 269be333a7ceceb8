#pragma once
#include <memory>
#include <vector>

#include "core/engine/routing.h"
#include "core/model/router.h"
#include "cpu/products.h"

namespace sheaf {

/// The experts of a layer as products take them.
struct PackedExperts {
  PackedExperts(const LayerWeights& weights, const Products& products, ThreadPool& threads);

  PackedLinear router;                ///< in fp32 whatever the precision: a choice is all or nothing
  std::vector<float> router_bias;     ///< [experts] or empty
  std::vector<float> shared_gate;     ///< [hidden] or empty
  std::vector<Linear> gate_up, down;  ///< [experts]
  // [experts], each of a bias or empty, as an expert's matrices are.
  std::vector<std::vector<float>> gate_up_bias, down_bias;
};

/// Sends the rows of a step through the experts that they choose: rows are gathered by expert, so that each
/// expert's weights are read once, and what they give is added up in the order of a row's choices. So a row
/// does not depend on the others.
class ExpertMlp {
 public:
  ExpertMlp(const ModelConfig& config, const Products& products, const Kernels& kernels, ThreadPool& threads)
      : config_(config), products_(products), kernels_(kernels), threads_(threads) {}

  /// y[row] = what the experts of `normed`'s row give. Where the layer has an MLP that all rows share, y
  /// holds what it gave, and that is added.
  void run(const PackedExperts& experts, const ProductRows& normed, int64_t rows, bool shared, float* y,
           int64_t y_stride);

  const Routing& routing() const { return routing_; }

 private:
  struct Group {
    int64_t expert, first, count;  ///< rows of the gathered ones
  };

  void choose(const PackedExperts& experts, const ProductRows& normed, int64_t rows);
  void gather(const ProductRows& normed, int64_t rows);

  const ModelConfig& config_;
  const Products& products_;
  const Kernels& kernels_;
  ThreadPool& threads_;
  Routing routing_;
  FloatBuffer logits_;               ///< [rows, experts]
  std::vector<Choice> chosen_;       ///< [rows, per_token]
  std::vector<int64_t> places_;      ///< [rows, per_token], among the gathered rows
  std::vector<Group> groups_;        ///< of experts that some row chose, the largest first
  FloatBuffer given_;                ///< [gathered rows, hidden], by experts
  ProductRows gathered_{products_};  ///< [gathered rows, hidden]
  ProductRows gated_{products_};     ///< [gathered rows, ffn of an expert]
};

}  // namespace sheaf
