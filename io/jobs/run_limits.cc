#include "io/jobs/run_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"

namespace sheaf {

Shard choose_shard(const std::string& text, Corpus& corpus, int32_t window) {
  Shard shard;
  if (text.empty()) return shard;
  const char *at = text.data(), *end = at + text.size();
  const auto [slash, bad] = std::from_chars(at, end, shard.index);
  if (bad == std::errc() && slash != end && *slash == '/') {
    const auto [rest, wrong] = std::from_chars(slash + 1, end, shard.count);
    if (wrong == std::errc() && rest == end && shard.index >= 0 && shard.count > shard.index &&
        shard.count <= 100000) {
      const int64_t rows = corpus.count_records(), windows = (rows + window - 1) / window;
      shard.first = std::min(rows, windows * shard.index / shard.count * window);
      shard.end = std::min(rows, windows * (shard.index + 1) / shard.count * window);
      return shard;
    }
  }
  refuse("--shard must be I/N with 0 ≤ I < N, for example 0/4; got {}", text);
}

MostRejects::MostRejects(const std::string& text) : text_(text) {
  if (text.empty()) return;
  const char* end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, most_);
  percent_ = bad == std::errc() && rest + 1 == end && *rest == '%';
  if (bad != std::errc() || (rest != end && !percent_) || !(most_ >= 0) || (percent_ && most_ > 100) ||
      (!percent_ && most_ != std::floor(most_)))
    refuse("--max-rejects must be a number of records such as 100 or a share such as 2.5%; got {}", text);
}

void MostRejects::check(int64_t rejects, int64_t records, const std::string& folder) const {
  const auto count = static_cast<double>(rejects);
  if (text_.empty() || count <= (percent_ ? most_ / 100 * static_cast<double>(records) : most_)) return;
  refuse(
      "{} of the first {} records were rejected, more than --max-rejects {}; {}/rejects.jsonl.part says why. "
      "Fix the corpus and start again with --restart, or raise the limit to resume: finished rows are kept",
      rejects, records, text_, folder);
}

}  // namespace sheaf
