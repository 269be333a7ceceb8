#pragma once
#include <cuda_runtime.h>
#include <map>
#include <tuple>

#include "cuda/device_memory.h"

namespace sheaf::cuda {

/// The layers of steps as CUDA graphs, by all that decides which kernels run and with which arguments: the
/// number of rows and the kinds of attention blocks. What else changes from step to step lies in device
/// memory. Graphs hold addresses: where memory moves, forget() them.
class LayerGraphs {
 public:
  using Key = std::tuple<int32_t, bool, bool, bool>;

  LayerGraphs() = default;
  ~LayerGraphs() { forget(); }
  LayerGraphs(const LayerGraphs&) = delete;
  LayerGraphs& operator=(const LayerGraphs&) = delete;

  /// Runs what `launch` puts on the stream: by launching it when the key is new, else as a graph. Returns
  /// whether it was a graph.
  template <class Launch>
  bool run(const Key& key, cudaStream_t stream, const Launch& launch) {
    if (graphs_.size() == kMost && !graphs_.contains(key)) {
      check(cudaStreamSynchronize(stream), "the steps before");
      forget();
    }
    const auto [found, first_time] = graphs_.try_emplace(key, nullptr);
    if (first_time) {
      launch();
      return false;
    }
    if (!found->second) {
      cudaGraph_t graph = nullptr;
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
      launch();
      check(cudaStreamEndCapture(stream, &graph), "recording a step");
      const cudaError_t made = cudaGraphInstantiate(&found->second, graph, 0);
      cudaGraphDestroy(graph);
      check(made, "making a graph of a step");
    }
    check(cudaGraphLaunch(found->second, stream), "replaying a step");
    return true;
  }

  /// Only while no step is running.
  void forget() {
    for (const auto& [key, graph] : graphs_)
      if (graph) cudaGraphExecDestroy(graph);
    graphs_.clear();
  }

 private:
  static constexpr size_t kMost = 64;
  std::map<Key, cudaGraphExec_t> graphs_;  ///< null: seen once
};

}  // namespace sheaf::cuda
