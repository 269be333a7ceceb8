#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/report/report_html.h"
#include "core/task/record.h"
#include "core/task/row.h"
#include "io/files/score_run.h"
#include "io/run_folder/manifest.h"

namespace sheaf {

/// A run's folder, and where its corpus and its schema are now; empty: where the run found them.
struct RunPlaces {
  std::string run, input, schema;
  std::string key = {};  ///< the key of a job that names the run; empty: options of a command name all three
};

/// The report of a run; of one that is not finished, what is saved of it, and `note` is told so.
NamedReport read_run_report(std::string run, const std::function<void(const std::string& text)>& note);

/// How the values of a run are to be read.
struct RunTypes {
  std::string schema;  ///< its file; empty: not known
  std::string locale;  ///< input.locale
};

/// The types of the run in a folder. None if the folder has no manifest, its job is not an extract job, or
/// the schema is gone or has changed; of the last two `note` is told.
RunTypes types_of_run(const std::string& run, const std::function<void(const std::string& text)>& note);

/// The types of the values that are scored, by the run they are of, where the settings leave them out.
void take_types(ScoreSettings& settings, const std::function<void(const std::string& text)>& note);

/// Refuses an attribute that the schema, or one category of it, does not have. `option`: what asked for it.
void check_attribute(const char* option, const std::string& name, const Schema& schema,
                     const std::string& category = "");

/// A finished run of an extract job, or of an ask job where that is asked for, with its corpus and schema.
class FinishedRun {
 public:
  /// Refuses a run that is not finished or not of such a job, and a corpus or schema that is not the
  /// run's. With `unfinished`, a run that is not finished counts as far as it came.
  explicit FinishedRun(const RunPlaces& places, bool unfinished = false, bool or_asks = false);

  bool is_finished() const { return !manifest_.files.back().name.ends_with(".part"); }

  const Manifest& manifest() const { return manifest_; }
  const Schema& schema() const { return schema_; }
  const std::vector<std::string>& files() const { return files_; }  ///< of the corpus
  bool reads_html() const { return reads_html_; }  ///< input.html: text; the records have the tags
  const std::string& schema_path() const { return schema_path_; }  ///< empty: of an ask job
  bool asks() const { return job_.task.kind == TaskKind::ask; }
  /// Of an ask job: whether each record is one question.
  bool one_question() const { return !job_.input.question.empty(); }

  /// The records of some rows, in their order; the corpus is read again for them. `id_of` says which id a row
  /// has, where that is known: refuses a corpus that has another there.
  std::vector<Record> records(const std::set<int64_t>& rows,
                              const std::function<const std::string*(int64_t row)>& id_of) const;

 private:
  std::string run_;
  Manifest manifest_;
  Job job_;
  bool reads_html_ = false;
  std::string schema_path_;
  Schema schema_;
  std::vector<std::string> files_;
};

struct ShowSettings : RunPlaces {
  int64_t sample = 5;    ///< most rows to show
  std::string category;  ///< empty: any
  std::string where;     ///< "Brand=null" or "Brand=Acme"; empty: any row
  uint64_t seed = 0;
};

struct ShownRow {
  std::string id;
  std::string document;
  ExtractedValues values;  ///< of an ask job: answers under their questions
  bool asks = false;
};

struct ShownRows {
  std::vector<ShownRow> rows;  ///< in input order
  int64_t matching = 0;        ///< of the run's rows
  bool unfinished = false;     ///< the run is not finished: only its committed rows are known
};

/// A random sample of a run's rows, with their documents.
ShownRows show_rows(const ShowSettings& settings);

/// A row as `sheaf show --json` prints it.
nlohmann::ordered_json shown_json(const ShownRow& row);

struct ReviewSettings : RunPlaces {
  std::vector<std::string> attributes;  ///< to check; empty: all
  int64_t count = 100;                  ///< most values to check
  uint64_t seed = 0;
};

struct ReviewPage {
  std::string html;
  int64_t values = 0, records = 0;         ///< to check
  int64_t strata = 0;                      ///< attributes of categories that the run has values of
  bool by_sureness = false;                ///< the rows say how sure the model was
  std::vector<std::string> read = {};      ///< files that the page must not replace
  std::vector<std::string> repeated = {};  ///< ids of rows left out, which an earlier row has
};

/// Makes the page on which a person checks values or answers of a run. The corpus is read again for the
/// documents. Refuses a run that is not finished or not of an extract or ask job, and a corpus or schema that
/// is not the run's.
ReviewPage make_review(const ReviewSettings& settings);

}  // namespace sheaf
