#pragma once
#include <string>

#include "core/job/job.h"
#include "io/base/globs.h"

namespace sheaf {

/// The files of a corpus: those of a dataset where `format` names one, else as find_table_files() has them.
CorpusFiles find_corpus_files(const std::string& path, const std::string& format,
                              const std::string& where = {});

/// Lists the corpus of a job and keeps the list in it. What appears later is not of this corpus.
void list_corpus(Job::Input& input, const std::string& where = {});
/// The kept list of the job's corpus; looks where there is none.
CorpusFiles find_corpus_files(const Job::Input& input, const std::string& where = {});

}  // namespace sheaf
