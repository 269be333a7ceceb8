#include "io/run_folder/journal.h"

#include "core/text/json_reader.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

constexpr size_t kSumDigits = 16;

std::string sum_of(std::string_view object, const std::string& before) {
  return Sha256().add(before).add(object).hex().substr(0, kSumDigits);
}

}  // namespace

JournalText read_journal(std::string_view text) {
  JournalText journal;
  size_t at = 0;
  std::string before;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    journal.whole = false;
    if (end == std::string_view::npos || end - at <= kSumDigits || text[at + kSumDigits] != ' ') break;
    const std::string_view object = text.substr(at + kSumDigits + 1, end - at - kSumDigits - 1);
    JournalLine line{nullptr, std::string(text.substr(at, kSumDigits)), static_cast<int64_t>(end + 1)};
    if (line.sum != sum_of(object, before)) break;
    line.record = read_json<nlohmann::ordered_json>(object);
    if (!line.record.is_object()) break;
    before = line.sum;
    journal.lines.push_back(std::move(line));
    journal.whole = true;
    at = end + 1;
  }
  return journal;
}

std::string journal_line(const nlohmann::ordered_json& record, const std::string& before) {
  const std::string object = record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return sum_of(object, before) + ' ' + object + '\n';
}

JournalWriter::JournalWriter(FileLayer& files, const std::string& path, const JournalLine& last)
    : file_(files.open(path)), sum_(last.sum) {
  if (file_size(path) == last.end) return;
  file_->truncate(last.end);
  file_->sync();
}

void JournalWriter::append(const nlohmann::ordered_json& record) {
  const std::string line = journal_line(record, sum_);
  file_->append(line);
  file_->sync();
  sum_ = line.substr(0, kSumDigits);
}

}  // namespace sheaf
