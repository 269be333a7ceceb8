#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/task/record.h"
#include "core/task/row.h"
#include "core/task/schema.h"

namespace sheaf {

/// A value of a run, or an answer, that a person may be asked to check.
struct ReviewValue {
  int64_t row = 0;                  ///< of the run, from 0
  std::string category, attribute;  ///< empty: an answer
  RowAnswer answer;
  size_t question = 0;  ///< of the row, from 0: which one the answer is to
};

/// How sure the model was of a value, in [0, 1]: its confidence, else the probability of what it wrote;
/// nothing where the row does not say. Of an object or a list of objects: the lowest of the values inside.
std::optional<double> sureness(const RowAnswer& answer);

/// Chooses values to check. Every attribute of every category is a stratum; answers are one. The strata take
/// turns, in an order drawn from the seed, and each gives the value that the model was least sure of. So the
/// first values of a sample are a sample too. Without confidence and log-probabilities, the seed decides. The
/// choice does not depend on the order in which values are added.
class ReviewSample {
 public:
  ReviewSample(size_t count, uint64_t seed) : count_(count), seed_(seed) {}

  /// `id`: of the record or the question, as text.
  void add(const std::string& id, ReviewValue value);
  /// At most `count` values, in the order in which to show them.
  std::vector<ReviewValue> take() &&;
  size_t strata() const { return strata_.size(); }
  /// Whether a value came with its sureness.
  bool by_sureness() const { return by_sureness_; }

 private:
  struct Candidate {
    double sure;
    uint64_t lot;  ///< drawn: decides between values of which the model was equally sure
    ReviewValue value;
    bool operator<(const Candidate& other) const;
  };

  size_t count_;
  uint64_t seed_;
  bool by_sureness_ = false;
  std::map<std::pair<std::string, std::string>, std::vector<Candidate>> strata_;  ///< heaps, the surest first
};

struct ReviewItem {
  size_t record = 0;    ///< of Review::records
  Attribute attribute;  ///< of an answer: the question, and the letters of its options
  RowAnswer answer;
  nlohmann::json question = {};           ///< an answer: the id that gold answers know the question by
  std::vector<std::string> options = {};  ///< an answer: the texts of the options
};

/// What the page shows.
struct Review {
  std::string run;          ///< name of the run's folder
  std::string key;          ///< tells the run from others; the browser keeps verdicts under it
  bool least_sure = false;  ///< the items are those of the run that the model was least sure of
  std::vector<Record> records;
  std::vector<ReviewItem> items;
};

/// A page that needs nothing but itself, on which a person judges values and downloads the verdicts as gold
/// answers (docs/review.md). Texts of the run are data and never markup: they stand in a block of JSON, and
/// the script shows them as text. Its content security policy allows the script and the style of
/// review_page.h, with these SHA-256 sums (base64), and nothing else.
std::string review_html(const Review& review, std::string_view script_sha256, std::string_view style_sha256);

}  // namespace sheaf
