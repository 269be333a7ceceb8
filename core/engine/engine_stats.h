#pragma once
#include <cstdint>

namespace sheaf {

/// What an engine did.
struct EngineStats {
  int64_t steps = 0;
  int64_t prefill_tokens = 0;
  int64_t decode_tokens = 0;
  int64_t read_tokens = 0;      ///< prompt tokens read from the store, which no other count includes
  int64_t answers = 0;          ///< answers, without those that a second round reads
  int64_t first_answers = 0;    ///< answers of first rounds, which a second round reads
  int64_t answer_tokens = 0;    ///< tokens of the answers of both rounds
  int64_t first_tokens = 0;     ///< tokens of the answers of first rounds
  int64_t entry_answers = 0;    ///< answers of later rounds, about the entries of lists
  int64_t entry_tokens = 0;     ///< prefill and decode tokens of these rounds
  int64_t alone_tokens = 0;     ///< tokens that one prompt per question would have computed
  int64_t proposed_tokens = 0;  ///< decode tokens that were guesses
  int64_t accepted_tokens = 0;  ///< proposed tokens that became part of an answer
  bool has_draft = false;
  int64_t searched_answers = 0;   ///< answers that were searched for
  int64_t searched_tokens = 0;    ///< decode tokens that the search for them computed
  int64_t cut_searches = 0;       ///< searched answers whose search ended at its limit
  int64_t draft_tokens = 0;       ///< tokens that the draft computed, which no other count includes
  int64_t undrafted_prompts = 0;  ///< prompts too long for the draft's context or memory
  bool draft_failed = false;      ///< the draft ran out of memory and was asked no more
  bool draft_unsound = false;     ///< the draft's logits were not finite and it was asked no more
  int32_t peak_pages = 0;
  int64_t split_steps = 0;    ///< steps too large for the memory at hand, which ran in parts
  double step_seconds = 0;    ///< inside the backend: starting steps and waiting for them
  double draft_seconds = 0;   ///< inside the backend of the draft
  double waited_seconds = 0;  ///< part of step_seconds spent waiting for a step in flight
  double host_seconds = 0;    ///< between calls of the backend: the loop itself, the source and the sink
  double idle_seconds = 0;    ///< part of host_seconds with no step in flight
  int64_t tokens() const { return prefill_tokens + decode_tokens; }
  /// Of engines side by side: their pools' peaks add up too.
  EngineStats& operator+=(const EngineStats& other);
};

}  // namespace sheaf
