#pragma once
#include <fmt/format.h>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/text/json_reader.h"

namespace sheaf {

/// Builds the value from nlohmann's events. Its own parser with a callback scans a list again after every
/// object in it, and its ordered objects look through all their keys at every insertion: both are quadratic.
template <class Json>
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  using Base = nlohmann::json_sax<Json>;
  using String = typename Base::string_t;

  JsonBuilder(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  Json root = Json(Json::value_t::discarded);
  std::string trouble;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(typename Base::number_integer_t value) override { return put(value); }
  bool number_unsigned(typename Base::number_unsigned_t value) override { return put(value); }
  bool number_float(typename Base::number_float_t value, const String&) override { return put(value); }
  bool string(String& value) override { return put(std::move(value)); }
  bool binary(typename Base::binary_t&) override { return stop("not valid JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(String& value) override {
    if (depth_ == 1) skip_ = limits_.keep && !limits_.keep(value);
    if (!skip_) key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t read, const std::string&, const nlohmann::detail::exception& error) override {
    return stop(describe_json_error(text_, read, error));
  }

 protected:
  size_t depth() const { return depth_; }
  const std::string& last_key() const { return key_; }
  /// Takes a value that is neither a list nor an object.
  virtual bool put(Json value) { return skip_ || add(std::move(value)) != nullptr; }

 private:
  struct Open {
    Json* value;
    std::unordered_map<std::string, size_t> places = {};  ///< of an ordered object's keys
  };

  bool stop(std::string why) {
    trouble = std::move(why);
    return false;
  }

  /// Where the value now stands; null where it may not.
  Json* add(Json value) {
    if (++values_ > limits_.values) {
      stop(fmt::format("more than {} values", limits_.values));
      return nullptr;
    }
    if (open_.empty()) return &(root = std::move(value));
    Json& parent = *open_.back().value;
    if (parent.is_object()) return add_member(open_.back(), std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  Json* add_member(Open& object, Json value) {
    auto& members = object.value->template get_ref<typename Json::object_t&>();
    bool fresh = true;
    Json* place = nullptr;
    if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      const auto [known, inserted] = object.places.try_emplace(key_, members.size());
      fresh = inserted;
      if (fresh) members.emplace_back(key_, nullptr);
      place = &members.begin()[static_cast<ptrdiff_t>(known->second)].second;
    } else {
      const auto [known, inserted] = members.try_emplace(key_, nullptr);
      fresh = inserted;
      place = &known->second;
    }
    if (!fresh && limits_.unique_keys) {
      stop(fmt::format("{} appears twice in one object", Json(key_).dump(-1, ' ', true)));
      return nullptr;
    }
    return &(*place = std::move(value));
  }

  bool open(Json value) {
    if (++depth_ > limits_.depth) return stop(fmt::format("nested more than {} levels deep", limits_.depth));
    if (skip_) return true;
    // A list that grows moves only values that are closed: pointers to open ones stay good.
    Json* added = add(std::move(value));
    if (added) open_.push_back({added});
    return added != nullptr;
  }

  bool close() {
    --depth_;
    if (!skip_) open_.pop_back();
    if (depth_ == 1) skip_ = false;
    return true;
  }

  std::string_view text_;
  const JsonLimits& limits_;
  std::vector<Open> open_;  // the containers around the next value, as far as they are wanted
  std::string key_;
  size_t depth_ = 0;
  int64_t values_ = 0;
  bool skip_ = false;  // inside a member that is not wanted
};

}  // namespace sheaf
