#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace sheaf {

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
  virtual void step(int64_t /*records*/, int64_t /*rejects*/, double /*usd_per_second*/) {}
  virtual void ended() {}
};

}  // namespace sheaf
