#include "core/base/error.h"
#include "core/tokenizer/jinja_parser.h"

namespace sheaf {

JinjaNodePtr JinjaParser::binary(std::string name, JinjaNodePtr a, JinjaNodePtr b, Kind kind) const {
  JinjaNodePtr out = node(kind, std::move(name));
  add(*out, std::move(a));
  add(*out, std::move(b));
  return out;
}

JinjaNodePtr JinjaParser::expression() {
  const JinjaNesting nesting(*this);
  JinjaNodePtr out = either();
  while (take_word("if")) {
    JinjaNodePtr choice = node(Kind::choice);
    add(*choice, std::move(out));
    add(*choice, either());
    add(*choice, take_word("else") ? expression() : nullptr);
    out = std::move(choice);
  }
  return out;
}

/// An expression, or several with commas: a list.
JinjaNodePtr JinjaParser::tuple() {
  JinjaNodePtr out = expression();
  if (!symbol(",")) return out;
  JinjaNodePtr list = node(Kind::list);
  add(*list, std::move(out));
  while (take_symbol(",")) {
    if (symbol(")") || next().kind == JinjaToken::Kind::close) break;
    add(*list, expression());
  }
  return list;
}

JinjaNodePtr JinjaParser::either() {
  JinjaNodePtr out = both();
  while (take_word("or")) out = binary({}, std::move(out), both(), Kind::either);
  return out;
}

JinjaNodePtr JinjaParser::both() {
  JinjaNodePtr out = inverted();
  while (take_word("and")) out = binary({}, std::move(out), inverted(), Kind::both);
  return out;
}

JinjaNodePtr JinjaParser::inverted() {
  if (!take_word("not")) return comparison();
  const JinjaNesting nesting(*this);
  JinjaNodePtr out = node(Kind::invert);
  add(*out, inverted());
  return out;
}

JinjaNodePtr JinjaParser::comparison() {
  JinjaNodePtr out = sum();
  bool compared = false;
  while (true) {
    std::string name;
    bool inverts = false;
    for (const std::string_view each : {"==", "!=", "<=", ">=", "<", ">"})
      if (symbol(each)) name = each;
    if (word("in")) name = "in";
    if (word("not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == JinjaToken::Kind::name &&
        tokens_[at_ + 1].text == "in") {
      take();
      name = "in";
      inverts = true;
    }
    if (name.empty()) return out;
    if (compared) not_understood(next().line, "a chain of comparisons is not supported");
    compared = true;
    take();
    out = binary(name, std::move(out), sum());
    if (!inverts) continue;
    JinjaNodePtr inverted = node(Kind::invert);
    add(*inverted, std::move(out));
    out = std::move(inverted);
  }
}

JinjaNodePtr JinjaParser::sum() {
  JinjaNodePtr out = joined();
  while (symbol("+") || symbol("-")) {
    std::string name = take().text;
    out = binary(std::move(name), std::move(out), joined());
  }
  return out;
}

JinjaNodePtr JinjaParser::joined() {
  JinjaNodePtr out = product();
  while (take_symbol("~")) out = binary("~", std::move(out), product());
  return out;
}

JinjaNodePtr JinjaParser::product() {
  JinjaNodePtr out = unary();
  while (symbol("*") || symbol("/") || symbol("//") || symbol("%")) {
    std::string name = take().text;
    out = binary(std::move(name), std::move(out), unary());
  }
  return out;
}

JinjaNodePtr JinjaParser::unary(bool filters) {
  JinjaNodePtr out;
  if (take_symbol("-")) {
    const JinjaNesting nesting(*this);
    out = node(Kind::negate);
    add(*out, unary(false));
  } else {
    out = postfix(primary());
  }
  return filters ? filtered(std::move(out)) : std::move(out);
}

JinjaNodePtr JinjaParser::primary() {
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
  if (symbol("{")) return map();
  if (!take_symbol("[")) unexpected("a value");
  out->kind = Kind::list;
  while (!take_symbol("]")) {
    add(*out, expression());
    if (!symbol("]")) need_symbol(",");
  }
  return out;
}

JinjaNodePtr JinjaParser::map() {
  JinjaNodePtr out = node(Kind::map);
  need_symbol("{");
  while (!take_symbol("}")) {
    add(*out, expression());
    need_symbol(":");
    add(*out, expression());
    if (!symbol("}")) need_symbol(",");
  }
  return out;
}

JinjaNodePtr JinjaParser::postfix(JinjaNodePtr object) {
  while (true) {
    if (take_symbol(".")) {
      JinjaNodePtr out = node(Kind::attribute, need_name());
      add(*out, std::move(object));
      if (symbol("(")) {
        out->kind = Kind::method;
        arguments(*out);
      }
      object = std::move(out);
    } else if (symbol("[")) {
      object = subscript(std::move(object));
    } else if (symbol("(") && object->kind == Kind::name) {
      object->kind = Kind::call;
      arguments(*object);
    } else {
      return object;
    }
  }
}

JinjaNodePtr JinjaParser::subscript(JinjaNodePtr object) {
  need_symbol("[");
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
  add(*out, std::move(from));
  add(*out, std::move(to));
  add(*out, std::move(step));
  return out;
}

JinjaNodePtr JinjaParser::filtered(JinjaNodePtr object) {
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

JinjaNodePtr JinjaParser::test(JinjaNodePtr object) {
  const bool inverts = take_word("not");
  JinjaNodePtr out = node(Kind::test, need_name());
  add(*out, std::move(object));
  const JinjaToken::Kind kind = next().kind;
  if (symbol("(")) {
    arguments(*out);
  } else if (kind == JinjaToken::Kind::string || kind == JinjaToken::Kind::integer || symbol("[")) {
    add(*out, postfix(primary()));
  } else if (kind == JinjaToken::Kind::name && !word("and") && !word("or") && !word("else") && !word("if") &&
             !word("is") && !word("not") && !word("in")) {
    add(*out, postfix(primary()));
  }
  if (!inverts) return out;
  JinjaNodePtr inverted = node(Kind::invert);
  add(*inverted, std::move(out));
  return inverted;
}

void JinjaParser::arguments(JinjaNode& call) {
  need_symbol("(");
  while (!take_symbol(")")) {
    const bool keyword = next().kind == JinjaToken::Kind::name && at_ + 1 < tokens_.size() &&
                         tokens_[at_ + 1].kind == JinjaToken::Kind::symbol && tokens_[at_ + 1].text == "=";
    if (keyword) {
      JinjaNodePtr out = node(Kind::keyword, take().text);
      need_symbol("=");
      add(*out, expression());
      add(call, std::move(out));
    } else {
      add(call, expression());
    }
    if (!symbol(")")) need_symbol(",");
  }
}

}  // namespace sheaf
