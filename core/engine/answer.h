#pragma once
#include <cstdint>
#include <limits>

#include "core/base/token.h"

namespace sheaf {

/// Why an answer ended.
enum class Ending : uint8_t {
  end_of_text,  ///< the model ended its turn
  delimiter,    ///< the newline, literal or brace that completes it
  chosen,       ///< an allowed answer was complete
  length,       ///< max_tokens reached: the answer is cut
};
const char* ending_name(Ending ending);

struct Answer {
  Tokens tokens;  ///< as decoded, a delimiter included, an end-of-text token not
  Ending ending = Ending::length;
  double logprob = 0;  ///< of all decoded tokens, the ending one included

  // Where the slot has a watch (docs/confidence.md defines them); the bias of null counts in none of them.
  double null_logprob =
      -std::numeric_limits<double>::infinity();                   ///< of null's tokens, as far as it is known
  double alternative = -std::numeric_limits<double>::infinity();  ///< of the likeliest way that was not taken
  /// The bias above which the answer is null, below which it is a value; infinite where that is not known.
  double null_margin = -std::numeric_limits<double>::infinity();
};

}  // namespace sheaf
