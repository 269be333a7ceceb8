#pragma once
#include <memory>

#include "core/engine/answer.h"
#include "core/job/job.h"
#include "core/task/row.h"

namespace sheaf {

/// What a job wants to know of its answers beside themselves; nothing where that is nothing. `null`: how null
/// begins; empty: the question has none.
std::shared_ptr<const Watch> make_watch(const Job& job, const Tokens& null);

/// How likely what was read from an answer is, against null and against the best alternative: in [0, 1].
/// docs/confidence.md defines it. `null`: as above.
double confidence_of(const RowAnswer& read, const Answer& answer, const Tokens& null);

}  // namespace sheaf
