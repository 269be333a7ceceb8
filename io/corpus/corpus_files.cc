#include "io/corpus/corpus_files.h"

#include "io/datasets/dataset.h"

namespace sheaf {

CorpusFiles find_corpus_files(const std::string& path, const std::string& format, const std::string& where) {
  if (find_dataset_format(format)) return {dataset_files(format, path, where), CorpusFormat::dataset};
  return find_table_files(path, format, where);
}

}  // namespace sheaf
