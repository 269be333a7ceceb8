#pragma once
#include <map>
#include <optional>
#include <string>

#include "io/base/file_identity.h"

namespace sheaf {

/// What was put of a run that is being published, in the file .published of its folder.
class PublishNotes {
 public:
  /// Notes of another run, or of another store, are not taken for this one's.
  PublishNotes(const std::string& folder, const std::string& store, const std::string& manifest);

  bool begun() const { return !claim_.empty(); }
  bool ended() const { return ended_; }
  /// What stands in the store's _publishing while this run is being published; empty before it is begun.
  const std::string& claim() const { return claim_; }
  /// Whether the file was put as it is here now, and the store has it as it was put.
  bool is_put(const std::string& file, const std::optional<FileIdentity>& there) const;

  /// Begins, or goes on after an end.
  void begin();
  void put(const std::string& file, const FileIdentity& there);
  void end();

 private:
  struct Put {
    FileIdentity there;
    std::string here;  ///< size and time of the file that was put
  };

  void add(const nlohmann::ordered_json& line) const;
  std::string state_here(const std::string& file) const;

  std::string folder_, path_;
  nlohmann::ordered_json head_;  ///< which run, and where it goes
  std::string claim_;
  std::map<std::string, Put> put_;
  bool ended_ = false;
};

}  // namespace sheaf
