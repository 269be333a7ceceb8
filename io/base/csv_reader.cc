#include "io/base/csv_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/text/utf8.h"
#include "io/base/foreign_files.h"

// Our own and not Arrow's, which loses the rest of a block, or of the file, with a row whose quotes are
// wrong.
//
// Going back to the line after a broken row keeps linear time. A scan passes the end of a line only inside of
// quotes. So a later scan that comes to the end of a line before the place where an earlier one broke off is
// where that one was, and would break off at the same place: it need not go there.
//
// What was looked at of a row that is too long is let go of, and the look reaches to its end: only there is
// it known whether the row is one long row, or many behind a quote that was never closed. For the latter the
// file is read again from the second line on. A packed file has to be unpacked from its beginning for that,
// which is done a few times only; then the reject says which lines are passed over.

namespace sheaf {
namespace {

constexpr size_t kHeaderBytes = 256 << 10;  // bytes that tell the separator
constexpr int kMostUnpackedAgain = 8;
constexpr const char* kOpenQuote = "a quote is not closed";

}  // namespace

CsvReader::CsvReader(const std::string& path, const std::string& name, size_t longest_row)
    : BufferedReader(path), path_(path), longest_row_(longest_row) {
  const std::string& shown_name = name.empty() ? path : name;
  has(kHeaderBytes);
  const std::string_view first(buffer_.data(), end_);
  if (const std::string advice = describe_no_csv(shown_name, first); !advice.empty())
    refuse("{}: {}", shown_name, advice);
  if (first.starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
  if (!take_separator_line()) choose_separator(shown_name);
  read_header(shown_name);
}

bool CsvReader::has(size_t at) {
  while (begin_ + at >= end_ && !ended_) fill();
  return begin_ + at < end_;
}

/// Excel's first line "sep=;", which is no header.
bool CsvReader::take_separator_line() {
  const std::string_view start(buffer_.data() + begin_, end_ - begin_);
  const size_t end = start.find('\n');
  std::string_view line = start.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (end == std::string_view::npos || line.size() != 5 ||
      small_letters(std::string(line.substr(0, 4))) != "sep=" || line[4] == '"')
    return false;
  separator_ = line[4];
  begin_ += end + 1;
  ++line_;
  return true;
}

void CsvReader::choose_separator(const std::string& path) {
  if (unpacked_name(path).ends_with(".tsv")) {
    separator_ = '\t';
    return;
  }
  constexpr std::string_view kSeparators = ",;\t|";
  std::vector<size_t> counts(kSeparators.size());
  bool quoted = false;
  for (size_t i = begin_; i < end_ && (quoted || buffer_[i] != '\n'); ++i) {
    quoted ^= buffer_[i] == '"';
    const size_t which = quoted ? std::string_view::npos : kSeparators.find(buffer_[i]);
    if (which != std::string_view::npos) ++counts[which];
  }
  separator_ = kSeparators[static_cast<size_t>(std::ranges::max_element(counts) - counts.begin())];
}

void CsvReader::read_header(const std::string& name) {
  if (!has(0)) return;
  size_t at = 0;
  std::string wrong = scan_row(at);
  if (wrong.empty() && too_long_) wrong = too_long_text();
  if (!source_->damage().empty() && (!wrong.empty() || buffer_[begin_ + length_ - 1] != '\n')) {
    length_ = 0;
    begin_ = end_;  // next() tells of the damage
    return;
  }
  if (!wrong.empty()) refuse("{}: the first line is not the header of a CSV file: {}", name, wrong);
  const size_t good = valid_prefix(row());
  if (good < length_)
    refuse("{}: the header is not valid UTF-8 at byte {}; if the file is Windows-1252, {}", name, good + 1,
           convert_text(name, "WINDOWS-1252"));
  if (row().find('\r') < length_ - 1 && row().find('\n') == std::string_view::npos)
    refuse("{}: the lines end in CR without LF; {}", name, convert_line_ends(name));
  for (size_t i = 0; i < fields_.size(); ++i) columns_.push_back(field(i));
  pass_row();
}

std::string CsvReader::too_long_text() const {
  return fmt::format("the row has more than {} MB, the most that sheaf reads of one; shorten it, or split it",
                     longest_row_ >> 20);
}

/// Of a row that is too long. What is wrong where reading cannot continue: a header has to be held.
std::string CsvReader::let_go(size_t& at) {
  if (at <= longest_row_) return {};
  if (columns_.empty()) return too_long_text();
  const std::string_view passed(buffer_.data() + begin_, at);
  if (const size_t end = passed.find('\n'); second_line_ < 0 && end != std::string_view::npos)
    second_line_ = filled_ - static_cast<int64_t>(end_ - begin_ - end) + 1;
  line_ += std::ranges::count(passed, '\n');
  begin_ += at;
  at = 0;
  too_long_ = true;
  fields_let_go_ += fields_.size();
  fields_.clear();
  return {};
}

std::string CsvReader::scan_quoted(size_t& at) {
  const size_t begin = ++at;
  for (;;) {
    if (!has(at)) return kOpenQuote;
    if (std::string wrong = let_go(at); !wrong.empty()) return wrong;
    const char* from = buffer_.data() + begin_ + at;
    const size_t have = end_ - begin_ - at;
    if (offset_of(at) < broken_until_) {
      const auto before = static_cast<size_t>(broken_until_ - offset_of(at));
      if (const void* end = std::memchr(from, '\n', std::min(have, before));
          end && !std::memchr(from, '"', static_cast<size_t>(static_cast<const char*>(end) - from)))
        return kOpenQuote;
    }
    const void* quote = std::memchr(from, '"', have);
    at += quote ? static_cast<size_t>(static_cast<const char*>(quote) - from) : have;
    if (!quote) continue;
    if (!has(at + 1) || buffer_[begin_ + at + 1] != '"') break;
    at += 2;
  }
  fields_.push_back({begin, at, true});
  ++at;
  // A carriage return belongs to the line end.
  if (has(at) && buffer_[begin_ + at] == '\r' && (!has(at + 1) || buffer_[begin_ + at + 1] == '\n')) ++at;
  const char next = has(at) ? buffer_[begin_ + at] : '\n';
  if (next != '\n' && next != separator_)
    return fmt::format("text follows the closing quote of field {}; quotes in a quoted field are doubled",
                       fields_let_go_ + fields_.size());
  return {};
}

std::string CsvReader::scan_plain(size_t& at) {
  const size_t begin = at;
  while (has(at)) {
    if (std::string wrong = let_go(at); !wrong.empty()) return wrong;
    const char* from = buffer_.data() + begin_ + at;
    const size_t have = end_ - begin_ - at;
    size_t plain = 0;
    while (plain < have && from[plain] != separator_ && from[plain] != '\n') ++plain;
    at += plain;
    if (plain < have) break;
  }
  const bool ends = !has(at) || buffer_[begin_ + at] == '\n';
  fields_.push_back({begin, at, false});
  if (ends && at > begin && buffer_[begin_ + at - 1] == '\r') --fields_.back().end;
  return {};
}

std::string CsvReader::scan_row(size_t& at) {
  fields_.clear();
  fields_let_go_ = 0;
  too_long_ = false;
  second_line_ = -1;
  for (at = 0;; ++at) {
    const bool quoted = has(at) && buffer_[begin_ + at] == '"';
    if (std::string wrong = quoted ? scan_quoted(at) : scan_plain(at); !wrong.empty()) return wrong;
    if (has(at) && buffer_[begin_ + at] == separator_) continue;
    too_long_ = too_long_ || at > longest_row_;
    length_ = at + (has(at) ? 1 : 0);
    return {};
  }
}

std::string CsvReader::check_row() const {
  if (fields_.size() != columns_.size())
    return fmt::format("the row has {} field{}, but the header has {}", fields_.size(),
                       fields_.size() == 1 ? "" : "s", columns_.size());
  if (const size_t good = valid_prefix(row()); good < length_)
    return fmt::format("not valid UTF-8 at byte {}", good + 1);
  return {};
}

void CsvReader::pass_row() {
  line_ += std::ranges::count(row(), '\n');
  begin_ += length_;
  length_ = 0;
}

void CsvReader::pass_line() {
  ++line_;
  for (;;) {
    const char* from = buffer_.data() + begin_;
    const void* end = std::memchr(from, '\n', end_ - begin_);
    begin_ = end ? begin_ + static_cast<size_t>(static_cast<const char*>(end) - from) + 1 : end_;
    if (end || !has(0)) return;
  }
}

/// Reads on from an offset, where a line begins. False where that would take too long.
bool CsvReader::go_back(int64_t offset, int64_t line) {
  if (!source_->seek(offset)) {
    if (unpacked_again_ == kMostUnpackedAgain) return false;
    ++unpacked_again_;
    source_ = open_bytes(path_);
    for (int64_t left = offset; left > 0;) {
      const size_t count = source_->read(buffer_.data(), std::min(buffer_.size(), static_cast<size_t>(left)));
      if (count == 0) refuse("{}: the file was cut while sheaf read it; run the command again", path_);
      left -= static_cast<int64_t>(count);
    }
  }
  begin_ = end_ = 0;
  filled_ = offset;
  ended_ = false;
  line_ = line;
  return true;
}

/// Goes to the line after that in which a broken row begins. `at`: where it was found to be broken.
void CsvReader::pass_broken(size_t at, Row& broken) {
  broken_until_ = std::max(broken_until_, offset_of(std::min(at, end_ - begin_)));
  if (second_line_ < 0) return pass_line();
  if (go_back(second_line_, broken.line + 1)) return;
  at = std::min(at, end_ - begin_);
  line_ += std::count(buffer_.data() + begin_, buffer_.data() + begin_ + at, '\n');
  begin_ += at;
  pass_line();
  broken.error += fmt::format(
      "; lines {} to {} are skipped, because sheaf goes back at most {} times in a compressed file: unpack "
      "it, or close the quote",
      broken.line + 1, line_ - 1, kMostUnpackedAgain);
}

std::optional<CsvReader::Row> CsvReader::next() {
  for (;;) {
    pass_row();
    const bool any = has(0);
    if (!any && source_->damage().empty()) return std::nullopt;
    size_t at = 0;
    Row found{line_, {}, false};
    if (any) found.error = scan_row(at);
    if (!found.error.empty()) {
      pass_broken(at, found);
      return found;
    }
    if (any && too_long_) {
      found.error = too_long_text();
      return found;
    }
    if (!source_->damage().empty() && (!any || buffer_[begin_ + length_ - 1] != '\n')) {
      if (std::exchange(told_, true)) return std::nullopt;
      found.error = "the rest of the file cannot be read: " + source_->damage();
      found.damaged = true;
      return found;
    }
    if (fields_.size() == 1 && row().find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
    found.error = check_row();
    return found;
  }
}

std::string CsvReader::field(size_t column) const {
  const Field& place = fields_.at(column);
  const std::string_view written = row().substr(place.begin, place.end - place.begin);
  if (!place.quoted) return std::string(written);
  std::string text;
  for (size_t at = 0; at < written.size(); ++at) {
    text += written[at];
    if (written[at] == '"') ++at;  // the second of two
  }
  return text;
}

}  // namespace sheaf
