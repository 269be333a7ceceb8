#pragma once

#include "core/engine/residents.h"
#include "core/engine/step_batch.h"

namespace sheaf {

/// Puts rows of segments into a step batch: each resident that they look at becomes one span with one tile.
class BatchBuilder {
 public:
  explicit BatchBuilder(int32_t page_size) : page_size_(page_size) {}

  void begin(StepBatch& batch);
  /// Rows for the tokens of `segment` from index `first` on; its resident has grown to hold them.
  /// `residents` are those of its stack.
  void add(const Segment& segment, Resident* own, std::span<Resident* const> residents, int32_t first,
           std::span<const TokenId> tokens);
  /// Lists the spans and tiles of all rows added since begin().
  void close();

 private:
  /// Neighbouring rows that see one resident: row + i sees min(most, visible + i) of its keys.
  struct Run {
    int32_t row, count, visible, most;
    int32_t next;  ///< of the same resident, -1: none
  };
  struct Look {
    Resident* resident;
    bool apart;  ///< as AttentionTile has it
    int32_t first_run, last_run;
    int32_t rows;
  };
  void look(Resident* resident, bool apart, Run run);
  void add_copies(const Resident* resident);
  void weigh_documents(const DocumentSoftmax& softmax);

  int32_t page_size_;
  uint64_t batches_ = 0;
  StepBatch* batch_ = nullptr;
  std::vector<Look> looks_;
  std::vector<Run> runs_;
};

}  // namespace sheaf
