#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/task/record.h"
#include "io/base/scratch_file.h"

namespace sheaf {

/// The texts of contexts by their ids. They lie in a file; memory holds where, some 50 bytes an id.
class Contexts {
 public:
  /// `near`: where there is room for the file, see ScratchFile.
  explicit Contexts(const std::string& near) : file_(near) {}

  /// Keeps the first text of an id.
  void add(const nlohmann::json& id, const std::string& text, const Place& place);
  bool empty() const { return places_.empty(); }

  struct Context {
    std::string text;
    Place place;  ///< the row that gave it
  };
  std::optional<Context> find(const nlohmann::json& id) const;

 private:
  struct Key {
    uint64_t high, low;  ///< of the id's SHA-256, so that ids are never mistaken for one another
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return static_cast<size_t>(key.low); }
  };
  static Key key_of(const nlohmann::json& id);

  ScratchFile file_;
  std::unordered_map<Key, int64_t, KeyHash> places_;  ///< where in the file
};

/// Reads a corpus of contexts (a RecordMapper that gathers) to its end.
std::shared_ptr<const Contexts> gather_contexts(Corpus& corpus, const std::string& near);

}  // namespace sheaf
