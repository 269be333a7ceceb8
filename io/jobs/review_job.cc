#include "io/jobs/review_job.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/report/review_html.h"
#include "core/report/review_sample.h"
#include "core/task/record.h"
#include "core/task/value.h"
#include "core/text/spelling.h"
#include "io/base/file_layer.h"
#include "io/base/list_changes.h"
#include "io/base/mapped_file.h"
#include "io/base/sha256.h"
#include "io/corpus/corpus.h"
#include "io/corpus/corpus_files.h"
#include "io/files/predictions.h"
#include "io/files/schema_file.h"
#include "io/run_folder/fingerprint.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/read_rows.h"
#include "io/run_folder/rejected_records.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

Manifest open_run(const std::string& run) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run, ignored))
    refuse("{}: no such folder; name the output folder of a run", run);
  if (!file_size(run + "/_SUCCESS"))
    refuse("{}: the folder has no finished run; finish it first (`sheaf run` resumes it)", run);
  return read_manifest(run, "run the job again with --restart");
}

/// A key of the fingerprint, which a stranger may have written.
const ordered_json& member(const ordered_json& from, const std::string& key, const std::string& run) {
  const auto at = from.is_object() ? from.find(key) : from.end();
  if (at == from.end())
    refuse("{}/manifest.json: the fingerprint lacks {}; run the job again with --restart", run, key);
  return *at;
}

/// The parts of the run's job that decide how its corpus is read.
Job job_of(const Manifest& manifest, const std::string& run) {
  const ordered_json& saved = member(manifest.fingerprint, "job", run);
  const ordered_json& input = member(saved, "input", run);
  Job job;
  job.file = run + "/manifest.json";
  try {
    const auto kind = member(member(saved, "task", run), "kind", run).get<std::string>();
    if (kind != word_of(TaskKind::extract))
      refuse("{}: this is the run of a job of task.kind {}; sheaf review shows values of extract jobs", run,
             kind);
    job.task.kind = TaskKind::extract;
    job.input.path = manifest.sources.input;
    job.input.format = member(input, "format", run).get<std::string>();
    job.input.dataset.split = member(input, "split", run).get<std::string>();
    job.input.id = member(input, "id", run).get<std::string>();
    job.input.category = member(input, "category", run).get<std::string>();
    job.input.document = member(input, "document", run).get<std::vector<std::string>>();
  } catch (const ordered_json::exception&) {
    refuse("{}: a key of the fingerprint has the wrong type; run the job again with --restart", job.file);
  }
  return job;
}

/// Sizes and sums of the files, whatever they are called and whenever they were changed.
std::vector<ordered_json> contents_of(const ordered_json& corpus) {
  std::vector<ordered_json> contents;
  for (const auto& [name, about] : corpus.items()) {
    contents.push_back(about);
    if (about.is_object()) contents.back().erase("changed");
  }
  return contents;
}

/// The sum of standard input is over all of it, however long it was.
std::vector<ordered_json> whole_file(const std::string& path) {
  Sha256 sum;
  int64_t bytes = 0;
  read_pieces(path, [&](std::string_view piece) {
    sum.add(piece);
    bytes += static_cast<int64_t>(piece.size());
  });
  return {{{"bytes", bytes}, {"sha256", sum.hex()}}};
}

/// Makes `job` read the corpus of the run, and no other.
void find_corpus(const ReviewSettings& settings, const Manifest& manifest, Job& job) {
  const ordered_json& before = member(manifest.fingerprint, "corpus", settings.run);
  const bool piped = before.size() == 1 && before.contains("-");
  if (settings.input.empty()) {
    if (piped)
      refuse("{}: the run read standard input, which is gone; name a file with the same text with --input",
             settings.run);
    if (job.input.path.empty())
      refuse("{}: the run does not say where its corpus is; name it with --input", settings.run);
    const std::string where = fmt::format("{}: the corpus of the run: ", settings.run);
    ordered_json now;
    try {
      now = corpus_fingerprint(job.input);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      refuse("{}{}; name where it is now with --input", where, error.what());
    }
    if (const auto changes = list_changes(before, now); !changes.empty())
      refuse("{}{} changed since: {}; restore it, or name a copy of what the run read with --input", where,
             job.input.path, changes[0]);
    return;
  }
  job.input.path = settings.input;
  if (piped && job.input.format == "auto") job.input.format = "jsonl";
  const auto now = piped ? whole_file(settings.input) : contents_of(corpus_fingerprint(job.input));
  if (now != contents_of(before))
    refuse("--input: {} is not what {} was run on; name the same files, in the same order", settings.input,
           settings.run);
}

Schema find_schema(const ReviewSettings& settings, const Manifest& manifest) {
  const bool named = !settings.schema.empty();
  const std::string path = named ? settings.schema : manifest.sources.schema;
  if (path.empty())
    refuse("{}: the run does not say where its schema is; name it with --schema", settings.run);
  if (!named && !file_size(path))
    refuse("{}: the schema of the run, {}, is gone; name where it is now with --schema", settings.run, path);
  if (file_fingerprint(path, false) != member(manifest.fingerprint, "schema", settings.run))
    refuse("{}: the schema changed since {} was run; restore it, or name the schema of the run with --schema",
           path, settings.run);
  return read_schema(path);
}

void check_attributes(const std::vector<std::string>& asked, const Schema& schema) {
  std::vector<std::string> known;
  for (const Category& category : schema.categories)
    for (const Attribute& attribute : category.attributes)
      if (std::ranges::find(known, attribute.name) == known.end()) known.push_back(attribute.name);
  for (const std::string& name : asked)
    if (std::ranges::find(known, name) == known.end())
      refuse("--attributes: the schema has no attribute \"{}\"{}", shorten_text(name, 60),
             suggest_spelling(name, known));
}

/// SHA-256 as a content security policy wants it.
std::string base64_sum(std::string_view text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256(text) + "0000";  // 32 bytes, filled up to 33
  std::string out;
  for (size_t i = 0; i + 3 <= hex.size(); i += 3) {
    const int bits = std::stoi(hex.substr(i, 3), nullptr, 16);
    out += kDigits[static_cast<size_t>(bits >> 6)];
    out += kDigits[static_cast<size_t>(bits & 63)];
  }
  out.resize(43);
  return out + "=";
}

class ReviewJob {
 public:
  explicit ReviewJob(const ReviewSettings& settings)
      : settings_(settings),
        manifest_(open_run(settings.run)),
        job_(job_of(manifest_, settings.run)),
        schema_(find_schema(settings, manifest_)),
        sample_(static_cast<size_t>(settings.count), settings.seed) {
    find_corpus(settings, manifest_, job_);
    files_ = find_corpus_files(job_.input.path, job_.input.format).files;
    check_attributes(settings.attributes, schema_);
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
    const std::filesystem::path folder(settings_.run);
    review_.run = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
    review_.key = sha256(manifest_.fingerprint.dump());
    page.html = review_html(review_, base64_sum(review_script()), base64_sum(review_style()));
    page.read = std::move(files_);
    page.read.push_back(settings_.schema.empty() ? manifest_.sources.schema : settings_.schema);
    return page;
  }

 private:
  bool is_asked(const std::string& attribute) const {
    return settings_.attributes.empty() ||
           std::ranges::find(settings_.attributes, attribute) != settings_.attributes.end();
  }

  void choose() {
    std::unordered_set<std::string> seen;
    read_rows(settings_.run, manifest_, schema_, [&](Row&& row) {
      const auto number = std::ssize(ids_);
      ids_.push_back(id_text(row.id));
      if (!seen.insert(ids_.back()).second)
        refuse(
            "{}: two rows have the id {}; a gold file needs ids that differ: set input.id to a column that "
            "tells records apart, and run the job again",
            settings_.run, shown(ids_.back()));
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

  /// Rows stand in the order of their records, which are more: some were rejected.
  void fill(std::vector<ReviewValue> values) {
    std::map<int64_t, size_t> wanted;  // row → its record on the page
    for (const ReviewValue& value : values) wanted.emplace(value.row, wanted.size());
    review_.records.resize(wanted.size());
    const RejectedRecords rejected(settings_.run, manifest_, files_);
    const auto corpus = open_corpus(job_, &schema_);
    corpus->skip_to(manifest_.first);
    int64_t row = 0;
    for (auto next = wanted.begin(); next != wanted.end();) {
      auto entry = corpus->next();
      auto* record = entry ? std::get_if<Record>(&*entry) : nullptr;
      if (entry && (!record || rejected.has(record->place))) continue;
      const std::string& id = ids_[static_cast<size_t>(row)];
      if (!record || valid_utf8(id_text(record->id)) != id)
        refuse(
            "{}: the corpus does not have the record {} where the run has its row; run the job again with "
            "--restart",
            settings_.run, shown(id));
      if (row++ != next->first) continue;
      review_.records[next->second] = std::move(*record);
      ++next;
    }
    for (ReviewValue& value : values) {
      const Category* const category = schema_.find(value.category);
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
  Manifest manifest_;
  Job job_;
  Schema schema_;
  ReviewSample sample_;
  std::vector<std::string> files_;  ///< of the corpus
  std::vector<std::string> ids_;    ///< of all rows
  int64_t values_ = 0;              ///< to choose from
  Review review_;
};

}  // namespace

ReviewPage make_review(const ReviewSettings& settings) {
  return ReviewJob(settings).make();
}

}  // namespace sheaf
