#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cpu/attention.h"

namespace sheaf {

// Documents' keys weigh w = e^(s / T) before the scale S, and Z all together; after it w · Z^(S - 1). So
// their scores become s / T + (S - 1) log Z. Z is added up over these keys alone, in the row's order: how
// they are cut into spans and what else the row sees does not change a bit of it.
void weigh_documents(const BlockRun& run, int32_t row_in_block, const Kernels& kernels,
                     std::vector<float>& room, float* scores) {
  const DocumentSoftmax& how = run.plan.document_softmax;
  const auto each_stretch = [&](auto&& body) {
    for (const AttentionPlan::RowSpan& span : run.spans_of(row_in_block))
      if (span.apart) body(scores + span.offset + span.first, scores + span.offset + span.visible);
  };
  room.clear();
  each_stretch([&](float* first, float* end) {
    for (float* score = first; score < end; ++score) *score /= how.temperature;
    room.insert(room.end(), first, end);
  });
  if (room.empty() || how.scale == 1) return;
  const float highest = *std::ranges::max_element(room);
  const auto keys = static_cast<int64_t>(room.size());
  room.resize(static_cast<size_t>(round_up_to_panel(keys)));
  const float shift = (how.scale - 1) * (highest + std::log(kernels.softmax(room.data(), keys)));
  each_stretch([&](float* first, float* end) {
    for (float* score = first; score < end; ++score) *score += shift;
  });
}

}  // namespace sheaf
