#pragma once
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/tokenizer/jinja_node.h"
#include "core/tokenizer/jinja_tokens.h"

namespace sheaf {

/// Makes the tree of a template. Its depth is bounded, and with it that of whoever walks it.
class JinjaParser {
 public:
  explicit JinjaParser(std::vector<JinjaToken> tokens) : tokens_(std::move(tokens)) {}
  JinjaNodePtr parse();

 private:
  using Kind = JinjaNode::Kind;

  // Statements (jinja_statements.cc).
  /// What stands before a block tag whose name is one of `ends`; that tag's name is taken.
  JinjaNodePtr block(std::initializer_list<std::string_view> ends);
  void statement(JinjaNode& into);
  JinjaNodePtr set();
  JinjaNodePtr loop();
  JinjaNodePtr branch();
  JinjaNodePtr macro();
  void close();

  // Expressions (jinja_expressions.cc), from what binds least to what binds most.
  JinjaNodePtr expression();
  JinjaNodePtr tuple();
  JinjaNodePtr either();
  JinjaNodePtr both();
  JinjaNodePtr inverted();
  JinjaNodePtr comparison();
  JinjaNodePtr sum();
  JinjaNodePtr joined();
  JinjaNodePtr product();
  JinjaNodePtr unary(bool filters = true);
  JinjaNodePtr primary();
  JinjaNodePtr postfix(JinjaNodePtr object);
  JinjaNodePtr filtered(JinjaNodePtr object);
  JinjaNodePtr test(JinjaNodePtr object);
  JinjaNodePtr subscript(JinjaNodePtr object);
  JinjaNodePtr map();
  void arguments(JinjaNode& call);

  const JinjaToken& next() const { return tokens_[at_]; }
  const JinjaToken& take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool symbol(std::string_view text) const;
  bool word(std::string_view text) const;
  bool take_symbol(std::string_view text);
  bool take_word(std::string_view text);
  void need_symbol(std::string_view text);
  std::string need_name();
  [[noreturn]] void unexpected(std::string_view wanted) const;

  JinjaNodePtr node(Kind kind, std::string name = {}) const;
  /// Adds a part, null too; refuses a tree that is too deep.
  void add(JinjaNode& to, JinjaNodePtr part) const;
  JinjaNodePtr binary(std::string name, JinjaNodePtr a, JinjaNodePtr b, Kind kind = Kind::binary) const;

  std::vector<JinjaToken> tokens_;
  size_t at_ = 0;
  int nested_ = 0;  ///< calls of the parser by itself

  friend class JinjaNesting;
};

/// Counts how deep the parser is in itself.
class JinjaNesting {
 public:
  explicit JinjaNesting(JinjaParser& parser);
  ~JinjaNesting() { --parser_.nested_; }
  JinjaNesting(const JinjaNesting&) = delete;
  JinjaNesting& operator=(const JinjaNesting&) = delete;

 private:
  JinjaParser& parser_;
};

}  // namespace sheaf
