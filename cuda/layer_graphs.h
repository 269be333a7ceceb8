#pragma once
#include <cuda_runtime.h>
#include <map>
#include <set>
#include <utility>

#include "cuda/base/device_memory.h"

namespace sheaf::cuda {

/// The layers of steps as CUDA graphs, by all that decides which kernels run and with which arguments: the
/// number of rows and the kinds of attention blocks (Step::attention_kinds). What else changes from step to
/// step lies in device memory. Graphs hold addresses: where memory moves, forget() them.
class LayerGraphs {
 public:
  using Key = std::pair<int32_t, uint64_t>;

  LayerGraphs() = default;
  ~LayerGraphs() { forget(); }
  LayerGraphs(const LayerGraphs&) = delete;
  LayerGraphs& operator=(const LayerGraphs&) = delete;

  /// Runs what `launch` puts on the stream: by launching it when the key is new, else as a graph. Returns
  /// whether it was a graph.
  template <class Launch>
  bool run(const Key& key, cudaStream_t stream, const Launch& launch) {
    if (seen_.insert(key).second) {
      launch();
      return false;
    }
    auto found = graphs_.find(key);
    if (found == graphs_.end()) {
      if (graphs_.size() == kMost) {
        check(cudaStreamSynchronize(stream), "the steps before");
        forget();
      }
      const cudaGraphExec_t made = record(stream, launch);
      if (!made) {  // no memory for it
        launch();
        return false;
      }
      found = graphs_.emplace(key, made).first;
    }
    check(cudaGraphLaunch(found->second, stream), "replaying a step");
    return true;
  }

  /// Only while no step is running.
  void forget() {
    for (const auto& [key, graph] : graphs_) cudaGraphExecDestroy(graph);
    graphs_.clear();
    seen_.clear();
  }

 private:
  /// Null where there is no memory for a graph.
  template <class Launch>
  static cudaGraphExec_t record(cudaStream_t stream, const Launch& launch) {
    cudaGraph_t graph = nullptr;
    check(cudaGetLastError(), "what comes before the layers");  // which is forgotten below
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
    try {
      launch();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "recording a step");
    cudaGraphExec_t made = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&made, graph, 0);
    cudaGraphDestroy(graph);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(error, "making a graph of a step");
    return made;
  }

  static constexpr size_t kMost = 64;
  std::map<Key, cudaGraphExec_t> graphs_;
  std::set<Key> seen_;
};

}  // namespace sheaf::cuda
