#include "io/corpus/corpus_files.h"

#include "io/datasets/dataset.h"

namespace sheaf {

CorpusFiles find_corpus_files(const std::string& path, const std::string& format, const std::string& where) {
  if (find_dataset_format(format)) return {dataset_files(format, path, where), CorpusFormat::dataset};
  return find_table_files(path, format, where);
}

void list_corpus(Job::Input& input, const std::string& where) {
  input.listing = std::make_shared<const Job::Input::Listing>(
      input.path, input.format, find_corpus_files(input.path, input.format, where).files);
}

CorpusFiles find_corpus_files(const Job::Input& input, const std::string& where) {
  const Job::Input::Listing* const kept = input.listing.get();
  if (!kept || kept->path != input.path || kept->format != input.format)
    return find_corpus_files(input.path, input.format, where);
  if (find_dataset_format(input.format)) return {kept->files, CorpusFormat::dataset};
  return {kept->files, format_of_files(kept->files, input.format, where)};
}

}  // namespace sheaf
