#include "io/eval/pair_review.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/report/pair_page.h"
#include "core/report/pair_review.h"
#include "core/text/spelling.h"
#include "io/base/json_file.h"
#include "io/base/mapped_file.h"
#include "io/base/sha256.h"
#include "io/files/predictions.h"
#include "io/run_folder/read_rows.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// What names a record, or one of its questions, in both runs.
std::string item_key(const json& id, int64_t question) {
  return fmt::format("{}\x1f{}", id.dump(-1, ' ', false, json::error_handler_t::replace), question);
}

/// One record, or one question, as a run answered it.
struct Said {
  int64_t row = 0, question = -1;
  std::vector<std::pair<std::string, RowAnswer>> values;  ///< of an answer: one without a name

  uint64_t digest() const {
    ordered_json all = ordered_json::array();
    for (const auto& [name, answer] : values) all.push_back({name, value_json(answer.value)});
    return hash_text(all.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }
};

class Pair {
 public:
  explicit Pair(const PairSettings& settings)
      : settings_(settings),
        first_(settings, false, true),
        second_({settings.against, settings.input, ""}, false, true) {
    if (first_.asks() != second_.asks())
      refuse("{} is the run of {} job and {} of {} job; compare runs of one task", settings.run,
             task_name(first_), settings.against, task_name(second_));
    if (first_.asks() && !settings.attributes.empty())
      refuse("--attributes: {} is the run of an ask job, which has no attributes; leave the option out",
             settings.run);
    for (const std::string& name : settings.attributes)
      check_attribute("--attributes", name, first_.schema());
    const std::string a = digest_of(first_.manifest()), b = digest_of(second_.manifest());
    if (a == b)
      refuse("{} and {} are the same run, or hold the same rows; name two different ones", settings.run,
             settings.against);
    key_ = sha256(std::min(a, b) + std::max(a, b));
    swapped_ = b < a;
  }

  PairPage page() {
    PairPage page;
    const std::vector<std::string> chosen = choose(page);
    PairReview review{key_, settings_.seed, {}, {}};
    fill(chosen, review);
    page.items = std::ssize(review.items);
    page.html = pair_html(review, base64_sha256(kPairScript), base64_sha256(kPairStyle));
    page.other_corpus = first_.manifest().fingerprint.value("corpus", ordered_json()) !=
                        second_.manifest().fingerprint.value("corpus", ordered_json());
    page.read = first_.files();
    for (const FinishedRun* run : {&first_, &second_})
      if (!run->schema_path().empty()) page.read.push_back(run->schema_path());
    return page;
  }

  Preference count(const std::string& verdicts) {
    std::unordered_set<std::string> known;
    each_said(first_, settings_.run, [&](const std::string& key, Said&&) { known.insert(key); });
    Preference counts;
    std::map<std::string, std::string> places;
    each_json_line(verdicts, [&](const json& line, const std::string& place) {
      const JsonFields fields(line, place);
      if (fields.text("pair") != key_)
        refuse("{}: this verdict is about other runs than {} and {}; name the two runs of its page", place,
               settings_.run, settings_.against);
      const std::string seed = fields.text("seed"), verdict = fields.text("verdict");
      const json* id = fields.find("id");
      if (!id || (!id->is_string() && !id->is_number()))
        refuse("{}: the verdict has no id; leave the lines as the page saved them", place);
      const std::string key = item_key(*id, fields.integer("question", -1));
      if (!known.contains(key)) refuse("{}: {} has no row {}", place, settings_.run, shown(id_text(*id)));
      if (const auto [before, fresh] = places.emplace(key, place); !fresh)
        refuse("{}: {} has a verdict at {} already; remove one of the two lines", place, shown(id_text(*id)),
               before->second);
      add(verdict, run_is_left(key, read_seed(seed, place)), place, counts);
    });
    if (counts.judged() == 0) refuse("{}: the file has no verdicts", verdicts);
    return counts;
  }

 private:
  static const char* task_name(const FinishedRun& run) { return run.asks() ? "an ask" : "an extract"; }

  static std::string digest_of(const Manifest& manifest) {
    std::string text = manifest.fingerprint.dump();
    for (const auto& file : manifest.files) text += "\n" + file.name + " " + file.sha256;
    return sha256(text);
  }

  static uint64_t read_seed(const std::string& text, const std::string& place) {
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc() || end != text.data() + text.size())
      refuse("{}: the seed is not a whole number; leave the lines as the page saved them", place);
    return seed;
  }

  /// Whether settings.run is on the left. The order in which the runs are named changes nothing.
  bool run_is_left(const std::string& key, uint64_t seed) const {
    return first_is_left(key_, seed, key) != swapped_;
  }

  static void add(const std::string& verdict, bool run_left, const std::string& place, Preference& counts) {
    if (verdict == "left" || verdict == "right")
      ++((verdict == "left") == run_left ? counts.first : counts.second);
    else if (verdict == "both" || verdict == "neither")
      ++(verdict == "both" ? counts.both : counts.neither);
    else
      refuse("{}: the verdict must be left, right, both or neither, not {}", place, shown(verdict));
  }

  bool is_asked(const std::string& attribute) const {
    return settings_.attributes.empty() ||
           std::ranges::find(settings_.attributes, attribute) != settings_.attributes.end();
  }

  /// Every record or question of a run, the first row where several have one id.
  void each_said(const FinishedRun& run, const std::string& folder,
                 const std::function<void(const std::string& key, Said&&)>& use,
                 std::vector<std::string>* ids = nullptr,
                 std::vector<std::string>* repeated = nullptr) const {
    std::unordered_set<std::string> seen;
    int64_t number = -1;
    read_rows(folder, run.manifest(), run.schema(), [&](Row&& row) {
      ++number;
      if (ids) ids->push_back(id_text(row.id));
      if (!seen.insert(item_key(row.id, -1)).second) {
        if (repeated) repeated->push_back(id_text(row.id));
        return;
      }
      if (auto* list = std::get_if<std::vector<QuestionAnswer>>(&row.content)) {
        for (size_t i = 0; i < list->size(); ++i) {
          const auto question = static_cast<int64_t>(i);
          use(item_key(row.id, question), {number, question, {{"", std::move((*list)[i].answer)}}});
        }
        return;
      }
      Said said{number, -1, {}};
      if (auto* extracted = std::get_if<ExtractedValues>(&row.content)) {
        for (auto& [name, answer] : extracted->values)
          if (is_asked(name)) said.values.emplace_back(name, std::move(answer));
      } else {
        said.values.emplace_back("", std::move(std::get<RowAnswer>(row.content)));
      }
      use(item_key(row.id, -1), std::move(said));
    });
  }

  std::vector<std::string> choose(PairPage& page) {
    std::unordered_map<std::string, uint64_t> of_first;
    each_said(
        first_, settings_.run,
        [&](const std::string& key, Said&& said) { of_first.emplace(key, said.digest()); }, &ids_,
        &page.repeated);
    std::vector<std::pair<uint64_t, std::string>> differing;
    int64_t shared = 0;
    each_said(second_, settings_.against, [&](const std::string& key, Said&& said) {
      const auto other = of_first.find(key);
      if (other == of_first.end()) return void(++page.unshared);
      ++shared;
      if (other->second == said.digest()) return void(++page.equal);
      differing.emplace_back(mix(mix(settings_.seed, hash_text(key)), 1), key);
    });
    page.unshared += std::ssize(of_first) - shared;
    if (shared == 0)
      refuse("{} and {} have no record in common; compare runs over the same records", settings_.run,
             settings_.against);
    page.differ = std::ssize(differing);
    if (differing.empty())
      refuse(
          "{} and {} give the same answers to {}, so there is nothing to judge; compare other runs",
          settings_.run, settings_.against,
          shared == 1 ? "the one item that both have" : fmt::format("all {} items that both have", shared));
    std::ranges::sort(differing);
    if (std::ssize(differing) > settings_.count) differing.resize(static_cast<size_t>(settings_.count));
    std::vector<std::string> chosen;
    for (auto& [lot, key] : differing) chosen.push_back(std::move(key));
    return chosen;
  }

  void fill(const std::vector<std::string>& chosen, PairReview& review) const {
    std::unordered_map<std::string, std::pair<Said, Said>> said;
    for (const std::string& key : chosen) said.try_emplace(key);
    const auto keep = [&](Said std::pair<Said, Said>::*side) {
      return [&said, side](const std::string& key, Said&& value) {
        if (const auto at = said.find(key); at != said.end()) at->second.*side = std::move(value);
      };
    };
    each_said(first_, settings_.run, keep(&std::pair<Said, Said>::first));
    each_said(second_, settings_.against, keep(&std::pair<Said, Said>::second));
    std::map<int64_t, size_t> places;  // row → its record on the page
    for (const std::string& key : chosen) places.emplace(said.at(key).first.row, 0);
    std::set<int64_t> rows;
    for (auto& [row, place] : places) {
      place = rows.size();
      rows.insert(row);
    }
    review.records = first_.records(rows, [&](int64_t row) { return &ids_[static_cast<size_t>(row)]; });
    for (const std::string& key : chosen) {
      auto& [first, second] = said.at(key);
      const size_t place = places.at(first.row);
      const int64_t question = first.question;
      const bool left = run_is_left(key, settings_.seed);
      PairItem item{place, question,
                    paired(std::move(left ? first : second), std::move(left ? second : first))};
      if (first_.asks())
        item.values[0].name = question_text(review.records[place], std::max<int64_t>(question, 0));
      review.items.push_back(std::move(item));
    }
  }

  std::string question_text(const Record& record, int64_t question) const {
    if (question >= std::ssize(record.questions))
      refuse(
          "{}: the corpus has fewer questions for record {} than its row has answers; run the job again with "
          "--restart",
          settings_.run, shown(id_text(record.id)));
    return record.questions[static_cast<size_t>(question)].text;
  }

  static std::vector<PairValue> paired(Said left, Said right) {
    std::vector<PairValue> values;
    for (auto& [name, answer] : left.values) values.push_back({name, std::move(answer), std::nullopt});
    for (auto& [name, answer] : right.values) {
      const auto same = std::ranges::find(values, name, &PairValue::name);
      if (same != values.end())
        same->right = std::move(answer);
      else
        values.push_back({name, std::nullopt, std::move(answer)});
    }
    return values;
  }

  const PairSettings& settings_;
  FinishedRun first_, second_;
  std::string key_;
  bool swapped_ = false;
  std::vector<std::string> ids_;  ///< of all rows of settings.run
};

}  // namespace

PairPage make_pair_page(const PairSettings& settings) {
  return Pair(settings).page();
}

Preference count_verdicts(const PairSettings& settings, const std::string& verdicts) {
  return Pair(settings).count(verdicts);
}

}  // namespace sheaf
