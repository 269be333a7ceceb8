#pragma once

#include "core/engine/backend.h"
#include "core/engine/batch_builder.h"

namespace sheaf {

constexpr int64_t kDraftShare = 8;    ///< of a pool: what a draft's may take beside it
constexpr int32_t kDraftStep = 2048;  ///< most tokens of a prompt that a draft computes at once

struct DraftOptions {
  int32_t tokens_per_step = 128;
  int32_t pages = 1024;  ///< of its key/value pool
  int32_t page_size = kPageSize;
  double relative_cost = 1;  ///< of a FLOP, beside the model's: less where it computes in fewer bits
};

/// A smaller model that follows the answers another one decodes, with keys and values of its own, and guesses
/// their next tokens.
class Draft {
 public:
  Draft(Backend& backend, const DraftOptions& options);

  /// A stack that it follows, which must outlive this.
  class Prompt {
   public:
    ~Prompt();
    Prompt(const Prompt&) = delete;
    Prompt& operator=(const Prompt&) = delete;

   private:
    friend class Draft;
    Prompt(Draft& draft, const Stack& stack);
    Draft& draft_;
    const Stack& stack_;
    std::vector<Resident*> residents_;  ///< per segment
    std::vector<Tokens> fed_;           ///< per slot, the tokens of its answer that are in the pool
    std::vector<bool> ready_;           ///< per slot, whether all that it sees is
  };

  /// An answer to guess further tokens of.
  struct Line {
    Prompt* prompt;
    int32_t slot;
    Tokens tokens;  ///< of the answer, with those proposed so far
  };

  // A step that does not fit memory throws OutOfMemory; then nothing more may be asked.

  /// Nothing where the pool has no room for the stack, or the model too few positions.
  std::unique_ptr<Prompt> follow(const Stack& stack);
  /// Computes what the lines see, and all of their tokens but the last few.
  void catch_up(std::span<const Line* const> lines);
  /// The likeliest next token of each, after catch_up(); valid until the next call.
  std::span<const Picked> next(std::span<const Line* const> lines);

  const ModelConfig& config() const { return backend_.config(); }
  /// What a token takes beside one of a model, as a share, as far as their sizes tell.
  double cost_beside(const ModelConfig& model) const;
  int64_t tokens() const { return tokens_; }  ///< computed so far

 private:
  int32_t room() const { return options_.tokens_per_step - batch_.rows(); }
  void run_step();
  void make_room();
  void add_segment(Prompt& prompt, SegmentId id);
  static size_t held(const Line& line);
  void add_answer(const Line& line, size_t end);

  Backend& backend_;
  DraftOptions options_;
  PagePool pool_;
  Residents residents_;
  BatchBuilder builder_;
  StepBatch batch_;
  std::vector<Picked> picked_;
  int64_t tokens_ = 0;
};

}  // namespace sheaf
