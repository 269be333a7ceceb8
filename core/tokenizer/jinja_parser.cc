#include <algorithm>
#include <initializer_list>

#include "core/tokenizer/jinja_node.h"

namespace sheaf {
namespace {

constexpr int kMostNesting = 40;
constexpr int kMostTreeDepth = 160;

class JinjaParser {
 public:
  explicit JinjaParser(std::vector<JinjaToken> tokens) : tokens_(std::move(tokens)) {}

  /// What stands before a block tag whose name is one of `ends`; that tag's name is next.
  JinjaNodePtr block(std::initializer_list<std::string_view> ends) {
    const Nesting nesting(*this);
    JinjaNodePtr out = node(Kind::block);
    while (true) {
      const JinjaToken::Kind kind = next().kind;
      if (kind == JinjaToken::Kind::end) {
        if (ends.size() == 0) return out;
        not_understood(next().line, "\"{}\" is missing", *(ends.end() - 1));
      }
      if (kind == JinjaToken::Kind::text) {
        JinjaNodePtr text = node(Kind::text);
        text->value = jinja_text(take().text);
        add(*out, std::move(text));
      } else if (kind == JinjaToken::Kind::open_print) {
        take();
        JinjaNodePtr print = node(Kind::print);
        add(*print, tuple());
        close();
        add(*out, std::move(print));
      } else {
        take();
        if (std::ranges::any_of(ends, [&](std::string_view end) { return word(end); })) return out;
        statement(*out);
      }
    }
  }

 private:
  using Kind = JinjaNode::Kind;

  /// Counts how deep the parser is in itself.
  class Nesting {
   public:
    explicit Nesting(JinjaParser& parser) : nested_(parser.nested_) {
      if (nested_ >= kMostNesting) not_understood(parser.next().line, "it nests too deep");
      ++nested_;
    }
    ~Nesting() { --nested_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int& nested_;
  };

  const JinjaToken& next() const { return tokens_[at_]; }
  const JinjaToken& take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  /// Whether the token `ahead` of the next one is this.
  bool is(JinjaToken::Kind kind, std::string_view text, size_t ahead = 0) const {
    const size_t at = at_ + ahead;
    return at < tokens_.size() && tokens_[at].kind == kind && tokens_[at].text == text;
  }
  bool symbol(std::string_view text) const { return is(JinjaToken::Kind::symbol, text); }
  bool word(std::string_view text) const { return is(JinjaToken::Kind::name, text); }

  bool take_symbol(std::string_view text) {
    const bool found = symbol(text);
    if (found) take();
    return found;
  }

  bool take_word(std::string_view text) {
    const bool found = word(text);
    if (found) take();
    return found;
  }

  void need_symbol(std::string_view text) {
    if (!take_symbol(text)) unexpected(fmt::format("\"{}\"", text));
  }

  std::string need_name() {
    if (next().kind != JinjaToken::Kind::name) unexpected("a name");
    return take().text;
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    const bool named = next().kind == JinjaToken::Kind::name || next().kind == JinjaToken::Kind::symbol;
    if (!named) not_understood(next().line, "{} is expected", wanted);
    not_understood(next().line, "{} is expected, not \"{}\"", wanted, next().text.substr(0, 40));
  }

  void close() {
    if (next().kind != JinjaToken::Kind::close) unexpected("the end of the tag");
    take();
  }

  JinjaNodePtr node(Kind kind, std::string name = {}) const {
    auto made = std::make_unique<JinjaNode>();
    made->kind = kind;
    made->name = std::move(name);
    made->line = next().line;
    return made;
  }

  template <class... Parts>
  JinjaNodePtr node_of(Kind kind, std::string name, Parts... parts) const {
    JinjaNodePtr out = node(kind, std::move(name));
    (add(*out, std::move(parts)), ...);
    return out;
  }

  /// Adds a part, null too; refuses a tree that is too deep.
  void add(JinjaNode& to, JinjaNodePtr part) const {
    if (part) to.depth = std::max(to.depth, part->depth + 1);
    if (to.depth > kMostTreeDepth) not_understood(next().line, "it nests too deep");
    to.parts.push_back(std::move(part));
  }

  // Statements.

  void statement(JinjaNode& into) {
    if (take_word("set")) return add(into, set());
    if (take_word("for")) return add(into, loop());
    if (take_word("if")) return add(into, branch());
    if (take_word("macro")) return add(into, macro());
    // Marks what the model says, for training.
    if (take_word("generation")) return add(into, body({"endgeneration"}));
    const std::string name = next().kind == JinjaToken::Kind::name ? next().text.substr(0, 40) : "";
    not_understood(next().line, "the tag \"{}\" is not supported", name);
  }

  /// The rest of a tag, a block, and the tag that ends it.
  JinjaNodePtr body(std::initializer_list<std::string_view> end) {
    close();
    JinjaNodePtr out = block(end);
    take();
    close();
    return out;
  }

  JinjaNodePtr set() {
    JinjaNodePtr out = node(Kind::set, need_name());
    if (take_symbol(".")) {
      out->kind = Kind::set_field;
      out->value = jinja_text(need_name());
    }
    if (take_symbol("=")) {
      add(*out, tuple());
      close();
      return out;
    }
    if (out->kind == Kind::set_field) unexpected("\"=\"");
    out->kind = Kind::set_block;
    add(*out, body({"endset"}));
    return out;
  }

  JinjaNodePtr loop() {
    JinjaNodePtr out = node(Kind::loop);
    const bool grouped = take_symbol("(");
    do {
      out->names.push_back(need_name());
    } while (take_symbol(","));
    if (grouped) need_symbol(")");
    if (!take_word("in")) unexpected("\"in\"");
    add(*out, either());  // an "if" behind it belongs to the loop
    JinjaNodePtr condition, otherwise;
    if (take_word("if")) condition = expression();
    close();
    JinjaNodePtr each = block({"else", "endfor"});
    if (take_word("else")) {
      otherwise = body({"endfor"});
    } else {
      take();
      close();
    }
    add(*out, std::move(each));
    add(*out, std::move(condition));
    add(*out, std::move(otherwise));
    return out;
  }

  JinjaNodePtr branch() {
    JinjaNodePtr out = node(Kind::branch);
    do {
      add(*out, expression());
      close();
      add(*out, block({"elif", "else", "endif"}));
    } while (take_word("elif"));
    if (take_word("else")) {
      add(*out, body({"endif"}));
    } else {
      take();
      close();
    }
    return out;
  }

  /// A macro may stand there; a call of it is refused.
  JinjaNodePtr macro() {
    JinjaNodePtr out = node(Kind::nothing, need_name());
    while (next().kind != JinjaToken::Kind::close && next().kind != JinjaToken::Kind::end) take();
    body({"endmacro"});
    return out;
  }

  // Expressions, from what binds least to what binds most.

  JinjaNodePtr expression() {
    const Nesting nesting(*this);
    JinjaNodePtr out = either();
    while (take_word("if")) {
      JinjaNodePtr choice = node_of(Kind::choice, {}, std::move(out));
      add(*choice, either());
      add(*choice, take_word("else") ? expression() : nullptr);
      out = std::move(choice);
    }
    return out;
  }

  /// An expression, or several with commas: a list.
  JinjaNodePtr tuple() {
    JinjaNodePtr out = expression();
    if (!symbol(",")) return out;
    JinjaNodePtr list = node_of(Kind::list, {}, std::move(out));
    while (take_symbol(",")) {
      if (symbol(")") || next().kind == JinjaToken::Kind::close) break;
      add(*list, expression());
    }
    return list;
  }

  JinjaNodePtr either() {
    JinjaNodePtr out = both();
    while (take_word("or")) out = node_of(Kind::either, {}, std::move(out), both());
    return out;
  }

  JinjaNodePtr both() {
    JinjaNodePtr out = inverted();
    while (take_word("and")) out = node_of(Kind::both, {}, std::move(out), inverted());
    return out;
  }

  JinjaNodePtr inverted() {
    if (!take_word("not")) return comparison();
    const Nesting nesting(*this);
    return node_of(Kind::invert, {}, inverted());
  }

  JinjaNodePtr comparison() {
    JinjaNodePtr out = sum();
    for (bool compared = false;; compared = true) {
      std::string name;
      for (const std::string_view each : {"==", "!=", "<=", ">=", "<", ">"})
        if (symbol(each)) name = each;
      const bool inverts = word("not") && is(JinjaToken::Kind::name, "in", 1);
      if (inverts) take();
      if (word("in")) name = "in";
      if (name.empty()) return out;
      if (compared) not_understood(next().line, "a chain of comparisons is not supported");
      take();
      out = node_of(Kind::binary, name, std::move(out), sum());
      if (inverts) out = node_of(Kind::invert, {}, std::move(out));
    }
  }

  /// Operators of one strength from left to right, between what `tighter` reads.
  JinjaNodePtr operators(std::initializer_list<std::string_view> symbols,
                         JinjaNodePtr (JinjaParser::*tighter)()) {
    JinjaNodePtr out = (this->*tighter)();
    while (std::ranges::any_of(symbols, [&](std::string_view each) { return symbol(each); })) {
      std::string name = take().text;
      out = node_of(Kind::binary, std::move(name), std::move(out), (this->*tighter)());
    }
    return out;
  }

  JinjaNodePtr sum() { return operators({"+", "-"}, &JinjaParser::joined); }
  JinjaNodePtr joined() { return operators({"~"}, &JinjaParser::product); }
  JinjaNodePtr product() { return operators({"*", "/", "//", "%"}, &JinjaParser::filtered); }

  JinjaNodePtr filtered() {
    JinjaNodePtr object = unary();
    while (true) {
      if (take_symbol("|")) {
        JinjaNodePtr out = node(Kind::filter, need_name());
        add(*out, std::move(object));
        if (symbol("(")) arguments(*out);
        object = std::move(out);
      } else if (take_word("is")) {
        object = test(std::move(object));
      } else {
        return object;
      }
    }
  }

  JinjaNodePtr test(JinjaNodePtr object) {
    const bool inverts = take_word("not");
    JinjaNodePtr out = node(Kind::test, need_name());
    add(*out, std::move(object));
    const JinjaToken::Kind kind = next().kind;
    const auto goes_on = {"and", "or", "else", "if", "is", "not", "in"};
    const bool has_argument =
        kind == JinjaToken::Kind::name
            ? std::ranges::none_of(goes_on, [&](std::string_view each) { return word(each); })
            : kind == JinjaToken::Kind::string || kind == JinjaToken::Kind::integer || symbol("[");
    if (symbol("("))
      arguments(*out);
    else if (has_argument)
      add(*out, postfix(primary()));
    return inverts ? node_of(Kind::invert, {}, std::move(out)) : std::move(out);
  }

  JinjaNodePtr unary() {
    if (!take_symbol("-")) return postfix(primary());
    const Nesting nesting(*this);
    JinjaNodePtr out = node(Kind::negate);
    add(*out, unary());
    return out;
  }

  JinjaNodePtr primary() {
    JinjaNodePtr out = node(Kind::constant);
    switch (next().kind) {
      case JinjaToken::Kind::string: {
        std::string text = take().text;
        while (next().kind == JinjaToken::Kind::string) text += take().text;
        out->value = jinja_text(std::move(text));
        return out;
      }
      case JinjaToken::Kind::integer:
        out->value = take().number;
        return out;
      case JinjaToken::Kind::name: {
        const std::string name = take().text;
        if (name == "true" || name == "True" || name == "false" || name == "False") {
          out->value = name == "true" || name == "True";
        } else if (name == "none" || name == "None") {
          out->value = JinjaNone{};
        } else {
          out->kind = Kind::name;
          out->name = name;
        }
        return out;
      }
      default:
        break;
    }
    if (take_symbol("(")) {
      if (symbol(")")) unexpected("a value");
      out = tuple();
      need_symbol(")");
      return out;
    }
    const bool is_map = take_symbol("{");
    if (!is_map && !take_symbol("[")) unexpected("a value");
    out->kind = is_map ? Kind::map : Kind::list;
    const std::string_view end = is_map ? "}" : "]";
    while (!take_symbol(end)) {
      add(*out, expression());
      if (is_map) {
        need_symbol(":");
        add(*out, expression());
      }
      if (!symbol(end)) need_symbol(",");
    }
    return out;
  }

  JinjaNodePtr postfix(JinjaNodePtr object) {
    while (true) {
      if (take_symbol(".")) {
        JinjaNodePtr out = node(Kind::attribute, need_name());
        add(*out, std::move(object));
        if (symbol("(")) {
          out->kind = Kind::method;
          arguments(*out);
        }
        object = std::move(out);
      } else if (take_symbol("[")) {
        object = subscript(std::move(object));
      } else if (symbol("(") && object->kind == Kind::name) {
        object->kind = Kind::call;
        arguments(*object);
      } else {
        return object;
      }
    }
  }

  JinjaNodePtr subscript(JinjaNodePtr object) {
    JinjaNodePtr out = node(Kind::index);
    add(*out, std::move(object));
    JinjaNodePtr from, to, step;
    if (!symbol(":")) from = expression();
    if (take_symbol("]")) {
      add(*out, std::move(from));
      return out;
    }
    need_symbol(":");
    if (!symbol(":") && !symbol("]")) to = expression();
    if (take_symbol(":") && !symbol("]")) step = expression();
    need_symbol("]");
    out->kind = Kind::slice;
    for (JinjaNodePtr* part : {&from, &to, &step}) add(*out, std::move(*part));
    return out;
  }

  void arguments(JinjaNode& call) {
    need_symbol("(");
    while (!take_symbol(")")) {
      if (next().kind == JinjaToken::Kind::name && is(JinjaToken::Kind::symbol, "=", 1)) {
        std::string name = take().text;
        take();
        add(call, node_of(Kind::keyword, std::move(name), expression()));
      } else {
        add(call, expression());
      }
      if (!symbol(")")) need_symbol(",");
    }
  }

  std::vector<JinjaToken> tokens_;
  size_t at_ = 0;
  int nested_ = 0;  ///< calls of the parser by itself
};

}  // namespace

JinjaNodePtr parse_jinja(std::string_view text) {
  return JinjaParser(read_jinja_tokens(text)).block({});
}

}  // namespace sheaf
