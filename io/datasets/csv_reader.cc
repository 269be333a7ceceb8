#include "io/datasets/csv_reader.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr size_t kChunk = 256 << 10;
constexpr size_t kLongestRow = 16 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

CsvReader::CsvReader(const std::string& path, const std::string& what,
                     const std::vector<std::string>& columns)
    : path_(path), source_(open_bytes(path)), buffer_(kChunk, '\0') {
  std::vector<std::string> header;
  std::string error;
  read_row(header, error);
  if (!header.empty() && header[0].starts_with(kByteOrderMark)) header[0].erase(0, kByteOrderMark.size());
  width_ = header.size();
  for (const std::string& column : columns) {
    const auto found = std::find(header.begin(), header.end(), column);
    if (found == header.end())
      refuse("{}: this is not {}: the first line has no column \"{}\"", path, what, column);
    columns_.push_back(static_cast<size_t>(found - header.begin()));
  }
}

int CsvReader::get() {
  if (at_ == size_) {
    size_ = source_->read(buffer_.data(), buffer_.size());
    at_ = 0;
    if (size_ == 0) return -1;
  }
  const int c = static_cast<unsigned char>(buffer_[at_++]);
  if (c == '\n') ++line_;
  return c;
}

bool CsvReader::read_row(std::vector<std::string>& fields, std::string& error) {
  fields.clear();
  std::string field;
  bool quoted = false, any = false, after_quote = false;
  size_t length = 0;
  for (int c; (c = get()) >= 0;) {
    any = true;
    if (++length > kLongestRow) {
      error = fmt::format(
          "a row has more than {} MB, perhaps because a quote is not closed; the rest of the file is skipped",
          kLongestRow >> 20);
      lost_ = true;
      return true;
    }
    if (quoted) {
      if (c != '"') {
        field += static_cast<char>(c);
      } else {
        quoted = false;
        after_quote = true;
      }
    } else if (c == '"' && (after_quote || field.empty())) {
      if (after_quote) field += '"';  // a doubled quote
      quoted = true;
      after_quote = false;
    } else if (c == ',' || c == '\n') {
      if (c == '\n' && field.ends_with('\r')) field.pop_back();
      fields.push_back(std::move(field));
      field.clear();
      after_quote = false;
      if (c == '\n') return true;
    } else {
      field += static_cast<char>(c);
      after_quote = false;
    }
  }
  if (const std::string damage = source_->damage(); !damage.empty() && !lost_) {
    error = "the rest of the file cannot be read: " + damage;
    lost_ = true;
    return true;
  }
  if (quoted) error = "the file ends inside a quoted field";
  if (any) fields.push_back(std::move(field));
  return any;
}

std::optional<CsvReader::Row> CsvReader::next() {
  Row row;
  std::vector<std::string> fields;
  do {
    if (lost_) return std::nullopt;
    row.line = line_;
    if (!read_row(fields, row.error)) return std::nullopt;
  } while (row.error.empty() && fields.size() == 1 && fields[0].empty());  // a blank line
  if (!row.error.empty()) return row;
  if (fields.size() != width_) {
    row.error = fmt::format("the row has {} fields, but the header has {}", fields.size(), width_);
    return row;
  }
  for (const size_t column : columns_) {
    if (const size_t good = valid_prefix(fields[column]); good < fields[column].size())
      row.error = fmt::format("field {} is not valid UTF-8 at byte {}", column + 1, good + 1);
    row.fields.push_back(std::move(fields[column]));
  }
  return row;
}

}  // namespace sheaf
