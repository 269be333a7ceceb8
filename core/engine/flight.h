#pragma once

#include "core/engine/answer.h"
#include "core/engine/draft.h"
#include "core/engine/likeliest.h"

namespace sheaf {

/// Tokens that an answer may have next.
struct Guess {
  Tokens tokens;
  std::vector<int32_t> kinds;  ///< of each token, what its chance follows from (Speculator)
  int32_t proposed = 0;        ///< the first tokens, which are computed in the step
};

struct Flight;

/// An answer that is being decoded.
struct OpenSlot {
  Flight* flight;  ///< its stack
  const Slot* asked;
  float contrast;  ///< with chains: as the slot says; after the first token, the measured value
  Answer answer = {};
  AllowedAnswers::Node node = AllowedAnswers::root;
  bool waiting = false;  ///< its last token is to be fed in the next step
  bool wanted = false;   ///< its next token comes from a step that is planned or under way
  bool closed = false;
  int32_t unfed = 1;                             ///< its last tokens, which are to be fed
  std::unique_ptr<LikeliestSearch> search = {};  ///< where the likeliest answer is searched for
  Guess guess = {};                              ///< tokens that may follow its last one
  double guessable = 0;                          ///< the share of its latest tokens that were guessed rightly
};

/// A stack being decoded. It stays where it is: its slots point into it.
struct Flight {
  Flight(Stack admitted, Residents& pool);
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  bool prefilled() const { return next_segment == stack.segments.size(); }
  /// The options of the question that a slot asks, of which it is one.
  std::span<OpenSlot> options_of(const OpenSlot& slot);
  /// Gives up the residents of segments that no row will see again.
  void finish_segments(Residents& pool);

  Stack stack;
  std::vector<Resident*> residents;              ///< per segment
  std::vector<bool> finished;                    ///< per segment
  std::vector<int32_t> open_answers;             ///< per segment, the open slots that grow it
  std::vector<std::vector<OpenSlot*>> prompted;  ///< per segment, the slots whose first token follows it
  std::vector<OpenSlot> slots;
  size_t next_segment = 0;  ///< the first one not wholly computed
  int32_t open_slots = 0;
  int64_t last_step = 0;                   ///< the last step with tokens of it, counted from 1
  bool guessed = false;                    ///< whether its answers may be guessed
  std::unique_ptr<Draft::Prompt> drafted;  ///< where a draft follows its answers
  bool undraftable = false;                ///< too long for the draft
};

}  // namespace sheaf
