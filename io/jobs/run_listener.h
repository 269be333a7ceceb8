#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace sheaf {

/// How far a run is. Counts are those of the session.
struct RunState {
  int64_t records = 0;
  int64_t rejects = 0;
  int64_t tokens = 0;  ///< computed
  double usd_per_second = 0;
};

/// Who is told how a run goes. This one keeps it to itself.
class RunListener {
 public:
  virtual ~RunListener() = default;
  /// Something the user should know.
  virtual void note(const std::string& /*text*/) {}
  /// One of several runs begins.
  virtual void heading(const std::string& /*text*/) {}
  /// Decoding begins; `records` are to come, where that is known.
  virtual void started(std::optional<int64_t> /*records*/) {}
  /// Where the records to come are not known: how many it looks like.
  virtual void guess(int64_t /*records*/) {}
  virtual void step(const RunState& /*state*/) {}
  virtual void ended() {}
};

}  // namespace sheaf
