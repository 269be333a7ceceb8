#pragma once
#include "cuda/loaded_model.h"

namespace sheaf::cuda {

/// What queries, keys and values are divided by on the way to e4m3, [layers, heads + 2 kv_heads]: one scale
/// for each head, which takes the largest number that the weights allow (where norms come after, that they
/// are likely to give) to the largest of e4m3. Usual numbers are a hundredth of that and e4m3 has 15 bits of
/// range, so the room costs no precision, and no scale depends on the text.
DeviceMemory<float> head_scales(const LoadedModel& model);

}  // namespace sheaf::cuda
