#include "io/json_line.h"

#include <fmt/format.h>
#include <vector>

#include "core/text/utf8.h"
#include "io/spelling.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kMostDepth = 32;
constexpr int64_t kMostValues = 1'000'000;

/// nlohmann's own filter (parse with a callback) rescans a list after every object in it, which is quadratic.
class RowBuilder : public nlohmann::json_sax<json> {
 public:
  explicit RowBuilder(const std::function<bool(const std::string&)>& keep) : keep_(keep) {}

  json root;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (depth_ == 1) skip_ = !keep_(value);
    if (!skip_) key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view message = error.what();
    if (const size_t bracket = message.find("] "); bracket != std::string_view::npos)
      message.remove_prefix(bracket + 2);
    throw "not valid JSON: " + shorten_text(message, 200);
  }

 private:
  bool put(json value) {
    add(std::move(value));
    return true;
  }

  /// Where the value now stands; null where it is not wanted.
  json* add(json value) {
    if (depth_ == 0) {
      if (!value.is_object()) throw std::string("not a JSON object");
      root = std::move(value);
      return &root;
    }
    if (skip_) return nullptr;
    if (++values_ > kMostValues) throw fmt::format("more than {} values", kMostValues);
    json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool open(json value) {
    if (depth_ >= kMostDepth) throw fmt::format("nested more than {} levels deep", kMostDepth);
    // What is added next to an open list moves only lists that are closed: pointers to open ones stay good.
    if (json* added = add(std::move(value))) open_.push_back(added);
    ++depth_;
    return true;
  }

  bool close() {
    --depth_;
    if (depth_ == 0 || !skip_) open_.pop_back();
    if (depth_ == 1) skip_ = false;
    return true;
  }

  const std::function<bool(const std::string&)>& keep_;
  std::vector<json*> open_;  // the containers around the next value, as far as they are wanted
  std::string key_;
  size_t depth_ = 0;
  int64_t values_ = 0;
  bool skip_ = false;  // inside a value that is not wanted
};

}  // namespace

json parse_json_line(std::string_view line, const std::function<bool(const std::string&)>& keep) {
  if (const size_t good = valid_prefix(line); good < line.size())
    throw fmt::format("not valid UTF-8 at byte {}", good + 1);
  RowBuilder builder(keep);
  json::sax_parse(line.begin(), line.end(), &builder);
  return std::move(builder.root);
}

}  // namespace sheaf
