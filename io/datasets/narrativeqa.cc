#include <deque>
#include <unordered_map>

#include "core/base/error.h"
#include "io/datasets/csv_reader.h"
#include "io/datasets/entry.h"
#include "io/datasets/readers.h"

// NarrativeQA: qaps.csv has a question with its two answers a row, third_party/wikipedia/summaries.csv the
// summary of each story. The summaries are the contexts.

namespace sheaf {
namespace {

using nlohmann::ordered_json;

class NarrativeQaReader : public DatasetReader {
 public:
  NarrativeQaReader(const std::string& qaps, const std::string& summaries, const std::string& split)
      : qaps_(qaps),
        summaries_path_(summaries),
        split_(split),
        summaries_(summaries, "summaries.csv of NarrativeQA", {"document_id", "set", "summary"}) {
    CsvReader rows(qaps, "qaps.csv of NarrativeQA", {"document_id", "set", "question", "answer1", "answer2"});
    while (auto row = rows.next()) {
      if (!row->error.empty()) {
        broken_.push_back({{qaps, row->line}, {}, row->error});
      } else if (row->fields[1] == split) {
        Story& story = stories_[row->fields[0]];
        if (story.line == 0) {
          story.line = row->line;
          order_.push_back(row->fields[0]);
        }
        ordered_json& questions = story.questions;
        questions.push_back({{"id", fmt::format("{}/{}", row->fields[0], questions.size())},
                             {"question", trimmed(row->fields[2])},
                             {"answers", {trimmed(row->fields[3]), trimmed(row->fields[4])}}});
      }
    }
    if (stories_.empty() && broken_.empty())
      refuse("{}: the file has no question of the set \"{}\"; the sets are train, valid and test", qaps,
             split);
  }

  std::optional<DatasetRow> next() override {
    if (!broken_.empty()) return take_broken();
    while (auto summary = summaries_.next()) {
      DatasetRow row{{summaries_path_, summary->line}, {}, summary->error};
      if (!row.error.empty()) return row;
      if (summary->fields[1] != split_) continue;
      const auto story = stories_.find(summary->fields[0]);
      if (story == stories_.end() || story->second.told) {
        row.error = fmt::format("document {} has {}", summary->fields[0],
                                story == stories_.end() ? "no questions" : "a second summary");
        return row;
      }
      story->second.told = true;
      row.cells = {{"id", summary->fields[0]}, {"context", trimmed(summary->fields[2])}};
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

  DatasetRow take_broken() {
    DatasetRow row = std::move(broken_.front());
    broken_.pop_front();
    return row;
  }

  std::string qaps_, summaries_path_, split_;
  CsvReader summaries_;
  std::unordered_map<std::string, Story> stories_;
  std::vector<std::string> order_;  // of the stories in qaps.csv
  std::deque<DatasetRow> broken_;   // rows of qaps.csv
  size_t missing_ = 0;
};

}  // namespace

std::unique_ptr<DatasetReader> open_narrativeqa(const std::string& qaps, const std::string& summaries,
                                                const std::string& split) {
  return std::make_unique<NarrativeQaReader>(qaps, summaries, split);
}

}  // namespace sheaf
