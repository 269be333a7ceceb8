#pragma once
#include <cstdint>
#include <memory>

#include "core/job/job.h"
#include "core/task/record.h"
#include "core/task/schema.h"

namespace sheaf {

/// Opens the corpus of a job and checks that the mapped columns exist (refuses with the nearest column name).
/// `schema` is null for `ask`; rows of a category it does not know are rejects.
std::unique_ptr<Corpus> open_corpus(const Job& job, const Schema* schema);

/// The rows of a corpus before row `end`.
std::unique_ptr<Corpus> first_rows(std::unique_ptr<Corpus> corpus, int64_t end);

}  // namespace sheaf
