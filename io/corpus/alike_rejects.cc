#include "io/corpus/alike_rejects.h"

#include <utility>

#include "core/task/record.h"

namespace sheaf {

bool AlikeRejects::is_like_last(const Reject& reject, const std::string& kind) const {
  return count_ > 0 && reject.place.file == file_ && kind == kind_;
}

bool AlikeRejects::is_one_more(const std::variant<Record, Reject>& row) const {
  const auto* reject = std::get_if<Reject>(&row);
  return reject && count_ >= kToldEach && (numbered_ || reject->id.is_null()) &&
         is_like_last(*reject, reason_kind(reject->reason));
}

void AlikeRejects::add(const std::variant<Record, Reject>& row) {
  const auto* reject = std::get_if<Reject>(&row);
  if (!reject || !(numbered_ || reject->id.is_null())) return forget();
  std::string kind = reason_kind(reject->reason);
  count_ = is_like_last(*reject, kind) ? count_ + 1 : 1;
  file_ = reject->place.file;
  kind_ = std::move(kind);
}

}  // namespace sheaf
