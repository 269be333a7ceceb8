#include "io/jobs/run_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/files/job_fingerprint.h"

namespace sheaf {
namespace {

/// A way to the file that is open, whatever its name now leads to.
std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/self/fd/{}", file.number());
}

constexpr const char *kSlurm = "SLURM_ARRAY_TASK_ID", *kKubernetes = "JOB_COMPLETION_INDEX",
                     *kBatch = "AWS_BATCH_JOB_ARRAY_INDEX", *kPlain = "SHEAF_SHARD";

/// The number that the text is; none where it is something else.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// The number in a variable; none where it is not set.
std::optional<int64_t> number_of(const char* name) {
  const char* text = std::getenv(name);
  if (!text || *text == '\0') return std::nullopt;
  const auto number = number_in<int64_t>(text);
  if (!number || *number < 0) refuse("--shard auto: {}={} is not a number of 0 or more", name, text);
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

/// The part of the corpus that the scheduler gave this process, as --shard has it: "3/16". `shards`: of how
/// many; 0: as the scheduler says. Refuses where no scheduler, or more than one, says anything.
///
///   Slurm array           SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _MAX. With `shards` the task's number is the
///                         part's, so that some tasks of an array can be run again by themselves
///   Kubernetes            JOB_COMPLETION_INDEX of an Indexed Job, which does not say how many there are
///   AWS Batch array       AWS_BATCH_JOB_ARRAY_INDEX, AWS_BATCH_JOB_ARRAY_SIZE
///   anything else         SHEAF_SHARD=3/16
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
    const char* const set_text = std::getenv(kPlain);
    std::string text = set_text ? set_text : "";
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

}  // namespace

HeldWeights::HeldWeights(const Job::ModelPart& model) {
  for (const std::string& part : {model.path, model.adapter}) {
    if (part.empty()) continue;
    try {
      for (const std::string& path : find_model_files(part)) {
        if (!path.ends_with(".gguf") && !path.ends_with(".safetensors")) continue;
        Descriptor file = open_regular(path, O_RDONLY);
        if (file.number() < 0) continue;
        FileIdentity before = identify_file(path_of(file), Look::every_byte);
        files_.push_back({path, std::move(file), std::move(before)});
      }
    } catch (const std::exception&) {  // loading it says what is wrong
    }
  }
}

void HeldWeights::check() const {
  for (const Held& held : files_)
    if (!held.before.is_same(identify_file(path_of(held.file), Look::every_byte)))
      refuse(
          "{}: the file was written over while sheaf computed with it, so the rows are of neither state; "
          "start "
          "again with --restart, and replace a model by renaming a new file",
          held.path);
}

Shard choose_shard(const std::string& asked, int64_t shards, Corpus& corpus, int32_t window) {
  Shard shard;
  if (asked.empty()) return shard;
  const std::string text = asked == "auto" ? scheduled_shard(shards) : asked;
  const size_t slash = std::min(text.find('/'), text.size());
  const auto index = number_in<int32_t>(text.substr(0, slash)),
             count = number_in<int32_t>(std::string_view(text).substr(std::min(slash + 1, text.size())));
  if (!index || !count || *index < 0 || *count <= *index || *count > 100000)
    refuse("--shard must be I/N with 0 ≤ I < N, for example 0/4; got {}", text);
  const int64_t rows = corpus.count_records(), windows = (rows + window - 1) / window;
  shard.index = *index;
  shard.count = *count;
  shard.first = std::min(rows, windows * shard.index / shard.count * window);
  shard.end = std::min(rows, windows * (shard.index + 1) / shard.count * window);
  return shard;
}

MostRejects::MostRejects(const std::string& text) : text_(text), percent_(text.ends_with('%')) {
  if (text.empty()) return;
  const auto most = number_in<double>(std::string_view(text).substr(0, text.size() - (percent_ ? 1 : 0)));
  if (!most || !(*most >= 0) || (percent_ ? *most > 100 : *most != std::floor(*most)))
    refuse("--max-rejects must be a number of records such as 100 or a share such as 2.5%; got {}", text);
  most_ = *most;
}

void MostRejects::check(int64_t rejects, int64_t records, const std::string& said_in) const {
  const auto count = static_cast<double>(rejects);
  if (text_.empty() || count <= (percent_ ? most_ / 100 * static_cast<double>(records) : most_)) return;
  refuse("{} of the first {} {} rejected, more than --max-rejects {}; {}", rejects,
         counted(records, "record"), rejects == 1 ? "was" : "were", text_,
         said_in.empty() ? "fix the corpus and start again, or raise the limit"
                         : said_in +
                               ". Fix the corpus and start again with --restart, or raise the limit to "
                               "resume: finished rows are kept");
}

}  // namespace sheaf
