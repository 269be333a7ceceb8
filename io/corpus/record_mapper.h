#pragma once
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/job/job.h"
#include "core/task/record.h"
#include "io/base/json_file.h"
#include "io/base/scratch_file.h"

namespace sheaf {

class PassageIndex;  // io/passages

using CorpusRow = std::variant<Record, Reject>;

/// The texts of contexts by their ids. They lie in a file; memory holds where, some 50 bytes an id.
class Contexts {
 public:
  /// `near`: where there is room for the file, see ScratchFile.
  explicit Contexts(const std::string& near) : file_(near) {}

  /// Keeps the first text of an id.
  void add(const nlohmann::json& id, const std::string& text, const Place& place);
  bool empty() const { return places_.empty(); }

  struct Context {
    std::string text;
    Place place;  ///< the row that gave it
  };
  std::optional<Context> find(const nlohmann::json& id) const;

 private:
  using Key = std::array<uint64_t, 2>;  ///< of the id's SHA-256, so that ids are never mistaken for another
  struct KeyHash {
    size_t operator()(const Key& key) const { return static_cast<size_t>(key[0]); }
  };
  static Key key_of(const nlohmann::json& id);

  ScratchFile file_;
  std::unordered_map<Key, int64_t, KeyHash> places_;  ///< where in the file
};

/// Reads a corpus of contexts (a RecordMapper that gathers) to its end.
std::shared_ptr<const Contexts> gather_contexts(Corpus& corpus, const std::string& near);

/// A column that the job names, and what it must hold.
struct MappedColumn {
  std::string name;
  std::string place;  ///< where it is named, for messages: "configs/demo.yaml:9: input.document"
  bool list = false;
  bool optional = false;  ///< rows, or whole files, may be without it
  bool request = false;   ///< of a batch file
  bool kept = false;      ///< only repeated in the row: of any type, and rows may be without it
  bool texts = false;     ///< a list of texts will do as well

  /// Whether the column `top` of a file holds it: it is the column, or a path into it, "seller.name".
  bool is_in(std::string_view top) const;
};

/// Turns the cells of a row into a record by the column map of the job, or says why it cannot.
class RecordMapper {
 public:
  /// `schema` is null for `ask`; it must outlive the mapper. One without categories takes every category.
  /// Refuses a job without a category column whose schema has several categories. `contexts`: for a job with
  /// input.context_id. Without them the mapper gathers contexts: its records have the id of the context and,
  /// where the row has it, its text. `passages`: of input.corpus, for a job that has one.
  RecordMapper(const Job& job, const Schema* schema, std::shared_ptr<const Contexts> contexts = nullptr,
               std::shared_ptr<Passages> passages = nullptr);

  const std::vector<MappedColumn>& columns() const { return columns_; }
  bool wants(std::string_view column) const;
  /// Whether records have no ids but their numbers.
  bool numbers_records() const { return !batch_ && input_.id.empty(); }

  /// `cells` is an object of column → value; `number` is the id where the job names no id column.
  /// `line`: the row as it is written, where that is JSON; the keys of `cells` have lost their order.
  CorpusRow map(Place place, const nlohmann::json& cells, int64_t number, std::string_view line = {}) const;

 private:
  CorpusRow map_cells(Place place, const nlohmann::json& cells, int64_t number, std::string_view line) const;
  void map_category(const nlohmann::json& cells, Record& record) const;
  void map_document(const nlohmann::json& cells, Record& record) const;
  void map_context(const nlohmann::json& cells, Record& record) const;
  void map_questions(const nlohmann::json& cells, Record& record) const;

  Job::Input input_;
  const Schema* schema_;
  std::shared_ptr<const Contexts> contexts_;
  std::shared_ptr<Passages> passages_;
  Job::Method method_;
  bool batch_ = false;  ///< rows are requests, for task.kind chat
  bool gathers_ = false;
  std::vector<std::string> category_names_;
  std::unordered_set<std::string> categories_;  ///< of the schema
  std::vector<MappedColumn> columns_;
  std::vector<std::string> fields_;  ///< columns that task.prompt names
  bool has_paths_ = false;           ///< a column may be a path into another
};

/// Reads a line of an OpenAI batch, {"custom_id", "method", "url", "body": {"messages", "max_tokens", …}}.
/// Throws BadText, with the name of the key, for what would change the answer and is not done here. `line`:
/// the row as it is written, from where the keys of an answer's schema have their order.
void map_batch_line(const nlohmann::json& cells, std::string_view line, const Job::Method& method,
                    Record& record);

/// Reads the documents of a row and how relevant each is for its questions, which are there already. Where
/// the row has no scores they are lexical. Rejects what cannot be used (BadText).
void map_documents(const nlohmann::json& cells, const Job::Input& input, Record& record);

/// Gives a record the passages that its questions find; rejects one whose questions find none.
void find_passages(const PassageIndex& passages, const Job::Input& input, Record& record);

/// Leaves the `count` documents that are most relevant to one of the questions, in the order they have.
void keep_most_relevant(size_t count, Record& record);

// Cells of a row. What cannot be used is rejected (BadText).

constexpr size_t kLongestDocument = 10 << 20;

/// The cell of a column; a missing one is rejected.
const nlohmann::json& cell(const nlohmann::json& cells, std::string_view column);
/// A column that must hold a list of 1 to `most` `things`: "questions".
const nlohmann::json& list_cell(const nlohmann::json& cells, std::string_view column, std::string_view things,
                                size_t most);
/// Text, or a number as text; anything else, and text that is too long or not UTF-8, is rejected. `what`
/// begins the reason.
std::string text_of(const nlohmann::json& value, std::string_view what);
/// As text_of(); the texts of a list are joined by line breaks.
std::string joined_text_of(const nlohmann::json& value, std::string_view what);
/// What a column of one text holds that may be a list: its only entry.
const nlohmann::json& only_entry(const nlohmann::json& value, std::string_view what);
/// Text or a number as it stands.
nlohmann::json id_of(const nlohmann::json& value, std::string_view what);
bool blank(const std::string& text);

/// The text of a cell, read as the job wants HTML to be.
HtmlText read_html(std::string text, Html html);

}  // namespace sheaf
