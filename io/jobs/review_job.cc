#include <algorithm>
#include <filesystem>
#include <openssl/evp.h>
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

/// SHA-256 as a content security policy wants it.
std::string base64_sum(std::string_view text) {
  const std::array<uint8_t, 32> digest = Sha256().add(text).digest();
  std::string out(44, '=');
  EVP_EncodeBlock(reinterpret_cast<uint8_t*>(out.data()), digest.data(), static_cast<int>(digest.size()));
  return out;
}

class ReviewJob {
 public:
  explicit ReviewJob(const ReviewSettings& settings)
      : settings_(settings), run_(settings), sample_(static_cast<size_t>(settings.count), settings.seed) {
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
    page.html = review_html(review_, base64_sum(kReviewScript), base64_sum(kReviewStyle));
    page.read = run_.files();
    page.read.push_back(run_.schema_path());
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
