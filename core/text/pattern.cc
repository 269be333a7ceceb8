#include "core/text/pattern.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr size_t kMostSteps = 10'000;  // in an expression: the most looks at each character of a text
constexpr int kDeepest = 50;           // groups inside of groups
constexpr uint32_t kMostTimes = 1000;

}  // namespace

/// Translates an expression to steps. A piece of it is a list of steps whose targets count from its own
/// beginning, so that it can be repeated.
class PatternReader {
 public:
  explicit PatternReader(std::string_view expression) : all_(expression) {}

  std::vector<Pattern::Step> read() {
    if (valid_prefix(all_) != all_.size()) refuse("a pattern is not UTF-8");
    if (peek() == '^') ++at_;
    Piece whole = alternatives(0);
    if (at_ < all_.size()) refuse_here("an opening parenthesis is missing before this one");
    whole.push_back({Step::Kind::done});
    return whole;
  }

 private:
  using Step = Pattern::Step;
  using Piece = std::vector<Step>;

  [[noreturn]] void refuse_here(std::string_view why) const {
    refuse("pattern \"{}\", character {}: {}", all_, at_ + 1, why);
  }

  char peek() const { return at_ < all_.size() ? all_[at_] : '\0'; }
  bool take(char c) {
    if (at_ == all_.size() || all_[at_] != c) return false;
    ++at_;
    return true;
  }

  void add(Piece& to, const Piece& piece) const {
    if (to.size() + piece.size() > kMostSteps) refuse_here("the expression is too large");
    const size_t base = to.size();
    for (Step step : piece) {
      step.to += base;
      step.or_else += base;
      to.push_back(std::move(step));
    }
  }

  static Step fork(size_t to, size_t or_else) { return {Step::Kind::fork, {}, to, or_else}; }

  Piece alternatives(int depth) {
    if (depth > kDeepest) refuse_here("the groups are too deep");
    Piece all = sequence(depth);
    while (take('|')) {
      const Piece other = sequence(depth);
      Piece both = {fork(1, all.size() + 2)};
      add(both, all);
      both.push_back({Step::Kind::go, {}, all.size() + other.size() + 2});
      add(both, other);
      all = std::move(both);
    }
    return all;
  }

  Piece sequence(int depth) {
    Piece all;
    while (at_ < all_.size() && peek() != '|' && peek() != ')') {
      if (peek() == '$' && at_ + 1 == all_.size()) {
        ++at_;
        break;
      }
      add(all, repeated(one(depth)));
    }
    return all;
  }

  Piece one(int depth) {
    const char c = peek();
    if (c == '(') {
      ++at_;
      if (take('?') && !take(':')) refuse_here("only groups (…) and (?:…) can be used");
      Piece group = alternatives(depth + 1);
      if (!take(')')) refuse_here("the closing parenthesis is missing");
      return group;
    }
    if (c == '*' || c == '+' || c == '?' || c == '{')
      refuse_here(
          "it repeats what stands before it, but nothing does; to match the character itself, write \\ "
          "before it");
    if (c == '^' || c == '$') refuse_here("^ and $ can only stand at the ends; write \\ before it");
    if (c == '[') return {class_of()};
    if (c == '.') {
      ++at_;
      return {{Step::Kind::none_of, {{'\n', '\n'}}}};
    }
    if (c == '\\') return {escape()};
    return {next_character()};
  }

  Step next_character() {
    const Decoded found = decode_valid(all_.data() + at_);
    at_ += found.bytes;
    return {Step::Kind::one_of, {{found.point, found.point}}};
  }

  /// \d and the like, or a character that stands for itself.
  Step escape() {
    ++at_;
    static const std::map<char, Pattern::Ranges> classes = {
        {'d', {{'0', '9'}}},
        {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {'s', {{'\t', '\r'}, {' ', ' '}, {0xa0, 0xa0}}},
        {'t', {{'\t', '\t'}}}};
    const char c = peek();
    const bool inverts = c == 'D' || c == 'W' || c == 'S';
    if (const auto found = classes.find(static_cast<char>(inverts ? c + 32 : c)); found != classes.end()) {
      ++at_;
      return {inverts ? Step::Kind::none_of : Step::Kind::one_of, found->second};
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (at_ == all_.size() || letter) refuse_here("this escape is not known");
    return next_character();
  }

  Step class_of() {
    ++at_;
    Step step{take('^') ? Step::Kind::none_of : Step::Kind::one_of};
    for (bool first = true; first || peek() != ']'; first = false) {
      if (at_ == all_.size()) refuse_here("the closing bracket is missing");
      Step part = class_part();
      if (part.kind == Step::Kind::none_of) refuse_here("\\D, \\W and \\S cannot be used inside of brackets");
      const bool single = part.ranges.size() == 1 && part.ranges[0].first == part.ranges[0].second;
      if (single && peek() == '-' && at_ + 1 < all_.size() && all_[at_ + 1] != ']') {
        ++at_;
        const Step end = class_part();
        if (end.ranges.size() != 1 || end.ranges[0].first != end.ranges[0].second ||
            end.ranges[0].first < part.ranges[0].first)
          refuse_here("this range has no end");
        part.ranges[0].second = end.ranges[0].first;
      }
      step.ranges.insert(step.ranges.end(), part.ranges.begin(), part.ranges.end());
      if (step.ranges.size() > kMostSteps) refuse_here("the expression is too large");
    }
    ++at_;
    return step;
  }

  Step class_part() { return peek() == '\\' ? escape() : next_character(); }

  /// `{2,5}` and the like behind a piece.
  Piece repeated(Piece piece) {
    uint32_t least = 1, most = 1;
    constexpr uint32_t kNoEnd = std::numeric_limits<uint32_t>::max();
    if (take('*')) {
      least = 0;
      most = kNoEnd;
    } else if (take('+')) {
      most = kNoEnd;
    } else if (take('?')) {
      least = 0;
    } else if (take('{')) {
      least = most = times();
      if (take(',')) most = peek() == '}' ? kNoEnd : times();
      if (!take('}') || most < least) refuse_here("write it as {2}, {2,} or {2,5}");
    } else {
      return piece;
    }
    if (peek() == '?' || peek() == '+' || peek() == '*' || peek() == '{')
      refuse_here("this is repeated already; put it into parentheses");
    Piece all;
    for (uint32_t i = 0; i < least; ++i) add(all, piece);
    if (most == kNoEnd) {
      Piece loop = {fork(1, piece.size() + 2)};
      add(loop, piece);
      loop.push_back({Step::Kind::go, {}, 0});
      add(all, loop);
      return all;
    }
    for (uint32_t i = least; i < most; ++i) {
      Piece maybe = {fork(1, piece.size() + 1)};
      add(maybe, piece);
      add(all, maybe);
    }
    return all;
  }

  uint32_t times() {
    uint32_t number = 0;
    const size_t begin = at_;
    for (; peek() >= '0' && peek() <= '9' && number <= kMostTimes; ++at_)
      number = number * 10 + static_cast<uint32_t>(peek() - '0');
    if (at_ == begin) refuse_here("write it as {2}, {2,} or {2,5}");
    if (number > kMostTimes) refuse_here("at most 1000 times");
    return number;
  }

  std::string_view all_;
  size_t at_ = 0;
};

Pattern::Pattern(std::string_view expression) : text_(expression), steps_(PatternReader(expression).read()) {}

void Pattern::reach(size_t from, size_t mark, Walk& walk, std::vector<size_t>& found) const {
  walk.open.push_back(from);
  while (!walk.open.empty()) {
    const size_t at = walk.open.back();
    walk.open.pop_back();
    if (std::exchange(walk.seen[at], mark) == mark) continue;
    const Step& step = steps_[at];
    if (step.kind == Step::Kind::fork) walk.open.push_back(step.or_else);
    if (step.kind == Step::Kind::fork || step.kind == Step::Kind::go)
      walk.open.push_back(step.to);
    else
      found.push_back(at);
  }
}

bool Pattern::matches(std::string_view text) const {
  using Kind = Step::Kind;
  if (valid_prefix(text) != text.size()) return false;
  std::vector<size_t> now, next;
  Walk walk{std::vector<size_t>(steps_.size())};
  size_t mark = 1;  // one more than the character
  reach(0, mark, walk, now);
  while (!text.empty() && !now.empty()) {
    const Decoded found = decode_valid(text.data());
    text.remove_prefix(found.bytes);
    ++mark;
    next.clear();
    for (const size_t at : now) {
      const Step& step = steps_[at];
      if (step.kind == Kind::done) continue;
      const bool inside = std::ranges::any_of(step.ranges, [&](const auto& range) {
        return found.point >= range.first && found.point <= range.second;
      });
      if (inside == (step.kind == Kind::one_of)) reach(at + 1, mark, walk, next);
    }
    std::swap(now, next);
  }
  return text.empty() && std::ranges::any_of(now, [&](size_t at) { return steps_[at].kind == Kind::done; });
}

}  // namespace sheaf
