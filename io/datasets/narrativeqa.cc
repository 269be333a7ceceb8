#include <algorithm>
#include <deque>
#include <unordered_map>

#include "io/base/csv_reader.h"
#include "io/datasets/readers.h"

// NarrativeQA: qaps.csv has a question with its two answers a row, third_party/wikipedia/summaries.csv the
// summary of each story. The summaries are the contexts.

namespace sheaf {
namespace {

/// One of its files.
class Table : public CsvReader {
 public:
  /// Refuses a file that lacks one of the columns `names`; `what` says what it is then not.
  Table(const std::string& path, const std::string& what, const std::vector<std::string>& names)
      : CsvReader(path) {
    for (const std::string& column : names) {
      const auto found = std::ranges::find(columns(), column);
      if (found == columns().end())
        refuse("{}: this is not {}: the first line has no column \"{}\"", path, what, column);
      wanted_.push_back(static_cast<size_t>(found - columns().begin()));
    }
  }

  /// Of the last row, in column `column` of those that were asked for.
  std::string text(size_t column) const { return field(wanted_[column]); }

 private:
  std::vector<size_t> wanted_;  // where they stand
};

class NarrativeQaReader : public DatasetReader {
 public:
  NarrativeQaReader(const std::string& qaps, const std::string& summaries, const std::string& split)
      : qaps_(qaps),
        summaries_path_(summaries),
        split_(split),
        summaries_(summaries, "summaries.csv of NarrativeQA", {"document_id", "set", "summary"}) {
    Table rows(qaps, "qaps.csv of NarrativeQA", {"document_id", "set", "question", "answer1", "answer2"});
    while (auto row = rows.next()) {
      if (!row->error.empty()) {
        broken_.push_back({{qaps, row->line}, {}, row->error});
      } else if (rows.text(1) == split) {
        const std::string document = rows.text(0);
        Story& story = stories_[document];
        if (story.line == 0) {
          story.line = row->line;
          order_.push_back(document);
        }
        ordered_json& questions = story.questions;
        questions.push_back({{"id", fmt::format("{}/{}", document, questions.size())},
                             {"question", trimmed(rows.text(2))},
                             {"answers", {trimmed(rows.text(3)), trimmed(rows.text(4))}}});
      }
    }
    if (stories_.empty() && broken_.empty())
      refuse("{}: the file has no question of the set \"{}\"; the sets are train, valid and test", qaps,
             split);
  }

  std::optional<DatasetRow> next() override {
    if (!broken_.empty()) {
      DatasetRow row = std::move(broken_.front());
      broken_.pop_front();
      return row;
    }
    while (auto summary = summaries_.next()) {
      DatasetRow row{{summaries_path_, summary->line}, {}, summary->error};
      if (!row.error.empty()) return row;
      if (summaries_.text(1) != split_) continue;
      const std::string document = summaries_.text(0);
      const auto story = stories_.find(document);
      if (story == stories_.end() || story->second.told) {
        row.error = fmt::format("document {} has {}", document,
                                story == stories_.end() ? "no questions" : "a second summary");
        return row;
      }
      story->second.told = true;
      row.cells = {{"id", document}, {"context", trimmed(summaries_.text(2))}};
      row.cells["questions"] = std::move(story->second.questions);
      return row;
    }
    for (; missing_ < order_.size(); ++missing_) {
      Story& story = stories_[order_[missing_]];
      if (story.told) continue;
      story.told = true;
      return DatasetRow{{qaps_, story.line}, {}, fmt::format("document {} has no summary", order_[missing_])};
    }
    return std::nullopt;
  }

 private:
  struct Story {
    int64_t line = 0;  // of its first question
    ordered_json questions = ordered_json::array();
    bool told = false;
  };

  std::string qaps_, summaries_path_, split_;
  Table summaries_;
  std::unordered_map<std::string, Story> stories_;
  std::vector<std::string> order_;  // of the stories in qaps.csv
  std::deque<DatasetRow> broken_;   // rows of qaps.csv
  size_t missing_ = 0;
};

}  // namespace

std::unique_ptr<DatasetReader> open_narrativeqa(const DatasetPlace& at) {
  return std::make_unique<NarrativeQaReader>(at.files[0], at.files[1], at.options.split);
}

}  // namespace sheaf
