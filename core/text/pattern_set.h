#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sheaf {

/// Finds any of many patterns in a text, in time that is linear in the text whatever the patterns are: an
/// Aho–Corasick automaton over the reversed patterns. Run from the text's end to its start, it knows at every
/// place the longest pattern that starts there.
class PatternSet {
 public:
  /// Returns the pattern's number; an equal one has the number it had. Empty patterns are not allowed.
  int32_t add(std::string_view pattern);
  /// Makes the set ready for search; call it after the last add().
  void link();

  /// The number of the pattern that is exactly `pattern`, or -1.
  int32_t find(std::string_view pattern) const;

  struct Match {
    size_t at;
    int32_t pattern;
  };
  /// For every place in [begin, end) where a pattern starts that ends at `limit` or before, the longest one,
  /// last place first. `out` is emptied.
  void search(std::string_view text, size_t begin, size_t end, size_t limit, std::vector<Match>& out) const;

 private:
  struct Node {
    uint32_t parent = 0;
    uint32_t fallback = 0;  ///< the longest proper suffix of this node's path that is a path of its own
    int32_t pattern = -1;   ///< the one that ends here
    int32_t longest = -1;   ///< of the patterns that are suffixes of this node's path
    uint32_t depth = 0;
    char byte = 0;
  };
  static uint64_t edge(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }
  uint32_t next(uint32_t node, char byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);  ///< the first is the root
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::array<bool, 256> last_{};  ///< bytes that a pattern ends with
  int32_t count_ = 0;
  size_t longest_ = 0;
  bool linked_ = true;
};

}  // namespace sheaf
