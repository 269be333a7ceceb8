#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>

#include "core/text/format.h"
#include "core/text/printable.h"
#include "io/base/descriptor.h"
#include "io/base/file_identity.h"
#include "io/base/file_layer.h"
#include "io/base/process.h"
#include "io/base/store.h"
#include "io/passages/build_index.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kBetweenTries = std::chrono::milliseconds(100);

CorpusFiles list_files(const PassageFiles& passages) {
  CorpusFiles found = find_table_files(passages.corpus, "auto", passages.where);
  if (found.format != CorpusFormat::table && found.format != CorpusFormat::jsonl)
    refuse("{}{}: passages are read from JSON lines, Parquet or Arrow files", passages.where,
           passages.corpus);
  return found;
}

json identify_files(const std::vector<std::string>& files) {
  json identities = json::array();
  const size_t folder = common_folder(files).size();
  const bool uris = is_uri(files.front());
  const std::vector<FileIdentity> objects = uris ? identify_objects(files) : std::vector<FileIdentity>();
  for (size_t i = 0; i < files.size(); ++i)
    identities.push_back({printable_line(files[i].substr(folder)),
                          json(identity_json(uris ? objects[i] : identify_file(files[i], Look::samples)))});
  return identities;
}

/// Whether the path leads to the file that is open.
bool is_at(const std::string& path, const Descriptor& file) {
  struct stat there {
  }, here{};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(file.number(), &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

/// The file that an index is made in, held by this process: whoever else wants it waits.
Descriptor hold_part(const std::string& path, const std::atomic<bool>& stop) {
  while (true) {
    Descriptor part = open_regular(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (part.number() < 0)
      refuse(
          "{}: the index of the passages cannot be written: {}; make the folder writable, or set "
          "input.corpus_index to a file in another one",
          path, std::strerror(errno));
    while (::flock(part.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR)
        refuse("{}: the file cannot be locked: {}; set input.corpus_index to a file on another disk", path,
               std::strerror(errno));
      if (stop) fail_for_now("interrupted while another process makes {}", path);
      std::this_thread::sleep_for(kBetweenTries);
    }
    // Whoever held it may have given the file its name meanwhile.
    if (is_at(path, part)) return part;
  }
}

/// Refuses a file that is no index: making one would write over it.
void check_ours(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file->text().empty() && !file->text().starts_with(kAnyIndexMagic))
    refuse(
        "{}: this is not an index of passages, and sheaf does not write over it; set input.corpus_index to "
        "another file, or remove this one",
        path);
}

/// The index at a path where it is of these files; otherwise nothing, and why not unless there is none.
std::shared_ptr<const PassageIndex> open_sound(const std::string& path, const json& files, std::string& why) {
  if (!file_size(path)) return nullptr;
  check_ours(path);
  try {
    auto index = std::make_shared<const PassageIndex>(path);
    if (index->about().is_object() && index->about().value("files", json()) == files) return index;
    why = "the passages have changed";
  } catch (const BadIndex& bad) {
    why = "the old one is of no use: " + bad.reason;
  }
  return nullptr;
}

void tell_left_out(const PassageIndex& index, const std::string& corpus, std::vector<std::string>& notices) {
  const json left_out = index.about().value("left_out", json::object());
  const json rows = left_out.value("rows", json(0));
  if (!rows.is_number_integer() || rows.get<int64_t>() <= 0) return;
  const json first = left_out.value("first", json(""));
  notices.push_back(fmt::format("{}: {} cannot be used and left out; the first: {}", corpus,
                                counted(rows.get<int64_t>(), "passage"),
                                first.is_string() ? first.get<std::string>() : ""));
}

std::shared_ptr<const PassageIndex> make_index(const PassageFiles& passages, const CorpusFiles& corpus,
                                               const json& files, const std::string& path,
                                               std::vector<std::string>& notices) {
  const std::string part_path = path + ".part";
  const Descriptor part = hold_part(part_path, *passages.stop);
  std::string why;
  if (auto index = open_sound(path, files, why)) {  // another process has just made it
    real_files().remove(part_path);
    return index;
  }
  const auto begun = std::chrono::steady_clock::now();
  PassageReader reader(corpus.files, corpus.format);
  try {
    build_index(reader, passages.corpus, {{"files", files}}, part_path, usable_cores().threads(),
                *passages.stop);
  } catch (...) {
    real_files().remove(part_path);
    throw;
  }
  if (identify_files(corpus.files) != files) {
    real_files().remove(part_path);
    fail_for_now("{}{}: its files changed while they were read; rerun the same command", passages.where,
                 passages.corpus);
  }
  real_files().rename(part_path, path);
  real_files().sync_folder(fs::path(path).parent_path().empty() ? "."
                                                                : fs::path(path).parent_path().string());
  auto index = std::make_shared<const PassageIndex>(path);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  notices.push_back(fmt::format("made the index {} of {} in {}{}", path,
                                counted(static_cast<int64_t>(index->passages()), "passage"),
                                duration_text(took.count()), why.empty() ? "" : ", because " + why));
  return index;
}

}  // namespace

std::string index_path(const PassageFiles& passages) {
  if (!passages.index.empty()) return passages.index;
  std::error_code ignored;
  if (is_uri(passages.corpus) || (has_wildcard(passages.corpus) && !fs::exists(passages.corpus, ignored)))
    refuse("{}{}: its index has no place; set input.corpus_index to a file for it", passages.where,
           passages.corpus);
  std::string path = passages.corpus;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path + ".bm25";
}

json passages_fingerprint(const PassageFiles& passages) {
  return identify_files(list_files(passages).files);
}

std::shared_ptr<const PassageIndex> open_passages(const PassageFiles& passages,
                                                  std::vector<std::string>& notices) {
  const std::string path = index_path(passages);
  const CorpusFiles corpus = list_files(passages);
  const json files = identify_files(corpus.files);
  std::string why;
  auto index = open_sound(path, files, why);
  if (!index) index = make_index(passages, corpus, files, path, notices);
  tell_left_out(*index, passages.corpus, notices);
  return index;
}

}  // namespace sheaf
