#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_set>

#include "core/base/error.h"
#include "core/report/review.h"
#include "core/report/review_page.h"
#include "io/base/mapped_file.h"
#include "io/base/sha256.h"
#include "io/files/predictions.h"
#include "io/jobs/finished_run.h"
#include "io/run_folder/read_rows.h"

namespace sheaf {
namespace {

class ReviewJob {
 public:
  explicit ReviewJob(const ReviewSettings& settings)
      : settings_(settings),
        run_(settings, false, true),
        sample_(static_cast<size_t>(settings.count), settings.seed) {
    if (run_.asks() && !settings.attributes.empty())
      refuse("--attributes: {} is the run of an ask job, which has no attributes; leave the option out",
             settings.run);
    for (const std::string& name : settings.attributes) check_attribute("--attributes", name, run_.schema());
  }

  ReviewPage make() {
    choose();
    ReviewPage page;
    page.strata = static_cast<int64_t>(sample_.strata());
    page.by_sureness = sample_.by_sureness();
    fill(std::move(sample_).take());
    review_.least_sure = page.by_sureness && std::ssize(review_.items) < values_;
    page.values = std::ssize(review_.items);
    page.records = std::ssize(review_.records);
    page.repeated = std::move(repeated_);
    const std::filesystem::path folder(settings_.run);
    review_.run = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
    review_.key = sha256(run_.manifest().fingerprint.dump());
    page.html = review_html(review_, base64_sha256(kReviewScript), base64_sha256(kReviewStyle));
    page.read = run_.files();
    if (!run_.asks()) page.read.push_back(run_.schema_path());
    return page;
  }

 private:
  bool is_asked(const std::string& attribute) const {
    return settings_.attributes.empty() ||
           std::ranges::find(settings_.attributes, attribute) != settings_.attributes.end();
  }

  void choose() {
    std::unordered_set<std::string> seen;
    read_rows(settings_.run, run_.manifest(), run_.schema(), [&](Row&& row) {
      const auto number = std::ssize(ids_);
      ids_.push_back(id_text(row.id));
      if (!seen.insert(ids_.back()).second) {
        // A verdict goes by the id, so it can be about one row only.
        repeated_.push_back(ids_.back());
        return;
      }
      if (run_.asks()) return add_answers(number, row);
      auto& extracted = std::get<ExtractedValues>(row.content);
      for (auto& [name, answer] : extracted.values) {
        if (!is_asked(name)) continue;
        ++values_;
        if (!answer.logprob) answer.logprob = extracted.logprob;
        sample_.add(ids_.back(), {number, extracted.category, name, std::move(answer)});
      }
    });
    if (sample_.strata() == 0) refuse("{}: the run has no values to check", settings_.run);
  }

  void add_answers(int64_t number, Row& row) {
    const auto add = [&](const std::string& id, RowAnswer& answer, size_t question) {
      ++values_;
      sample_.add(id, {number, "", "", std::move(answer), question});
    };
    if (auto* list = std::get_if<std::vector<QuestionAnswer>>(&row.content))
      for (size_t i = 0; i < list->size(); ++i) add(id_text((*list)[i].id), (*list)[i].answer, i);
    else
      add(ids_.back(), std::get<RowAnswer>(row.content), 0);
  }

  ReviewItem answer_item(size_t place, ReviewValue value) const {
    const Record& record = review_.records[place];
    if (value.question >= record.questions.size())
      refuse(
          "{}: the corpus has fewer questions for record {} than its row has answers; run the job again with "
          "--restart",
          settings_.run, shown(id_text(record.id)));
    const Question& question = record.questions[value.question];
    ReviewItem item{place,
                    {question.text, ""},
                    std::move(value.answer),
                    run_.one_question() ? record.id : question.id,
                    question.options};
    for (size_t i = 0; i < question.options.size(); ++i) item.attribute.options.push_back(option_letter(i));
    if (!question.options.empty()) item.attribute.type = ValueType::enumeration;
    return item;
  }

  void fill(std::vector<ReviewValue> values) {
    std::map<int64_t, size_t> wanted;  // row → its record on the page
    for (const ReviewValue& value : values) wanted.emplace(value.row, wanted.size());
    std::set<int64_t> rows;
    for (const auto& [row, place] : wanted) rows.insert(row);
    std::vector<Record> records =
        run_.records(rows, [&](int64_t row) { return &ids_[static_cast<size_t>(row)]; });
    review_.records.resize(records.size());
    auto record = records.begin();
    for (const auto& [row, place] : wanted) review_.records[place] = std::move(*record++);
    for (ReviewValue& value : values) {
      if (run_.asks()) {
        review_.items.push_back(answer_item(wanted.at(value.row), std::move(value)));
        continue;
      }
      const Category* const category = run_.schema().find(value.category);
      const auto attribute = category
                                 ? std::ranges::find(category->attributes, value.attribute, &Attribute::name)
                                 : std::vector<Attribute>::const_iterator();
      if (!category || attribute == category->attributes.end())
        refuse(
            "{}: a row has the attribute {} of {}, which the schema lacks; run the job again with --restart",
            settings_.run, shown(value.attribute), shown(value.category));
      review_.items.push_back({wanted.at(value.row), *attribute, std::move(value.answer)});
    }
  }

  const ReviewSettings& settings_;
  FinishedRun run_;
  ReviewSample sample_;
  std::vector<std::string> ids_;       ///< of all rows
  std::vector<std::string> repeated_;  ///< ids of rows left out, which an earlier row has
  int64_t values_ = 0;                 ///< to choose from
  Review review_;
};

}  // namespace

ReviewPage make_review(const ReviewSettings& settings) {
  return ReviewJob(settings).make();
}

}  // namespace sheaf
