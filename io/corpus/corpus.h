#pragma once
#include <atomic>

#include "core/job/job.h"
#include "core/task/record.h"
#include "core/task/schema.h"
#include "io/base/globs.h"
#include "io/base/scratch_file.h"

namespace sheaf {

struct PassageFiles;

/// The passages that a job with input.corpus looks questions up in.
PassageFiles passage_files(const Job& job);

/// Opens the corpus of a job and checks that the mapped columns exist (refuses with the nearest column name).
/// `schema` is null for `ask`; rows of a category it does not know are rejects, unless it has no category at
/// all.
std::unique_ptr<Corpus> open_corpus(const Job& job, const Schema* schema);

/// The rows of a corpus before row `end`.
std::unique_ptr<Corpus> first_rows(std::unique_ptr<Corpus> corpus, int64_t end);

/// The files of a corpus: those of a dataset where `format` names one, else as find_table_files() has them.
CorpusFiles find_corpus_files(const std::string& path, const std::string& format,
                              const std::string& where = {});

/// Lists the corpus of a job and keeps the list in it. What appears later is not of this corpus.
void list_corpus(Job::Input& input, const std::string& where = {});
/// The kept list of the job's corpus; looks where there is none.
CorpusFiles find_corpus_files(const Job::Input& input, const std::string& where = {});

/// Copies standard input to a file near the job's output, so that it can be read as often as a file can, and
/// puts its path, size and sum into `job`. Nothing where `stop` was set meanwhile.
std::unique_ptr<ScratchFile> copy_standard_input(Job& job, const std::atomic<bool>& stop);

/// What to tell the user where none of the first records has a category of the schema, as with a wrong
/// input.category: which ones were seen. Empty where one has, and where the corpus cannot be opened, which
/// whoever opens it for its records says better.
std::string category_notice(const Job& job, const Schema& schema);

}  // namespace sheaf
