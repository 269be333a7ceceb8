#pragma once
#include <memory>
#include <vector>

#include "core/engine/backend.h"
#include "core/model/model.h"

namespace sheaf {

/// Of the reference backend; cpu_footprint() is of the quick one.
Footprint reference_footprint(const ModelConfig& config);

/// The definition of right: plain fp32 loops, one row after the other.
std::unique_ptr<Backend> make_reference_backend(const Model& model);

/// The same made quick: packed weights, threads, shared spans read once for all rows that see them; products
/// in fp32 or in whole numbers. A row's result does not depend, to the bit, on the other rows of its batch
/// nor on how its keys are cut into spans.
std::unique_ptr<Backend> make_quick_backend(const Model& model, int threads,
                                            Precision precision = Precision::f32);

/// Several of them, each for a thread of its own, that have one copy of the weights and divide the threads.
std::vector<std::unique_ptr<Backend>> make_quick_backends(const Model& model, int count, int threads,
                                                          Precision precision);

}  // namespace sheaf
