#include "core/tokenizer/tokenizer_json_reader.h"

#include "core/base/error.h"
#include "core/text/json_builder.h"
#include "core/tokenizer/vocabulary.h"

namespace sheaf {
namespace {

using nlohmann::json;

const JsonLimits kTokenizerLimits{.depth = 64, .values = INT64_MAX};

/// Keeps the two tables out of the tree.
class TokenizerJsonBuilder final : public JsonBuilder<json> {
 public:
  TokenizerJsonBuilder(TokenizerJson& out, std::string_view text, const std::string& source)
      : JsonBuilder(text, kTokenizerLimits), out_(out), source_(source) {}

  bool number_integer(number_integer_t v) override { return number(v); }
  bool number_unsigned(number_unsigned_t v) override {
    return number(v > INT64_MAX ? INT64_MAX : static_cast<int64_t>(v));
  }

  bool string(string_t& v) override {
    if (table_ != Table::merges) return JsonBuilder::string(v);
    if (!in_pair_) return split_merge(v);
    if (++pair_parts_ > 2) bad_merge();
    out_.merges.push_back(std::move(v));
    return true;
  }

  bool key(string_t& v) override {
    if (table_ != Table::vocabulary) return JsonBuilder::key(v);
    word_ = std::move(v);
    return true;
  }

  bool start_object(size_t size) override {
    if (table_ != Table::none) wrong_table();
    if (in_model_ && depth() == 2 && last_key() == "vocab") {
      table_ = Table::vocabulary;
      out_.has_vocabulary = true;
      return true;
    }
    if (depth() == 1) in_model_ = last_key() == "model";
    return JsonBuilder::start_object(size);
  }
  bool end_object() override { return table_ == Table::vocabulary ? end_table() : JsonBuilder::end_object(); }

  bool start_array(size_t size) override {
    if (table_ == Table::merges && !in_pair_) {
      in_pair_ = true;
      pair_parts_ = 0;
      return true;
    }
    if (table_ != Table::none) wrong_table();
    if (in_model_ && depth() == 2 && last_key() == "merges") {
      table_ = Table::merges;
      return true;
    }
    if (depth() == 1) in_model_ = false;
    return JsonBuilder::start_array(size);
  }

  bool end_array() override {
    if (!in_pair_) return table_ == Table::merges ? end_table() : JsonBuilder::end_array();
    if (pair_parts_ != 2) bad_merge();
    in_pair_ = false;
    return true;
  }

  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    refuse("{}: this is not valid JSON at byte {}", source_, at);
  }

 protected:
  bool put(json v) override {
    if (table_ != Table::none) wrong_table();
    return JsonBuilder::put(std::move(v));
  }

 private:
  enum class Table { none, vocabulary, merges };

  bool end_table() {
    table_ = Table::none;
    return true;
  }

  bool number(int64_t v) {
    if (table_ != Table::vocabulary) return put(v);
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
  std::string word_;
  Table table_ = Table::none;
  bool in_model_ = false;  // inside the outermost object's "model"
  bool in_pair_ = false;   // inside a merge of the newer form, ["left", "right"]
  int pair_parts_ = 0;
};

}  // namespace

TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& source) {
  TokenizerJson out;
  TokenizerJsonBuilder builder(out, text, source);
  if (!json::sax_parse(text.begin(), text.end(), &builder))
    refuse("{}: the file is {}", source, builder.trouble);
  out.rest = std::move(builder.root);
  if (!out.rest.is_object())
    refuse("{}: this is not a tokenizer.json: its top level is not an object", source);
  return out;
}

}  // namespace sheaf
