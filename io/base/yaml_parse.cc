// From YAML text to nodes. Built on yaml-cpp's events rather than its nodes: those keep no line of a key, let
// duplicate keys pass and take a quoted "null" for null.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sstream>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/descriptor.h"
#include "io/base/yaml_reader.h"

namespace sheaf {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostLevels = 32;
constexpr int64_t kMostNodes = 100'000;

class Builder : public YAML::EventHandler {
 public:
  Builder(std::shared_ptr<const std::string> source, int first_line)
      : source_(std::move(source)), first_line_(first_line) {}

  YamlPtr root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(start(mark, YamlNode::Kind::null, {}), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      refuse("{}: an alias refers to a value that contains it; remove it", place(mark).text());
    put(found->second, place(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto node = start(mark, YamlNode::Kind::scalar, tag);
    if (value.find('\0') != std::string::npos)
      refuse("{}: a text contains a NUL character; remove it", node->place.text());
    node->quoted = tag == "!" || tag == kTextTag;
    node->text = value;
    add(node, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(start(mark, YamlNode::Kind::list, tag), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(start(mark, YamlNode::Kind::map, tag), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  static constexpr const char* kTextTag = "tag:yaml.org,2002:str";

  struct Open {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    bool merge = false;
    std::string key;
    YamlPlace key_place;
    std::unordered_set<std::string> keys;
    std::vector<std::pair<YamlPtr, YamlPlace>> merges;
  };

  YamlPlace place(const YAML::Mark& mark) const {
    return {source_, first_line_ ? first_line_ + mark.line : 0};
  }

  std::shared_ptr<YamlNode> start(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& tag) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->place = place(mark);
    if (!tag.empty() && tag != "?" && tag != "!" && tag != kTextTag)
      refuse("{}: the tag {} is not supported; remove it", node->place.text(), shorten_text(tag, 60));
    return node;
  }

  void open(std::shared_ptr<YamlNode> node, YAML::anchor_t anchor) {
    if (stack_.size() >= kMostLevels)
      refuse("{}: the file is nested more than {} levels deep", node->place.text(), kMostLevels);
    Open frame;
    frame.node = std::move(node);
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }

  void close() {
    Open frame = std::move(stack_.back());
    stack_.pop_back();
    for (const auto& [from, where] : frame.merges) merge(frame, from, where);
    add(frame.node, frame.anchor);
  }

  void add(const std::shared_ptr<YamlNode>& node, YAML::anchor_t anchor) {
    if (anchor) anchors_[anchor] = node;
    put(node, node->place);
  }

  void put(const YamlPtr& node, const YamlPlace& where) {
    if (stack_.empty()) {
      root = node;
      return;
    }
    Open& top = stack_.back();
    top.node->size += node->size;
    if (top.node->size > kMostNodes)
      refuse("{}: the file has more than {} values, counting each alias as what it stands for", where.text(),
             kMostNodes);
    if (top.node->kind == YamlNode::Kind::list) {
      top.node->items.push_back(node);
    } else if (!top.has_key) {
      if (node->kind != YamlNode::Kind::scalar)
        refuse("{}: {} cannot be a key", where.text(), node->describe());
      top.merge = node->text == "<<" && !node->quoted;
      if (!top.merge && !top.keys.insert(node->text).second)
        refuse("{}: the key \"{}\" appears twice; remove one", where.text(), shorten_text(node->text, 60));
      top.key = node->text;
      top.key_place = where;
      top.has_key = true;
    } else {
      top.has_key = false;
      if (top.merge) {
        top.merges.emplace_back(node, where);
      } else {
        top.node->entries.push_back({top.key, top.key_place, node});
      }
    }
  }

  void merge(Open& frame, const YamlPtr& from, const YamlPlace& where) {
    if (from->kind == YamlNode::Kind::list) {
      for (const YamlPtr& item : from->items) {
        if (item->kind != YamlNode::Kind::map)
          refuse("{}: << must be followed by a map, not {}", where.text(), item->describe());
        merge(frame, item, where);
      }
      return;
    }
    if (from->kind != YamlNode::Kind::map)
      refuse("{}: << needs a map, not {}", where.text(), from->describe());
    for (const YamlNode::Entry& entry : from->entries)
      if (frame.keys.insert(entry.key).second) frame.node->entries.push_back(entry);
  }

  std::shared_ptr<const std::string> source_;
  int first_line_;
  std::vector<Open> stack_;
  std::unordered_map<YAML::anchor_t, YamlPtr> anchors_;
};

/// The line, from 0, that a tab indents, if it is line `at` or the one before it.
std::optional<int> indenting_tab(const std::string& text, int at) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 0; number <= at && std::getline(lines, line); ++number)
    if (number + 1 >= at && line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos)
      return number;
  return std::nullopt;
}

}  // namespace

YamlPtr parse_yaml(const std::string& source, const std::string& text, int line) {
  const auto name = std::make_shared<const std::string>(source);
  const auto where = [&](int64_t offset) {
    return YamlPlace{name, line ? line + static_cast<int>(offset) : 0}.text();
  };
  if (text.size() > kMostBytes)
    refuse("{}: the file is larger than 1 MB, too large for a job or a schema", source);
  size_t good = valid_prefix(text);
  good = std::min(good, text.find('\0'));
  if (good < text.size())
    refuse("{}: this is not UTF-8 text",
           where(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(good), '\n')));
  std::istringstream stream(text);
  Builder builder(name, line);
  try {
    YAML::Parser parser(stream);
    Builder rest(name, line);
    if (parser.HandleNextDocument(builder) && parser.HandleNextDocument(rest))
      refuse("{}: a second YAML document begins here; keep only one",
             rest.root ? rest.root->place.text() : source);
  } catch (const YAML::Exception& error) {
    if (!error.mark.is_null())
      if (const auto tab = indenting_tab(text, error.mark.line))
        refuse("{}: a tab indents this line; YAML allows only spaces there", where(*tab));
    if (error.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR))  // yaml-cpp 0.8 adds its name
      refuse("{}: a value that begins with * needs quotes",
             error.mark.is_null() ? source : where(error.mark.line));
    refuse("{}: this is not valid YAML: {}", error.mark.is_null() ? source : where(error.mark.line),
           error.msg);
  }
  if (!builder.root) {
    auto empty = std::make_shared<YamlNode>();
    empty->place = {name, line};
    return empty;
  }
  return builder.root;
}

YamlPtr read_yaml(const std::string& path, std::string_view what) {
  // A shell may hand a job over as a pipe, which has a writer by then; one without a writer must not be
  // waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) refuse_unopened(path, fmt::format("name {}", what));
  std::string text(kMostBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.number(), text.data() + size, text.size() - size);
    if (count == 0) break;
    if (count > 0) {
      size += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd more{file.number(), POLLIN, 0};
      ::poll(&more, 1, -1);
    } else if (errno != EINTR) {
      if (errno == EISDIR) refuse("{}: this is a folder; name {}", path, what);
      refuse("{}: the file cannot be read: {}", path, std::strerror(errno));
    }
  }
  text.resize(size);
  return parse_yaml(path, text);
}

YamlPtr replace_yaml(const YamlPtr& root, std::string_view path, const YamlPtr& value) {
  const size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  if (key.empty()) refuse("{}: the key is empty", value->place.text());
  if (root && root->kind != YamlNode::Kind::map && root->kind != YamlNode::Kind::null)
    refuse("{}: \"{}\" cannot be set inside {}; only a map has keys", value->place.text(), key,
           root->describe());
  auto changed = root ? std::make_shared<YamlNode>(*root) : std::make_shared<YamlNode>();
  if (!root) changed->place = value->place;
  changed->kind = YamlNode::Kind::map;
  const auto found = std::find_if(changed->entries.begin(), changed->entries.end(),
                                  [&](const YamlNode::Entry& entry) { return entry.key == key; });
  YamlNode::Entry& entry = found != changed->entries.end()
                               ? *found
                               : changed->entries.emplace_back(YamlNode::Entry{key, value->place, nullptr});
  if (dot == std::string_view::npos) {
    entry.place = value->place;
    entry.value = value;
  } else {
    entry.value = replace_yaml(entry.value, path.substr(dot + 1), value);
  }
  return changed;
}

}  // namespace sheaf
