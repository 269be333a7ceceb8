#pragma once
#include <cstdint>
#include <string>

namespace sheaf {

/// The part of the corpus that the scheduler gave this process, as --shard has it: "3/16". `shards`: of how
/// many; 0: as the scheduler says. Refuses where no scheduler, or more than one, says anything.
///
///   Slurm array           SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _MAX. With `shards` the task's number is the
///                         part's, so that some tasks of an array can be run again by themselves
///   Kubernetes            JOB_COMPLETION_INDEX of an Indexed Job, which does not say how many there are
///   AWS Batch array       AWS_BATCH_JOB_ARRAY_INDEX, AWS_BATCH_JOB_ARRAY_SIZE
///   anything else         SHEAF_SHARD=3/16
std::string scheduled_shard(int64_t shards);

}  // namespace sheaf
