#pragma once
#include <cstdint>
#include <vector>

#include "core/engine/answer.h"

namespace sheaf {

/// What decoding a record gave.
struct Outcome {
  std::vector<Answer>
      answers;        ///< one per question; of a split document those of its first part, its second, …
  int32_t parts = 1;  ///< parts of the document, where it was split
  int32_t document_tokens = 0;  ///< before it was cut or split
  int32_t prompt_tokens = 0;    ///< all that is asked: instruction, document and questions
  int32_t cut_tokens = 0;       ///< document tokens left out at its end
  double seconds = 0;           ///< from the moment the engine took it until its last answer was complete
};

}  // namespace sheaf
