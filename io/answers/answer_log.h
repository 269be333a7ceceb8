#pragma once
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/engine/answer.h"
#include "io/answers/key_table.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"

namespace sheaf {

// An answer as bytes: one with its ending, whether it was watched and whether it has voices, the number of
// its tokens, the tokens and their voices (numbers of 7 bits a byte), its log-probability, and where it was
// watched the three of its rivals (doubles, little-endian). A usual value takes 15 to 20 bytes.

void append_answer(const Answer& answer, std::string& bytes);

/// Reads one and takes it off the front; nothing where it does not stand there whole.
std::optional<Answer> take_answer(std::string_view& bytes, int depth = 0);

/// The answers of a run, in its folder, so that a later run need not decode them again (docs/reuse.md).
///
/// answers.log: a group per window: "answers1", the corpus row after the window, the bytes that follow the
/// sum, their SHA-256 with those two numbers; then for every answer its key and its bytes. A group that ends
/// at the row of the group before it has answers of later rows. answers.table: the
/// place of every key's answer in the log. answers.json: the sums of both files, and what the answers depend
/// on beside records and questions. The table and answers.json are there once the run is finished.
class AnswerLog {
 public:
  /// Continues after the groups of an earlier session that end at `position` or before.
  /// `first`: the corpus row that the run begins at.
  AnswerLog(FileLayer& files, const std::string& folder, int64_t position, int64_t first = 0);

  bool has(const AnswerKey& key) const { return table_.find(key).has_value(); }
  std::optional<Answer> find(const AnswerKey& key) const;
  void add(const AnswerKey& key, const Answer& answer);
  /// Of a record whose row comes in a later group.
  void keep(const AnswerKey& key, const Answer& answer) { kept_answers_.emplace_back(key, answer); }
  /// Whether an earlier session kept it; true once.
  bool was_kept(const AnswerKey& key) { return kept_.erase(key) > 0; }
  /// Ends a group and makes it durable; to be called before the run folder commits its rows.
  void commit(int64_t position);
  void finish(const nlohmann::ordered_json& settings);

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void read_groups(int64_t position);
  void write_group(int64_t position);

  FileLayer& files_;
  std::string folder_;
  std::unique_ptr<OutputFile> file_;
  std::unique_ptr<Descriptor> reader_;
  KeyTable table_;
  int64_t end_ = 0;                                         ///< of the groups in the file
  int64_t last_;                                            ///< position of the last group
  std::string group_;                                       ///< of answers that are not in the file yet
  std::vector<std::pair<AnswerKey, Answer>> kept_answers_;  ///< answers that are not in the file yet
  std::unordered_set<AnswerKey, AnswerKeyHash> kept_;       ///< by earlier sessions, the last ones
};

/// Why the answers of a run whose answers.json has this text cannot be used under `settings`; empty: they
/// can.
std::string answers_trouble(const std::string& about, const nlohmann::ordered_json& settings);

inline constexpr const char* kNoAnswers =
    "that run keeps no answers: it is of an earlier version of sheaf, or was merged by one (reuse its "
    "shards)";

/// Joins the answers of finished runs with the same settings in the folder of their merge. Returns why there
/// are none to reuse; empty: there are.
std::string merge_answers(FileLayer& files, const std::string& out, const std::vector<std::string>& runs);

/// The answers of a finished run.
class EarlierAnswers {
 public:
  EarlierAnswers() = default;
  /// `trouble` says why the folder's answers cannot be used; then there are none.
  EarlierAnswers(const std::string& folder, const nlohmann::ordered_json& settings, std::string& trouble);

  bool has(const AnswerKey& key) const { return place_of(key).has_value(); }
  std::optional<Answer> find(const AnswerKey& key) const;

 private:
  std::optional<int64_t> place_of(const AnswerKey& key) const;  ///< in the log

  std::shared_ptr<const class MappedFile> log_, table_;
};

}  // namespace sheaf
