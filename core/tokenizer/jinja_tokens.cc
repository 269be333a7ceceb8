#include <algorithm>
#include <charconv>

#include "core/text/utf8.h"
#include "core/tokenizer/jinja_node.h"

namespace sheaf {
namespace {

constexpr size_t kMostTemplateBytes = 128 << 10;
constexpr std::string_view kJinjaBlanks = " \t\n\r\v\f";

bool starts_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

class JinjaLexer {
 public:
  explicit JinjaLexer(std::string_view text) {
    if (text.size() > kMostTemplateBytes)
      throw BadText(fmt::format("it has more than {} KB", kMostTemplateBytes >> 10));
    if (valid_prefix(text) != text.size()) throw BadText("it is not UTF-8");
    for (size_t i = 0; i < text.size(); ++i) {
      const bool line_end = text[i] == '\r';
      if (line_end && text.substr(i + 1).starts_with('\n')) continue;
      text_ += line_end ? '\n' : text[i];
    }
    if (text_.ends_with('\n')) text_.pop_back();
  }

  std::vector<JinjaToken> read() {
    while (at_ < text_.size()) read_text();
    add(JinjaToken::Kind::end, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  bool here(std::string_view what) const { return rest().starts_with(what); }

  void skip(size_t bytes) {
    line_ += static_cast<int>(std::ranges::count(rest().substr(0, bytes), '\n'));
    at_ += std::min(bytes, text_.size() - at_);
  }

  void add(JinjaToken::Kind kind, std::string text, int64_t number = 0) {
    tokens_.push_back({kind, std::move(text), number, line_});
  }

  /// Text up to the next tag, and the tag.
  void read_text() {
    const auto opens_tag = [this](size_t at) {
      return at + 1 < text_.size() && std::string_view("{%#").find(text_[at + 1]) != std::string_view::npos;
    };
    size_t open = text_.find('{', at_);
    while (open != std::string::npos && !opens_tag(open)) open = text_.find('{', open + 1);
    if (open == std::string::npos) {
      add(JinjaToken::Kind::text, std::string(rest()));
      skip(rest().size());
      return;
    }
    std::string_view before = std::string_view(text_).substr(at_, open - at_);
    const char tag = text_[open + 1], sign = open + 2 < text_.size() ? text_[open + 2] : ' ';
    if (sign == '-') {
      before = before.substr(0, before.find_last_not_of(kJinjaBlanks) + 1);
    } else if (sign != '+' && tag != '{') {
      // lstrip_blocks: blanks between the start of the line and a block go.
      const size_t line = before.rfind('\n') + 1;  // npos + 1 == 0
      if ((line > 0 || line_starts_) && before.find_first_not_of(kJinjaBlanks, line) == before.npos)
        before = before.substr(0, line);
    }
    if (!before.empty()) add(JinjaToken::Kind::text, std::string(before));
    skip(open - at_ + 2 + (sign == '-' || sign == '+' ? 1 : 0));
    if (tag == '#') return skip_comment();
    add(tag == '{' ? JinjaToken::Kind::open_print : JinjaToken::Kind::open_block, {});
    read_tag(tag == '{' ? "}}" : "%}");
  }

  void skip_comment() {
    const size_t close = text_.find("#}", at_);
    if (close == std::string::npos) not_understood(line_, "a comment has no end");
    const char sign = close > at_ ? text_[close - 1] : ' ';
    skip(close - at_);
    end_tag(sign, true);
  }

  /// Behind the two characters that close a tag: the white space that it takes away.
  void end_tag(char sign, bool is_block) {
    skip(2);
    const size_t from = at_;
    if (sign == '-')
      skip(std::min(rest().find_first_not_of(kJinjaBlanks), rest().size()));
    else if (is_block && sign != '+' && here("\n"))
      skip(1);
    line_starts_ = at_ > from && text_[at_ - 1] == '\n';
  }

  void read_tag(std::string_view close) {
    int open = 0;  // braces and the like
    while (true) {
      skip(std::min(rest().find_first_not_of(kJinjaBlanks), rest().size()));
      if (at_ >= text_.size()) not_understood(line_, "a tag has no end");
      const char c = text_[at_];
      if (open == 0) {
        const bool sign = (c == '-' || c == '+') && rest().substr(1).starts_with(close);
        if (sign || here(close)) {
          add(JinjaToken::Kind::close, {});
          if (sign) skip(1);
          return end_tag(sign ? c : ' ', close == "%}");
        }
      }
      if (c == '"' || c == '\'') {
        read_string(c);
      } else if (is_decimal(c)) {
        read_integer();
      } else if (starts_word(c)) {
        size_t size = 1;
        while (size < rest().size() && (starts_word(rest()[size]) || is_decimal(rest()[size]))) ++size;
        add(JinjaToken::Kind::name, std::string(rest().substr(0, size)));
        skip(size);
      } else {
        read_symbol();
        const std::string& symbol = tokens_.back().text;
        if (symbol == "(" || symbol == "[" || symbol == "{") ++open;
        if (symbol == ")" || symbol == "]" || symbol == "}") --open;
        if (open < 0) not_understood(line_, "\"{}\" closes nothing", symbol);
      }
    }
  }

  void read_symbol() {
    for (const std::string_view symbol :
         {"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
          ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ".", ":", "|"}) {
      if (!here(symbol)) continue;
      add(JinjaToken::Kind::symbol, std::string(symbol));
      return skip(symbol.size());
    }
    not_understood(line_, "a tag holds a character that is not supported");
  }

  void read_integer() {
    const size_t size = std::min(rest().find_first_not_of("0123456789"), rest().size());
    if (size > 18) not_understood(line_, "a number is too large");
    int64_t number = 0;
    std::from_chars(rest().data(), rest().data() + size, number);
    add(JinjaToken::Kind::integer, {}, number);
    skip(size);
  }

  void read_string(char quote) {
    std::string out;
    const int line = line_;
    size_t i = at_ + 1;
    for (; i < text_.size() && text_[i] != quote; ++i) {
      if (text_[i] != '\\' || i + 1 == text_.size())
        out += text_[i];
      else
        i = read_escape(i + 1, out);
    }
    if (i >= text_.size()) not_understood(line, "a string has no end");
    add(JinjaToken::Kind::string, std::move(out));
    skip(i + 1 - at_);
  }

  /// As in Python; gives where the escape ends.
  size_t read_escape(size_t at, std::string& out) const {
    const char c = text_[at];
    constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t found = letters.find(c); found != letters.npos) {
      out += meanings[found];
      return at;
    }
    if (c == '\n') return at;
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (c == 'N' || is_decimal(c)) not_understood(line_, "the escape \\{} is not supported", c);
    if (digits == 0) {
      out += '\\';
      out += c;
      return at;
    }
    uint32_t point = 0;
    const char* first = text_.data() + at + 1;
    const char* end = first + std::min(digits, text_.size() - at - 1);
    if (const auto read = std::from_chars(first, end, point, 16); read.ptr != first + digits)
      not_understood(line_, "the escape \\{} is cut", c);
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      not_understood(line_, "an escape is not a character");
    append_utf8(point, out);
    return at + digits;
  }

  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  ///< what follows the last tag starts a line
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::vector<JinjaToken> read_jinja_tokens(std::string_view text) {
  return JinjaLexer(text).read();
}

}  // namespace sheaf
