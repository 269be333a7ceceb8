#include "io/jobs/repeated_ids.h"

#include <cstring>
#include <fmt/ranges.h>

#include "core/text/spelling.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

constexpr size_t kRepeatedShown = 3;
constexpr size_t kLongestIdShown = 60;  // bytes

}  // namespace

const RepeatedIds* RepeatedIds::watch(const Job& job, std::unique_ptr<Corpus>& corpus) {
  const bool has_ids = !job.input.id.empty();
  if (!has_ids && job.input.questions.empty()) return nullptr;
  auto watched =
      std::make_unique<RepeatedIds>(std::move(corpus), has_ids, job.input.duplicate_ids, job.output.path);
  const RepeatedIds* ids = watched.get();
  corpus = std::move(watched);
  return ids;
}

std::optional<int64_t> RepeatedIds::first_with(const std::string& id) {
  const auto digest = Sha256().add(id).digest();
  AnswerKey key;
  std::memcpy(key.data(), digest.data(), key.size());
  const auto first = seen_.find(key);
  if (!first) seen_.add(key, position());
  return first;
}

std::optional<std::variant<Record, Reject>> RepeatedIds::next() {
  auto entry = all_->next();
  auto* record = entry ? std::get_if<Record>(&*entry) : nullptr;
  if (!record) return entry;
  const auto text = [](const nlohmann::json& id) {
    return id.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::string what, id = text(record->id);
  std::optional<int64_t> first;
  if (has_ids_) first = first_with(id);
  for (size_t q = 0; !first && q < record->questions.size(); ++q) {
    if (record->questions[q].id.is_null()) continue;
    what = "question ";
    id = text(record->questions[q].id);
    // No id of a record begins so.
    first = first_with("?" + id);
  }
  if (!first || *first == position()) return entry;
  const std::string shown = shorten_text(id, kLongestIdShown);
  if (refuse_)
    return Reject{record->place, record->id,
                  fmt::format("duplicate {}id {} (first in record {})", what, shown, *first)};
  ++repeated_;
  if (examples_.size() < kRepeatedShown)
    examples_.push_back(
        fmt::format("record {} has {}{} (first in record {})", position(), what, shown, *first));
  return entry;
}

void RepeatedIds::skip_to(int64_t position) {
  if (!refuse_) return all_->skip_to(position);
  while (all_->position() < position && next()) {
  }
}

std::string RepeatedIds::notice() const {
  if (repeated_ == 0) return {};
  return fmt::format("{} a duplicate id: {}{}; set input.duplicate_ids: refuse to reject them",
                     repeated_ == 1 ? "1 record has" : fmt::format("{} records have", repeated_),
                     fmt::join(examples_, ", "),
                     repeated_ > static_cast<int64_t>(examples_.size()) ? ", …" : "");
}

}  // namespace sheaf
