#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/task/record.h"
#include "core/task/spelled_task.h"

namespace sheaf {

/// The replies of a service to an OpenAI batch: lines {"custom_id", "response": {"status_code", "body":
/// {"choices": [{"message": {"content"}, "finish_reason"}]}}, "error"}. The file of errors that such a
/// service writes apart has the same form.
class BatchReplies {
 public:
  /// Reads the files. Lines that cannot be read, or say no custom_id, are rejects. Refuses files without any
  /// reply.
  explicit BatchReplies(const std::vector<std::string>& paths);

  /// The reply to a request. Nothing where there is none; throws a BadText where there are several, or the
  /// service says that it failed.
  std::optional<SpelledReply> find(const std::string& id);

  int64_t size() const { return static_cast<int64_t>(by_id_.size()); }  ///< different custom_ids
  /// Lines that cannot be read, and replies that nobody asked find() for.
  std::vector<Reject> left() const;

 private:
  struct Entry {
    SpelledReply reply;
    std::string trouble;  ///< why there is no answer in it; empty: there is
    Place place;
    int64_t times = 1;  ///< replies with this custom_id
    bool asked_for = false;
  };
  void add(const Place& place, std::string_view line);

  std::unordered_map<std::string, Entry> by_id_;
  std::vector<std::string> ids_;  ///< in the order of the files
  std::vector<Reject> broken_;
};

}  // namespace sheaf
