#include <algorithm>

#include "core/base/error.h"
#include "core/tokenizer/jinja_parser.h"

namespace sheaf {
namespace {

constexpr int kMostNesting = 40;
constexpr int kMostTreeDepth = 160;

}  // namespace

JinjaNesting::JinjaNesting(JinjaParser& parser) : parser_(parser) {
  if (parser.nested_ >= kMostNesting) not_understood(parser.next().line, "it nests too deep");
  ++parser.nested_;
}

JinjaNodePtr parse_jinja(std::string_view text) {
  return JinjaParser(read_jinja_tokens(text)).parse();
}

JinjaNodePtr JinjaParser::parse() {
  return block({});
}

JinjaNodePtr JinjaParser::node(Kind kind, std::string name) const {
  auto made = std::make_unique<JinjaNode>();
  made->kind = kind;
  made->name = std::move(name);
  made->line = next().line;
  return made;
}

void JinjaParser::add(JinjaNode& to, JinjaNodePtr part) const {
  if (part) to.depth = std::max(to.depth, part->depth + 1);
  if (to.depth > kMostTreeDepth) not_understood(next().line, "it nests too deep");
  to.parts.push_back(std::move(part));
}

bool JinjaParser::symbol(std::string_view text) const {
  return next().kind == JinjaToken::Kind::symbol && next().text == text;
}

bool JinjaParser::word(std::string_view text) const {
  return next().kind == JinjaToken::Kind::name && next().text == text;
}

bool JinjaParser::take_symbol(std::string_view text) {
  if (!symbol(text)) return false;
  take();
  return true;
}

bool JinjaParser::take_word(std::string_view text) {
  if (!word(text)) return false;
  take();
  return true;
}

void JinjaParser::need_symbol(std::string_view text) {
  if (!take_symbol(text)) unexpected(fmt::format("\"{}\"", text));
}

std::string JinjaParser::need_name() {
  if (next().kind != JinjaToken::Kind::name) unexpected("a name");
  return take().text;
}

void JinjaParser::unexpected(std::string_view wanted) const {
  const bool named = next().kind == JinjaToken::Kind::name || next().kind == JinjaToken::Kind::symbol;
  not_understood(next().line,
                 named ? fmt::format("{} is expected, not \"{}\"", wanted, next().text.substr(0, 40))
                       : fmt::format("{} is expected", wanted));
}

void JinjaParser::close() {
  if (next().kind != JinjaToken::Kind::close) unexpected("the end of the tag");
  take();
}

JinjaNodePtr JinjaParser::block(std::initializer_list<std::string_view> ends) {
  const JinjaNesting nesting(*this);
  JinjaNodePtr out = node(Kind::block);
  while (true) {
    const JinjaToken::Kind kind = next().kind;
    if (kind == JinjaToken::Kind::end) {
      if (ends.size() == 0) return out;
      not_understood(next().line, fmt::format("\"{}\" is missing", *(ends.end() - 1)));
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
      for (const std::string_view end : ends)
        if (word(end)) return out;
      statement(*out);
    }
  }
}

void JinjaParser::statement(JinjaNode& into) {
  if (take_word("set")) return add(into, set());
  if (take_word("for")) return add(into, loop());
  if (take_word("if")) return add(into, branch());
  if (take_word("macro")) return add(into, macro());
  if (take_word("generation")) {  // marks what the model says, for training
    close();
    add(into, block({"endgeneration"}));
    take();
    return close();
  }
  const std::string name = next().kind == JinjaToken::Kind::name ? next().text.substr(0, 40) : "";
  not_understood(next().line, fmt::format("the tag \"{}\" is not supported", name));
}

JinjaNodePtr JinjaParser::set() {
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
  close();
  add(*out, block({"endset"}));
  take();
  close();
  return out;
}

JinjaNodePtr JinjaParser::loop() {
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
  JinjaNodePtr body = block({"else", "endfor"});
  if (take_word("else")) {
    close();
    otherwise = block({"endfor"});
  }
  take();
  close();
  add(*out, std::move(body));
  add(*out, std::move(condition));
  add(*out, std::move(otherwise));
  return out;
}

JinjaNodePtr JinjaParser::branch() {
  JinjaNodePtr out = node(Kind::branch);
  do {
    add(*out, expression());
    close();
    add(*out, block({"elif", "else", "endif"}));
  } while (take_word("elif"));
  if (take_word("else")) {
    close();
    add(*out, block({"endif"}));
  }
  take();
  close();
  return out;
}

/// A macro may stand there; a call of it is refused.
JinjaNodePtr JinjaParser::macro() {
  JinjaNodePtr out = node(Kind::nothing, need_name());
  while (next().kind != JinjaToken::Kind::close && next().kind != JinjaToken::Kind::end) take();
  close();
  block({"endmacro"});
  take();
  close();
  return out;
}

}  // namespace sheaf
