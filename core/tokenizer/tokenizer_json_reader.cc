#include "core/tokenizer/tokenizer_json_reader.h"

#include "core/base/error.h"
#include "core/tokenizer/vocabulary.h"

namespace sheaf {
namespace {

using nlohmann::json;

class Handler : public json::json_sax_t {
 public:
  Handler(TokenizerJson& out, const std::string& source) : out_(out), source_(source) {}

  bool null() override { return value(json()); }
  bool boolean(bool v) override { return value(json(v)); }
  bool number_integer(number_integer_t v) override { return number(v); }
  bool number_unsigned(number_unsigned_t v) override {
    return number(v > INT64_MAX ? INT64_MAX : static_cast<int64_t>(v));
  }
  bool number_float(number_float_t v, const string_t&) override { return value(json(v)); }
  bool binary(binary_t&) override { return true; }

  bool string(string_t& v) override {
    if (table_ == Table::merges) {
      if (depth_ == table_depth_) return split_merge(v);
      if (++pair_parts_ > 2) bad_merge();
      out_.merges.push_back(std::move(v));
      return true;
    }
    return value(json(std::move(v)));
  }

  bool key(string_t& v) override {
    if (table_ == Table::vocabulary)
      word_ = std::move(v);
    else
      key_ = std::move(v);
    return true;
  }

  bool start_object(size_t) override {
    if (table_ != Table::none) wrong_table();
    const bool in_model = depth_ == 1 && key_ == "model";
    if (depth_ == 2 && model_ && key_ == "vocab") {
      enter();
      table_ = Table::vocabulary;
      table_depth_ = depth_;
      out_.has_vocabulary = true;
      return true;
    }
    push(json::object());
    model_ = model_ || in_model;
    return true;
  }
  bool end_object() override { return leave(); }

  bool start_array(size_t) override {
    if (table_ == Table::merges && depth_ == table_depth_) {
      enter();
      pair_parts_ = 0;
      return true;
    }
    if (table_ != Table::none) wrong_table();
    if (depth_ == 2 && model_ && key_ == "merges") {
      enter();
      table_ = Table::merges;
      table_depth_ = depth_;
      return true;
    }
    push(json::array());
    return true;
  }
  bool end_array() override { return leave(); }

  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    refuse("{}: this is not valid JSON at byte {}", source_, at);
  }

 private:
  enum class Table { none, vocabulary, merges };
  static constexpr size_t deepest = 64;

  void enter() {
    if (++depth_ > deepest) refuse("{}: the file is nested more than {} levels deep", source_, deepest);
  }

  void push(json v) {
    enter();
    stack_.push_back(put(std::move(v)));
  }

  bool leave() {
    if (table_ != Table::none) {
      if (depth_ == table_depth_)
        table_ = Table::none;
      else if (pair_parts_ != 2)
        bad_merge();
      --depth_;
      return true;
    }
    --depth_;
    stack_.pop_back();
    if (depth_ == 1) model_ = false;
    return true;
  }

  // Puts a value where the parser stands. A tree node never moves while its children are read: only the
  // innermost container grows.
  json* put(json v) {
    if (stack_.empty()) {
      out_.rest = std::move(v);
      return &out_.rest;
    }
    json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    return &(parent[key_] = std::move(v));
  }

  bool value(json v) {
    if (table_ != Table::none) wrong_table();
    put(std::move(v));
    return true;
  }

  bool number(int64_t v) {
    if (table_ != Table::vocabulary) return value(json(v));
    if (v < 0 || v >= Vocabulary::most_tokens) refuse("{}: token id {} is out of range", source_, v);
    out_.vocabulary.emplace_back(std::move(word_), v);
    return true;
  }

  // The older form, "left right" in one string.
  bool split_merge(const std::string& v) {
    const size_t space = v.find(' ');
    if (space == std::string::npos || v.find(' ', space + 1) != std::string::npos) bad_merge();
    out_.merges.push_back(v.substr(0, space));
    out_.merges.push_back(v.substr(space + 1));
    return true;
  }

  [[noreturn]] void bad_merge() const {
    refuse("{}: merge {} does not have two parts", source_, out_.merges.size() / 2);
  }
  [[noreturn]] void wrong_table() const {
    refuse("{}: model.{} contains a value of the wrong type", source_,
           table_ == Table::merges ? "merges" : "vocab");
  }

  TokenizerJson& out_;
  const std::string& source_;
  std::vector<json*> stack_;
  std::string key_, word_;
  size_t depth_ = 0, table_depth_ = 0;
  Table table_ = Table::none;
  bool model_ = false;  // inside the top-level "model"
  int pair_parts_ = 0;
};

}  // namespace

TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& source) {
  TokenizerJson out;
  Handler handler(out, source);
  json::sax_parse(text.begin(), text.end(), &handler);
  if (!out.rest.is_object())
    refuse("{}: this is not a tokenizer.json: its top level is not an object", source);
  return out;
}

}  // namespace sheaf
