#include "io/answers/answer_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "io/base/job_changes.h"
#include "io/base/mapped_file.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int64_t kUsualAnswer = 4096;
constexpr size_t kMostKept = 1'000'000;

struct Extent {
  int64_t position = 0, bytes = 0;
};

/// Stands before the answers of a group.
struct Head {
  std::array<char, 8> mark = {'a', 'n', 's', 'w', 'e', 'r', 's', '1'};
  Extent extent;
  std::array<uint8_t, 32> sum = {};

  std::string_view text() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
constexpr int64_t kHead = sizeof(Head);
static_assert(kHead == 56);

std::array<uint8_t, 32> sum_of(const Extent& extent, std::string_view answers) {
  return Sha256().add_raw(extent).add(answers).digest();
}

/// The answers of the group that a text begins with; nothing where no whole and undamaged one does.
std::optional<std::string_view> read_group(std::string_view text, Extent& extent) {
  Head head;
  if (text.size() < sizeof head || !text.starts_with(head.text().substr(0, head.mark.size())))
    return std::nullopt;
  std::memcpy(&head, text.data(), sizeof head);
  extent = head.extent;
  if (extent.bytes < 0 || extent.bytes > std::ssize(text) - kHead) return std::nullopt;
  const std::string_view answers = text.substr(sizeof head, static_cast<size_t>(extent.bytes));
  return sum_of(extent, answers) == head.sum ? std::optional(answers) : std::nullopt;
}

ordered_json about_file(std::string_view bytes) {
  return {{"bytes", bytes.size()}, {"sha256", sha256(bytes)}};
}

constexpr uint8_t kWatched = 0x80, kVoiced = 0x40, kInner = 0x20;
constexpr int kDeepestInner = 8;  // answers inside of answers

void append_number(uint64_t number, std::string& bytes) {
  for (; number >= 128; number >>= 7) bytes += static_cast<char>((number & 127) | 128);
  bytes += static_cast<char>(number);
}

void append_double(double value, std::string& bytes) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

std::optional<uint64_t> take_number(std::string_view& bytes) {
  uint64_t number = 0;
  for (int shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    number |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return number;
  }
  return std::nullopt;
}

bool take_double(std::string_view& bytes, double& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace

void append_answer(const Answer& answer, std::string& bytes) {
  const Answer plain;
  const bool watched = answer.null_logprob != plain.null_logprob || answer.alternative != plain.alternative ||
                       answer.null_margin != plain.null_margin;
  const bool voiced = !answer.voices.empty();
  bytes += static_cast<char>(static_cast<uint8_t>(answer.ending) | (watched ? kWatched : 0) |
                             (voiced ? kVoiced : 0) | (answer.inner.empty() ? 0 : kInner));
  append_number(answer.tokens.size(), bytes);
  for (const TokenId token : answer.tokens) append_number(static_cast<uint32_t>(token), bytes);
  for (const int32_t voice : answer.voices) append_number(static_cast<uint32_t>(voice), bytes);
  append_double(answer.logprob, bytes);
  if (watched) {
    append_double(answer.null_logprob, bytes);
    append_double(answer.alternative, bytes);
    append_double(answer.null_margin, bytes);
  }
  if (answer.inner.empty()) return;
  append_number(answer.inner.size(), bytes);
  for (const InnerAnswer& each : answer.inner) {
    append_number(static_cast<uint32_t>(each.entry), bytes);
    append_number(static_cast<uint32_t>(each.field), bytes);
    append_answer(each.answer, bytes);
  }
}

std::optional<Answer> take_answer(std::string_view& bytes, int depth) {
  if (bytes.empty() || depth > kDeepestInner) return std::nullopt;
  const auto head = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  Answer answer;
  const uint8_t ending = head & static_cast<uint8_t>(~(kWatched | kVoiced | kInner));
  if (ending > static_cast<uint8_t>(Ending::searched)) return std::nullopt;
  answer.ending = static_cast<Ending>(ending);
  const auto count = take_number(bytes);
  if (!count || *count > bytes.size()) return std::nullopt;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto token = take_number(bytes);
    if (!token || *token > static_cast<uint64_t>(std::numeric_limits<TokenId>::max())) return std::nullopt;
    answer.tokens.push_back(static_cast<TokenId>(*token));
  }
  for (uint64_t i = 0; head & kVoiced && i < *count; ++i) {
    const auto voice = take_number(bytes);
    if (!voice || *voice > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) return std::nullopt;
    answer.voices.push_back(static_cast<int32_t>(*voice));
  }
  if (!take_double(bytes, answer.logprob)) return std::nullopt;
  if (head & kWatched && !(take_double(bytes, answer.null_logprob) &&
                           take_double(bytes, answer.alternative) && take_double(bytes, answer.null_margin)))
    return std::nullopt;
  if (!(head & kInner)) return answer;
  const auto inner = take_number(bytes);
  if (!inner || *inner > bytes.size()) return std::nullopt;
  for (uint64_t i = 0; i < *inner; ++i) {
    const auto entry = take_number(bytes), field = take_number(bytes);
    constexpr uint64_t most = std::numeric_limits<int32_t>::max();
    if (!entry || !field || *entry > most || *field > most) return std::nullopt;
    auto own = take_answer(bytes, depth + 1);
    if (!own) return std::nullopt;
    answer.inner.push_back({static_cast<int32_t>(*entry), static_cast<int32_t>(*field), *std::move(own)});
  }
  return answer;
}

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
  Extent group;
  while (const auto answers = read_group(file->text().substr(static_cast<size_t>(end_)), group)) {
    if (group.position > position) return;
    const bool kept = group.position == last_;
    if (kept_.size() > kMostKept) kept_.clear();  // the rows of the older ones are written
    last_ = group.position;
    std::string_view rest = *answers;
    while (rest.size() > sizeof(AnswerKey)) {
      AnswerKey key;
      std::memcpy(key.data(), rest.data(), sizeof key);
      rest.remove_prefix(sizeof key);
      const int64_t place = end_ + kHead + group.bytes - static_cast<int64_t>(rest.size());
      if (!take_answer(rest)) return;
      if (kept) kept_.insert(key);
      if (!has(key)) table_.add(key, place);
    }
    end_ += kHead + group.bytes;
  }
}

std::optional<Answer> AnswerLog::find(const AnswerKey& key) const {
  const auto place = table_.find(key);
  if (!place) return std::nullopt;
  if (*place >= end_ + kHead) {
    std::string_view rest = std::string_view(group_).substr(static_cast<size_t>(*place - end_ - kHead));
    return take_answer(rest);
  }
  for (int64_t size = kUsualAnswer;; size *= 16) {
    std::string bytes(static_cast<size_t>(std::min(size, end_ - *place)), '\0');
    const int64_t count = read_at(reader_->number(), *place, bytes.data(), std::ssize(bytes));
    if (count < 0) fail("{}: the file cannot be read: {}", path("answers.log.part"), std::strerror(errno));
    std::string_view rest(bytes.data(), static_cast<size_t>(count));
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
  Head head;
  head.extent = {position, std::ssize(group_)};
  head.sum = sum_of(head.extent, group_);
  file_->append(std::string(head.text()) + group_);
  file_->sync();
  end_ += kHead + std::ssize(group_);
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

std::string answers_trouble(const std::string& about, const ordered_json& settings) {
  try {
    const ordered_json json = read_json<ordered_json>(about);
    if (json.at("answers") != kVersion) return "its answers are of another version of sheaf";
    if (const ordered_json& before = json.at("settings"); before != settings)
      return fmt::format("its answers cannot be used: {}", describe_changes(before, settings));
    return {};
  } catch (const ordered_json::exception&) {
    return "answers.json was not written by sheaf";
  } catch (const Error& error) {
    return error.what();
  }
}

EarlierAnswers::EarlierAnswers(const std::string& folder, const ordered_json& settings,
                               std::string& trouble) {
  const auto text = read_whole(folder + "/answers.json");
  if (!text) {
    trouble = file_size(folder + "/answers.log.part") ? "that run is not finished"
              : file_size(folder + "/_SUCCESS")       ? kNoAnswers
                                                : "the folder has no answers.json: no finished run is there";
    return;
  }
  trouble = answers_trouble(*text, settings);
  if (!trouble.empty()) return;
  try {
    const ordered_json about = read_json<ordered_json>(*text);
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

std::string merge_answers(FileLayer& files, const std::string& out, const std::vector<std::string>& runs) {
  constexpr int64_t kBetweenSyncs = int64_t{64} << 20;  // bytes
  ordered_json settings;
  for (const std::string& run : runs) {
    try {
      if (settings.is_null())
        settings = read_json<ordered_json>(read_whole(run + "/answers.json").value_or("{}")).at("settings");
    } catch (const ordered_json::exception&) {
      return fmt::format("{}: {}", run, kNoAnswers);
    } catch (const Error& error) {
      return fmt::format("{}: {}", run, error.what());
    }
    std::string trouble;
    const EarlierAnswers checked(run, settings, trouble);
    if (!trouble.empty()) return fmt::format("{}: {}", run, trouble);
  }
  AnswerLog merged(files, out, 0);
  int64_t position = 0, unwritten = 0;
  for (const std::string& run : runs) {
    const auto log = MappedFile::open(run + "/answers.log");
    std::string_view text = log->text();
    Extent group;
    while (const auto answers = read_group(text, group)) {
      text.remove_prefix(static_cast<size_t>(kHead + group.bytes));
      std::string_view rest = *answers;
      while (rest.size() > sizeof(AnswerKey)) {
        AnswerKey key;
        std::memcpy(key.data(), rest.data(), sizeof key);
        rest.remove_prefix(sizeof key);
        const auto answer = take_answer(rest);
        if (!answer) break;
        merged.add(key, *answer);
      }
      position = std::max(position, group.position);
      unwritten += group.bytes;
      if (unwritten < kBetweenSyncs) continue;
      merged.commit(position);
      unwritten = 0;
    }
  }
  merged.commit(position);
  merged.finish(settings);
  return {};
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
