#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/jinja.h"
#include "core/tokenizer/jinja_node.h"

namespace sheaf {

/// One rendering of a template: its variables, what it printed, and how much it may still do.
class JinjaRun {
 public:
  explicit JinjaRun(const JinjaInputs& inputs);
  std::string render(const JinjaNode& root) {
    print(root);
    return std::move(out_);
  }

 private:
  using Values = std::vector<JinjaValue>;
  using Scope = std::map<std::string, JinjaValue, std::less<>>;
  struct Arguments {
    Values values;
    std::vector<std::pair<std::string, JinjaValue>> named;
    /// The argument at `place` or called `name`; undefined where it was not given.
    JinjaValue get(size_t place, std::string_view name = {}) const;
  };

  // Statements (jinja_render.cc).
  void print(const JinjaNode& node);
  void print_loop(const JinjaNode& node);
  void print_branch(const JinjaNode& node);
  void set_field(const JinjaNode& node);
  void write(std::string_view text);
  void assign(const std::string& name, JinjaValue value) {
    scopes_.back().insert_or_assign(name, std::move(value));
  }
  /// What a loop goes through.
  Values items(const JinjaNode& node, const JinjaValue& value);

  // Expressions (jinja_evaluate.cc).
  JinjaValue evaluate(const JinjaNode& node);
  JinjaValue look_up(const std::string& name) const;
  JinjaValue index(const JinjaNode& node, const JinjaValue& object, const JinjaValue& key);
  JinjaValue slice(const JinjaNode& node);
  JinjaValue make_map(const JinjaNode& node);
  Arguments arguments(const JinjaNode& node, size_t first);

  // Operators (jinja_evaluate.cc).
  JinjaValue binary(const JinjaNode& node);
  bool equal(const JinjaValue& a, const JinjaValue& b);
  bool contains(const JinjaNode& node, const JinjaValue& all, const JinjaValue& one);

  // What has a name (jinja_functions.cc).
  JinjaValue call(const JinjaNode& node);
  JinjaValue method(const JinjaNode& node);
  JinjaValue text_method(const JinjaNode& node, std::string_view name, const std::string& text,
                         const Arguments& given);
  JinjaValue map_method(const JinjaNode& node, const JinjaMap& map, const Arguments& given);
  JinjaValue filter(const JinjaNode& node);
  JinjaValue join(const JinjaNode& node, const JinjaValue& object, const Arguments& given);
  JinjaValue select(const JinjaNode& node, const JinjaValue& object, const Arguments& given);
  bool test(const JinjaNode& node);
  bool test_by_name(const JinjaNode& node, const std::string& name, const JinjaValue& object,
                    const JinjaValue& argument);
  JinjaValue split(const JinjaNode& node, const std::string& text, const Arguments& given);
  JinjaValue replace(const JinjaNode& node, const std::string& text, const Arguments& given);

  /// What print shows of a value.
  std::string shown(const JinjaNode& node, const JinjaValue& value) const;
  const std::string& need_text(const JinjaNode& node, const JinjaValue& value) const;
  int64_t need_integer(const JinjaNode& node, const JinjaValue& value) const;
  /// Takes from what the template may do; throws where nothing is left.
  void spend(size_t steps);
  /// Before looking for one text in another.
  void spend_search(std::string_view in, std::string_view what) { spend(1 + in.size() * what.size() / 1024); }
  void spend_bytes(std::string_view text);
  JinjaValue made(std::string text);

  std::vector<Scope> scopes_{1};
  std::string out_;
  size_t steps_left_, bytes_left_;
};

bool is_ascii(std::string_view text);

}  // namespace sheaf
