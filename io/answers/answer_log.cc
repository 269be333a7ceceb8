#include "io/answers/answer_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "io/answers/answer_bytes.h"
#include "io/base/job_changes.h"
#include "io/base/mapped_file.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::string_view kMark = "answers1";
constexpr int64_t kHead = 8 + 8 + 8 + 32;
constexpr int64_t kUsualAnswer = 4096;
constexpr size_t kMostKept = 1'000'000;

struct Head {
  int64_t position = 0, bytes = 0;
};

std::string numbers_of(const Head& head) {
  std::string text(16, '\0');
  std::memcpy(text.data(), &head.position, 8);
  std::memcpy(text.data() + 8, &head.bytes, 8);
  return text;
}

std::string group_text(const Head& head, std::string_view answers) {
  const std::string numbers = numbers_of(head);
  const auto sum = Sha256().add(numbers).add(answers).digest();
  std::string text(kMark);
  text += numbers;
  text.append(reinterpret_cast<const char*>(sum.data()), sum.size());
  return text.append(answers);
}

/// The answers of the group that a text begins with; nothing where no whole and undamaged one does.
std::optional<std::string_view> read_group(std::string_view text, Head& head) {
  if (static_cast<int64_t>(text.size()) < kHead || !text.starts_with(kMark)) return std::nullopt;
  std::memcpy(&head.position, text.data() + 8, 8);
  std::memcpy(&head.bytes, text.data() + 16, 8);
  if (head.bytes < 0 || head.bytes > static_cast<int64_t>(text.size()) - kHead) return std::nullopt;
  const std::string_view answers = text.substr(kHead, static_cast<size_t>(head.bytes));
  const auto sum = Sha256().add(numbers_of(head)).add(answers).digest();
  if (std::memcmp(sum.data(), text.data() + 24, sum.size()) != 0) return std::nullopt;
  return answers;
}

ordered_json about_file(std::string_view bytes) {
  return {{"bytes", bytes.size()}, {"sha256", sha256(bytes)}};
}

}  // namespace

AnswerLog::AnswerLog(FileLayer& files, const std::string& folder, int64_t position, int64_t first)
    : files_(files), folder_(folder), table_(folder), last_(first) {
  const std::string staged = path("answers.log.part");
  for (const char* later : {"answers.json", "answers.table"}) files_.remove(path(later));
  if (!file_size(staged) && file_size(path("answers.log"))) files_.rename(path("answers.log"), staged);
  if (file_size(staged).value_or(0) > 0) read_groups(position);
  file_ = files_.open(staged);
  file_->truncate(end_);
  file_->sync();
  files_.sync_folder(folder_);
  reader_ = std::make_unique<Descriptor>(open_regular(staged, O_RDONLY));
  if (reader_->number() < 0) refuse_unopened(staged);
}

void AnswerLog::read_groups(int64_t position) {
  const auto file = MappedFile::open(path("answers.log.part"));
  Head head;
  while (const auto answers = read_group(file->text().substr(static_cast<size_t>(end_)), head)) {
    if (head.position > position) return;
    const bool kept = head.position == last_;
    if (kept_.size() > kMostKept) kept_.clear();  // the rows of the older ones are written
    last_ = head.position;
    std::string_view rest = *answers;
    while (rest.size() > sizeof(AnswerKey)) {
      AnswerKey key;
      std::memcpy(key.data(), rest.data(), sizeof key);
      rest.remove_prefix(sizeof key);
      const int64_t place = end_ + kHead + head.bytes - static_cast<int64_t>(rest.size());
      if (!take_answer(rest)) return;
      if (kept) kept_.insert(key);
      if (!has(key)) table_.add(key, place);
    }
    end_ += kHead + head.bytes;
  }
}

std::string AnswerLog::read(int64_t at, int64_t size) const {
  std::string bytes(static_cast<size_t>(size), '\0');
  const int64_t count = read_at(reader_->number(), at, bytes.data(), size);
  if (count < 0) fail("{}: the file cannot be read: {}", path("answers.log.part"), std::strerror(errno));
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

std::optional<Answer> AnswerLog::find(const AnswerKey& key) const {
  const auto place = table_.find(key);
  if (!place) return std::nullopt;
  if (*place >= end_ + kHead) {
    std::string_view rest = std::string_view(group_).substr(static_cast<size_t>(*place - end_ - kHead));
    return take_answer(rest);
  }
  for (int64_t size = kUsualAnswer;; size *= 16) {
    const std::string bytes = read(*place, std::min(size, end_ - *place));
    std::string_view rest = bytes;
    if (std::optional<Answer> answer = take_answer(rest)) return answer;
    if (size >= end_ - *place) refuse("{}: another program changed this file", path("answers.log.part"));
  }
}

void AnswerLog::add(const AnswerKey& key, const Answer& answer) {
  if (has(key)) return;
  group_.append(reinterpret_cast<const char*>(key.data()), key.size());
  table_.add(key, end_ + kHead + static_cast<int64_t>(group_.size()));
  append_answer(answer, group_);
}

void AnswerLog::commit(int64_t position) {
  // The answers of rows stand before those of later rows, even where there are none.
  if (!group_.empty() || (!kept_answers_.empty() && position != last_)) write_group(position);
  for (const auto& [key, answer] : kept_answers_) add(key, answer);
  kept_answers_.clear();
  if (!group_.empty()) write_group(position);
}

void AnswerLog::write_group(int64_t position) {
  const std::string text = group_text({position, static_cast<int64_t>(group_.size())}, group_);
  file_->append(text);
  file_->sync();
  end_ += static_cast<int64_t>(text.size());
  group_.clear();
  last_ = position;
}

void AnswerLog::finish(const ordered_json& settings) {
  file_.reset();
  files_.rename(path("answers.log.part"), path("answers.log"));
  ScratchFile file(folder_);
  const std::span<const std::byte> packed = table_.packed(file);
  const std::string_view table(reinterpret_cast<const char*>(packed.data()), packed.size());
  write_whole(files_, folder_, "answers.table", table);
  const auto log = MappedFile::open(path("answers.log"));
  const ordered_json about{{"answers", kVersion},
                           {"values", table_.size()},
                           {"log", about_file(log->text())},
                           {"table", about_file(table)},
                           {"settings", settings}};
  write_whole(files_, folder_, "answers.json", about.dump(2) + "\n");
}

EarlierAnswers::EarlierAnswers(const std::string& folder, const ordered_json& settings,
                               std::string& trouble) {
  const std::string path = folder + "/answers.json";
  const auto text = read_whole(path);
  if (!text) {
    trouble = file_size(folder + "/answers.log.part") ? "that run is not finished"
              : file_size(folder + "/_SUCCESS")
                  ? "that run keeps no answers, because it was merged (reuse its shards, each with its own "
                    "folder) or is of an earlier version of sheaf"
                  : "the folder has no answers.json: no finished run is there";
    return;
  }
  try {
    const ordered_json about = read_json<ordered_json>(*text);
    if (about.at("answers") != kVersion) {
      trouble = "its answers are of another version of sheaf";
      return;
    }
    const ordered_json& before = about.at("settings");
    if (before != settings) {
      const std::string changes = describe_changes(before, settings);
      trouble = fmt::format("its answers cannot be used: {}", changes);
      return;
    }
    log_ = MappedFile::open(folder + "/answers.log");
    table_ = MappedFile::open(folder + "/answers.table");
    for (const auto& [name, file] : {std::pair{"log", log_}, {"table", table_}})
      if (about.at(name) != about_file(file->text())) trouble = fmt::format("answers.{} is damaged", name);
  } catch (const ordered_json::exception&) {
    trouble = "answers.json was not written by sheaf";
  } catch (const Error& error) {
    trouble = error.what();
  }
  if (!trouble.empty()) log_ = table_ = nullptr;
}

std::optional<int64_t> EarlierAnswers::place_of(const AnswerKey& key) const {
  if (!log_) return std::nullopt;
  const std::string_view log = log_->text();
  return find_packed(table_->bytes(), key, [&](int64_t place) {
    const auto at = static_cast<size_t>(place);
    return at >= key.size() && at <= log.size() &&
           std::memcmp(log.data() + at - key.size(), key.data(), key.size()) == 0;
  });
}

std::optional<Answer> EarlierAnswers::find(const AnswerKey& key) const {
  const auto place = place_of(key);
  if (!place) return std::nullopt;
  std::string_view rest = log_->text().substr(static_cast<size_t>(*place));
  return take_answer(rest);
}

}  // namespace sheaf
