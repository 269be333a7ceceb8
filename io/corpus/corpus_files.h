#pragma once
#include <string>

#include "io/base/globs.h"

namespace sheaf {

/// The files of a corpus: those of a dataset where `format` names one, else as find_table_files() has them.
CorpusFiles find_corpus_files(const std::string& path, const std::string& format,
                              const std::string& where = {});

}  // namespace sheaf
