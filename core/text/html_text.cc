#include "core/text/html_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr size_t kLongestEntity = 32, kLongestTag = 1 << 16;  // bytes

using Entity = std::pair<std::string_view, uint32_t>;
/// The named entities of HTML 4 that occur in shops' texts.
constexpr Entity kEntities[] = {
    {"amp", '&'},      {"lt", '<'},        {"gt", '>'},       {"quot", '"'},     {"apos", '\''},
    {"nbsp", ' '},     {"iexcl", 0xA1},    {"cent", 0xA2},    {"pound", 0xA3},   {"yen", 0xA5},
    {"sect", 0xA7},    {"copy", 0xA9},     {"laquo", 0xAB},   {"reg", 0xAE},     {"deg", 0xB0},
    {"plusmn", 0xB1},  {"sup2", 0xB2},     {"sup3", 0xB3},    {"micro", 0xB5},   {"middot", 0xB7},
    {"sup1", 0xB9},    {"raquo", 0xBB},    {"frac14", 0xBC},  {"frac12", 0xBD},  {"frac34", 0xBE},
    {"iquest", 0xBF},  {"Agrave", 0xC0},   {"Aacute", 0xC1},  {"Acirc", 0xC2},   {"Atilde", 0xC3},
    {"Auml", 0xC4},    {"Aring", 0xC5},    {"AElig", 0xC6},   {"Ccedil", 0xC7},  {"Egrave", 0xC8},
    {"Eacute", 0xC9},  {"Ecirc", 0xCA},    {"Euml", 0xCB},    {"Iacute", 0xCD},  {"Ntilde", 0xD1},
    {"Oacute", 0xD3},  {"Ocirc", 0xD4},    {"Ouml", 0xD6},    {"times", 0xD7},   {"Oslash", 0xD8},
    {"Uacute", 0xDA},  {"Uuml", 0xDC},     {"szlig", 0xDF},   {"agrave", 0xE0},  {"aacute", 0xE1},
    {"acirc", 0xE2},   {"atilde", 0xE3},   {"auml", 0xE4},    {"aring", 0xE5},   {"aelig", 0xE6},
    {"ccedil", 0xE7},  {"egrave", 0xE8},   {"eacute", 0xE9},  {"ecirc", 0xEA},   {"euml", 0xEB},
    {"igrave", 0xEC},  {"iacute", 0xED},   {"icirc", 0xEE},   {"iuml", 0xEF},    {"ntilde", 0xF1},
    {"ograve", 0xF2},  {"oacute", 0xF3},   {"ocirc", 0xF4},   {"otilde", 0xF5},  {"ouml", 0xF6},
    {"divide", 0xF7},  {"oslash", 0xF8},   {"ugrave", 0xF9},  {"uacute", 0xFA},  {"ucirc", 0xFB},
    {"uuml", 0xFC},    {"oelig", 0x153},   {"ndash", 0x2013}, {"mdash", 0x2014}, {"lsquo", 0x2018},
    {"rsquo", 0x2019}, {"sbquo", 0x201A},  {"ldquo", 0x201C}, {"rdquo", 0x201D}, {"bdquo", 0x201E},
    {"bull", 0x2022},  {"hellip", 0x2026}, {"prime", 0x2032}, {"Prime", 0x2033}, {"euro", 0x20AC},
    {"trade", 0x2122}, {"rarr", 0x2192},   {"minus", 0x2212}, {"le", 0x2264},    {"ge", 0x2265},
    {"thinsp", ' '},   {"ensp", ' '},      {"emsp", ' '},     {"shy", 0xAD},     {"zwnj", 0x200C}};

/// Tags whose text nobody sees.
constexpr std::string_view kUnseenTags[] = {"script", "style", "template", "head", "title", "svg", "iframe"};
/// Tags that begin and end a line.
constexpr std::string_view kLineTags[] = {
    "address", "article", "aside",   "blockquote", "br",    "caption", "dd",    "details", "div",
    "dl",      "dt",      "footer",  "form",       "h1",    "h2",      "h3",    "h4",      "h5",
    "h6",      "header",  "hr",      "li",         "main",  "nav",     "ol",    "option",  "p",
    "pre",     "section", "summary", "table",      "tbody", "tfoot",   "thead", "tr",      "ul"};

template <class List>
bool is_one_of(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != std::end(list);
}

class HtmlReader {
 public:
  explicit HtmlReader(std::string_view html) : html_(html) {}

  HtmlText read() {
    while (at_ < html_.size()) {
      if (html_[at_] == '<' && skip_tag()) continue;
      if (html_[at_] == '&' && take_entity()) continue;
      take_character();
    }
    if (!changed_) return {std::string(html_), {}};
    return std::move(out_);
  }

 private:
  enum class Gap : uint8_t { none, blank, cell, line };

  /// Characters of the original before `at_`.
  int64_t place() {
    place_ += static_cast<int64_t>(count_characters(html_.substr(counted_, at_ - counted_)));
    counted_ = at_;
    return place_;
  }

  void widen(Gap gap) { gap_ = std::max(gap_, gap); }

  /// Writes what stands between this text and the last one.
  void close_gap(int64_t original) {
    if (out_.text.empty()) gap_ = Gap::none;
    const std::string_view between = gap_ == Gap::none    ? ""
                                     : gap_ == Gap::blank ? " "
                                     : gap_ == Gap::line  ? "\n"
                                     : cells_ == 1        ? ": "
                                                          : " | ";
    if (gap_ == Gap::line) cells_ = 0;
    gap_ = Gap::none;
    if (between.empty()) return;
    out_.runs.push_back({out_.text.size(), original, 0});
    out_.text += between;
  }

  void take_character() {
    const char c = html_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
      widen(Gap::blank);
      ++at_;
      return;
    }
    const int64_t original = place();
    const bool gap = gap_ != Gap::none || broken_;
    close_gap(original);
    if (gap || out_.runs.empty()) out_.runs.push_back({out_.text.size(), original, 0});
    broken_ = false;
    do out_.text += html_[at_++];
    while (at_ < html_.size() && (static_cast<unsigned char>(html_[at_]) & 0xC0) == 0x80);
  }

  bool take_entity() {
    const size_t end = html_.find(';', at_);
    if (end == std::string_view::npos || end - at_ > kLongestEntity) return false;
    const std::string_view name = html_.substr(at_ + 1, end - at_ - 1);
    uint32_t point = 0;
    if (name.starts_with('#')) {
      const bool hex = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
      const char* first = name.data() + (hex ? 2 : 1);
      const char* last = name.data() + name.size();
      const auto [rest, error] = std::from_chars(first, last, point, hex ? 16 : 10);
      if (error != std::errc() || rest != last || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
        return false;
      if (point < ' ' || point == 0xA0) point = ' ';
    } else {
      const auto* known = std::ranges::find(kEntities, name, &Entity::first);
      if (known == std::end(kEntities)) return false;
      point = known->second;
    }
    changed_ = true;
    const int64_t original = place();
    at_ = end + 1;
    if (point == ' ') {
      widen(Gap::blank);
      broken_ = true;
      return true;
    }
    close_gap(original);
    out_.runs.push_back({out_.text.size(), original, static_cast<int64_t>(name.size()) + 2});
    append_utf8(point, out_.text);
    broken_ = true;
    return true;
  }

  /// Whether a tag, a comment or another declaration begins here; goes behind it.
  bool skip_tag() {
    const std::string_view rest = html_.substr(at_);
    size_t length = 0;
    if (rest.starts_with("<!--")) {
      length = end_of("-->", at_ + 4);
    } else if (rest.starts_with("<!") || rest.starts_with("<?")) {
      length = end_of(">", at_);
    } else {
      const bool closing = rest.starts_with("</");
      std::string name;
      for (size_t i = closing ? 2 : 1; i < rest.size() && is_letter_or_digit(rest[i]); ++i)
        name += small_letter(rest[i]);
      if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
      length = tag_end(at_);
      if (length == std::string_view::npos) return false;
      if (!closing && is_one_of(kUnseenTags, name) && html_[length - 2] != '/')
        length = end_of_element(name, length);
      if (is_one_of(kLineTags, name)) widen(Gap::line);
      if (!closing && (name == "td" || name == "th") && gap_ != Gap::line) widen(Gap::cell);
      if (closing && (name == "td" || name == "th")) ++cells_;
    }
    changed_ = broken_ = true;
    at_ = length;
    return true;
  }

  static bool is_letter_or_digit(char c) {
    const char low = small_letter(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9');
  }

  size_t end_of(std::string_view mark, size_t from) const {
    const size_t found = html_.find(mark, from);
    return found == std::string_view::npos ? html_.size() : found + mark.size();
  }

  /// Behind the ">" of a tag, whose quoted values may hold one too; npos where it does not end.
  size_t tag_end(size_t from) const {
    const size_t most = std::min(html_.size(), from + kLongestTag);
    char quote = 0;
    for (size_t i = from; i < most; ++i) {
      const char c = html_[i];
      if (quote != 0)
        quote = c == quote ? '\0' : quote;
      else if ((c == '"' || c == '\'') && html_[i - 1] == '=')
        quote = c;
      else if (c == '>')
        return i + 1;
    }
    const size_t plain = html_.substr(0, most).find('>', from);  // a quote that nobody closed
    return plain == std::string_view::npos ? plain : plain + 1;
  }

  /// Behind the tag that closes an element.
  size_t end_of_element(const std::string& name, size_t from) const {
    for (size_t at = html_.find("</", from); at != std::string_view::npos; at = html_.find("</", at + 2)) {
      const std::string_view found = html_.substr(at + 2, name.size());
      if (small_letters(std::string(found)) == name) return end_of(">", at);
    }
    return html_.size();
  }

  std::string_view html_;
  size_t at_ = 0, counted_ = 0;
  int64_t place_ = 0;  ///< characters before `counted_`
  int cells_ = 0;      ///< of the row, that ended
  Gap gap_ = Gap::none;
  bool broken_ = false;   ///< what comes next does not stand behind what came last
  bool changed_ = false;  ///< a tag or an entity was found
  HtmlText out_;
};

}  // namespace

HtmlText html_text(std::string_view html) {
  return HtmlReader(html).read();
}

OriginalPlace original_place(const std::vector<TextRun>& runs, std::string_view text, size_t begin,
                             size_t end) {
  const auto count = [&](size_t from, size_t to) {
    return static_cast<int64_t>(count_characters(text.substr(from, to - from)));
  };
  if (runs.empty()) return {count(0, begin), count(0, end)};
  const auto run_at = [&](size_t byte) -> const TextRun& {
    return *std::prev(std::ranges::upper_bound(runs, byte, {}, &TextRun::begin));
  };
  const TextRun &first = run_at(begin), &last = run_at(end - 1);
  const int64_t start = first.original + (first.length > 0 ? 0 : count(first.begin, begin));
  return {start, last.length > 0 ? last.original + last.length : last.original + count(last.begin, end)};
}

}  // namespace sheaf
