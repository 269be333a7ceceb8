#pragma once
#include <memory>
#include <string>

#include "core/engine/backend.h"
#include "core/model/model.h"
#include "core/model/precision.h"

namespace sheaf {

struct CudaOptions {
  int device = 0;
  bool fp8 = false;       ///< the layers' products in FP8; else bf16
  bool fp8_keys = false;  ///< keys and values in FP8; else fp16
  /// How weights lie on the device: packed as the file has them and expanded for every product, or expanded
  /// once; automatic: packed if they would not fit otherwise.
  WeightStorage weights = WeightStorage::automatic;
  bool reproducible = false;    ///< a row's result does not depend, to the bit, on the rows it runs with
  bool graphs = true;           ///< replay steps that are like one before
  int64_t* replayed = nullptr;  ///< counts them
};

/// bf16 or FP8 weights in the layers, fp16 or FP8 keys and values, fp32 sums and residual stream.
std::unique_ptr<Backend> make_cuda_backend(const Model& model, const CudaOptions& options);

/// The same with random weights made on the device, for benchmarks.
std::unique_ptr<Backend> make_random_cuda_backend(const ModelConfig& config, const CudaOptions& options,
                                                  uint64_t seed);

/// The first field of a model that no kernel here computes, and its value; empty: they compute all of it. A
/// backend of such a model is refused.
std::string uncomputed_field(const ModelConfig& config);

/// Free bytes on the device.
int64_t cuda_free_bytes(int device);

}  // namespace sheaf
