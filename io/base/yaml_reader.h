#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

struct YamlNode;
using YamlPtr = std::shared_ptr<const YamlNode>;

/// Where a node was written: a line of a file, or (line 0) a `--set` option.
struct YamlPlace {
  std::shared_ptr<const std::string> source;
  int line = 0;
  std::string text() const;  ///< "configs/demo.yaml:7"
};

/// One node of a YAML document. Aliased nodes are shared, never copied.
struct YamlNode {
  enum class Kind : uint8_t { null, scalar, list, map };
  struct Entry {
    std::string key;
    YamlPlace place;
    YamlPtr value;
  };
  Kind kind = Kind::null;
  bool quoted = false;  ///< a scalar in quotes is text whatever it looks like
  YamlPlace place;
  std::string text;            ///< of a scalar
  std::vector<YamlPtr> items;  ///< of a list
  std::vector<Entry> entries;  ///< of a map: keys unique, in the order of the file
  int64_t size = 1;            ///< nodes below and including this one, aliases counted as if written out

  /// A scalar that is neither a number nor a boolean.
  bool is_text() const;
  /// What it is, for error messages: `the number 7`, `a list`.
  std::string describe() const;
};

/// Parses one YAML document. Refuses, with file and line: syntax errors, text that is not UTF-8, duplicate
/// keys, tags other than !!str, more than one document, more than 1 MB, 32 levels or 100,000 nodes. `line` is
/// that of the first line; 0: the text comes from an option and has no lines.
YamlPtr parse_yaml(const std::string& source, const std::string& text, int line = 1);
YamlPtr read_yaml(const std::string& path, std::string_view what = "a YAML file");

/// Text that an option gives; `source` names the option.
YamlPtr option_text(const std::string& source, const std::string& text);

/// `root` with the value at `path` ("method.documents") replaced or added. Refuses to go through what is not
/// a map.
YamlPtr replace_yaml(const YamlPtr& root, std::string_view path, const YamlPtr& value);

template <class Number>
struct Range {
  Number least;
  Number most;
};

/// Text of a scalar; refuses numbers and booleans that are not quoted. `name` is what messages call it.
std::string yaml_text(const YamlNode& node, std::string_view name);
/// Text that is a path: one in a file is relative to the folder of that file, one in an option to the working
/// directory. paths.h says what is replaced in it.
std::string yaml_path(const YamlNode& node, std::string_view name);
/// Text of any scalar as it is written, numbers too.
std::string yaml_scalar(const YamlNode& node, std::string_view name);

/// A strict view of a map: what is read is known; finish() refuses the rest and what is required and
/// missing, all at once. A key whose value is null counts as absent.
class YamlMap {
 public:
  /// `name` is the path of the map for messages ("method"), empty for the whole file. A null node is an empty
  /// map.
  YamlMap(YamlPtr node, std::string name);

  /// `old` is a spelling of `key` from earlier versions: accepted, but not beside `key`.
  void accept_old(std::string_view key, std::string_view old);
  void text(std::string_view key, std::string& target);
  void file_path(std::string_view key, std::string& target);  ///< as yaml_path() reads it
  void choice(std::string_view key, std::string& target, const std::vector<std::string>& allowed);
  void text_list(std::string_view key, std::vector<std::string>& target);  ///< a text or a list of texts
  void boolean(std::string_view key, bool& target);
  void integer(std::string_view key, int32_t& target, Range<int64_t> range);
  void integer(std::string_view key, int64_t& target, Range<int64_t> range);
  void integer(std::string_view key, uint64_t& target);
  void number(std::string_view key, double& target, Range<double> range);
  void number(std::string_view key, float& target, Range<double> range);
  YamlPtr node(std::string_view key);  ///< null where absent
  YamlMap map(std::string_view key);
  /// A map, or in its place a scalar that is the value of its key `shorthand`.
  YamlMap map_or(std::string_view key, std::string_view shorthand);

  void require(std::string_view key) { required_.emplace_back(key); }
  void finish() const;

  bool has(std::string_view key) const;
  /// Whether the key is there and its value is null, which elsewhere counts as absent.
  bool is_null(std::string_view key) const;
  /// Where `key` is written; where absent, where the map is.
  std::string where(std::string_view key) const;
  std::string where() const { return node_->place.text(); }
  /// "method.documents".
  std::string path(std::string_view key) const;

 private:
  const YamlNode::Entry* find(std::string_view key) const;
  const YamlNode* take(std::string_view key);

  YamlPtr node_;
  std::string name_;
  std::string shorthand_;  ///< the key whose value stands in place of the map; empty: none
  std::vector<std::string> known_;
  std::vector<std::pair<std::string, std::string>> old_;  ///< key and its old spelling
  std::vector<std::string> required_;
};

}  // namespace sheaf
