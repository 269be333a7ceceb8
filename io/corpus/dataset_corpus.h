#pragma once
#include <memory>

#include "core/job/job.h"
#include "io/corpus/record_mapper.h"

namespace sheaf {

/// The dataset of a job whose `input.format` names one.
std::unique_ptr<Corpus> open_dataset_corpus(const Job& job, RecordMapper mapper);

}  // namespace sheaf
