#include "io/jobs/scheduled_shard.h"

#include <charconv>
#include <cstdlib>
#include <fmt/ranges.h>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr const char *kSlurm = "SLURM_ARRAY_TASK_ID", *kKubernetes = "JOB_COMPLETION_INDEX",
                     *kBatch = "AWS_BATCH_JOB_ARRAY_INDEX", *kPlain = "SHEAF_SHARD";

/// The number in a variable; none where it is not set.
std::optional<int64_t> number_of(const char* name) {
  const char* text = std::getenv(name);
  if (!text || *text == '\0') return std::nullopt;
  int64_t number = 0;
  const char* end = text + std::string_view(text).size();
  const auto [rest, error] = std::from_chars(text, end, number);
  if (error != std::errc() || rest != end || number < 0)
    refuse("--shard auto: {}={} is not a number of 0 or more", name, text);
  return number;
}

std::string part(int64_t index, int64_t count, const char* from) {
  if (index >= count)
    refuse(
        "--shard auto: {} says part {}, but there are {} (0 to {}); give --shards as many as the array has "
        "tasks",
        from, index, count, count - 1);
  return fmt::format("{}/{}", index, count);
}

std::string slurm_part(int64_t shards) {
  const int64_t id = *number_of(kSlurm);
  if (shards > 0) return part(id, shards, kSlurm);
  const auto count = number_of("SLURM_ARRAY_TASK_COUNT"), least = number_of("SLURM_ARRAY_TASK_MIN"),
             most = number_of("SLURM_ARRAY_TASK_MAX");
  if (!count || !least)
    refuse("--shard auto: SLURM_ARRAY_TASK_COUNT and SLURM_ARRAY_TASK_MIN are not set; give --shards N");
  if (most && *most - *least + 1 != *count)
    refuse(
        "--shard auto: the array's {} tasks are not numbered from {} to {} without gaps; number all parts "
        "from 0 "
        "and give --shards N, then a task's number is its part",
        *count, *least, *most);
  if (id < *least) refuse("--shard auto: {}={} is below SLURM_ARRAY_TASK_MIN={}", kSlurm, id, *least);
  return part(id - *least, *count, kSlurm);
}

}  // namespace

std::string scheduled_shard(int64_t shards) {
  std::vector<const char*> set;
  for (const char* name : {kPlain, kSlurm, kKubernetes, kBatch})
    if (const char* text = std::getenv(name); text && *text != '\0') set.push_back(name);
  if (set.empty())
    refuse(
        "--shard auto: no scheduler says which part to run: {}, {}, {} and {} are not set; submit an array, "
        "or give "
        "--shard I/N",
        kSlurm, kKubernetes, kBatch, kPlain);
  if (set.size() > 1)
    refuse("--shard auto: {} are set, and only one can say which part to run; give --shard I/N",
           fmt::join(set, " and "));
  if (set[0] == kSlurm) return slurm_part(shards);
  if (set[0] == kPlain) {
    const std::string text = std::getenv(kPlain);
    if (text.find_first_not_of("0123456789/") != std::string::npos || text.find('/') == std::string::npos)
      refuse("--shard auto: {}={} does not name a part; write it as I/N, such as 0/4", kPlain, text);
    if (shards > 0 && !text.ends_with(fmt::format("/{}", shards)))
      refuse("--shard auto: {}={}, but --shards is {}", kPlain, text, shards);
    return text;
  }
  const int64_t index = *number_of(set[0]);
  if (shards == 0 && set[0] == kBatch) shards = number_of("AWS_BATCH_JOB_ARRAY_SIZE").value_or(0);
  if (shards == 0)
    refuse(
        "--shard auto: {} does not say how many parts there are; give --shards N, as many as the job's tasks",
        set[0]);
  return part(index, shards, set[0]);
}

}  // namespace sheaf
