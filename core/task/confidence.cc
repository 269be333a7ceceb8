#include "core/task/confidence.h"

#include <algorithm>
#include <cmath>

namespace sheaf {

std::shared_ptr<const Watch> make_watch(const Job& job, const Tokens& null) {
  if (!job.output.confidence && job.method.null_bias == 0) return nullptr;
  return std::make_shared<Watch>(Watch{null, job.method.null_bias});
}

double confidence_of(const RowAnswer& read, const Answer& answer, const Tokens& null) {
  const double top = std::max({answer.logprob, answer.null_logprob, answer.alternative});
  if (!std::isfinite(top)) return 0;
  const double decoded = std::exp(answer.logprob - top), of_null = std::exp(answer.null_logprob - top),
               other = std::exp(answer.alternative - top);
  // An answer that begins as null is a part of null's probability.
  const bool in_null = !null.empty() && answer.tokens.size() >= null.size() &&
                       std::equal(null.begin(), null.end(), answer.tokens.begin());
  const double all = (in_null ? 0 : decoded) + of_null + other;
  if (is_found(read.value)) return decoded / all;
  // Other words for null speak for it; an answer that could not be read does not.
  const bool also_null = !in_null && read.note.empty();
  return ((also_null ? decoded : 0) + of_null) / all;
}

}  // namespace sheaf
