#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "core/job/job.h"
#include "core/task/record.h"
#include "core/task/schema.h"
#include "io/corpus/contexts.h"

namespace sheaf {

using Row = std::variant<Record, Reject>;

/// A column that the job names, and what it must hold.
struct MappedColumn {
  std::string name;
  std::string place;  ///< where it is named, for messages: "configs/demo.yaml:9: input.document"
  bool list = false;
  bool optional = false;  ///< rows, or whole files, may be without it
  bool request = false;   ///< of a batch file
  bool kept = false;      ///< only repeated in the row: of any type, and rows may be without it
};

/// Turns the cells of a row into a record by the column map of the job, or says why it cannot.
class RecordMapper {
 public:
  /// `schema` is null for `ask`; it must outlive the mapper. Refuses a job without a category column whose
  /// schema has several categories. `contexts`: for a job with input.context_id. Without them the mapper
  /// gathers contexts: its records have the id of the context and, where the row has it, its text.
  RecordMapper(const Job& job, const Schema* schema, std::shared_ptr<const Contexts> contexts = nullptr);

  const std::vector<MappedColumn>& columns() const { return columns_; }
  bool wants(std::string_view column) const;
  /// Whether records have no ids but their numbers.
  bool numbers_records() const { return !batch_ && input_.id.empty(); }

  /// `cells` is an object of column → value; `number` is the id where the job names no id column.
  /// `line`: the row as it is written, where that is JSON; the keys of `cells` have lost their order.
  Row map(Place place, const nlohmann::json& cells, int64_t number, std::string_view line = {}) const;

 private:
  void map_category(const nlohmann::json& cells, Record& record) const;
  void map_document(const nlohmann::json& cells, Record& record) const;
  void map_context(const nlohmann::json& cells, Record& record) const;
  void map_questions(const nlohmann::json& cells, Record& record) const;

  Job::Input input_;
  const Schema* schema_;
  std::shared_ptr<const Contexts> contexts_;
  Job::Method method_;
  bool batch_ = false;  ///< rows are requests, for task.kind chat
  bool gathers_ = false;
  std::vector<std::string> category_names_;
  std::unordered_set<std::string> categories_;  ///< of the schema
  std::vector<MappedColumn> columns_;
};

}  // namespace sheaf
