#pragma once
#include <memory>
#include <string>
#include <vector>

#include "io/corpus/corpus.h"
#include "io/corpus/record_mapper.h"

namespace sheaf {

/// The formats behind open_corpus.
/// `standard_input`: the file to read where `files` says "-".
std::unique_ptr<Corpus> open_jsonl_corpus(std::vector<std::string> files, RecordMapper mapper,
                                          const std::string& standard_input);
std::unique_ptr<Corpus> open_csv_corpus(std::vector<std::string> files, RecordMapper mapper,
                                        const std::string& standard_input);
std::unique_ptr<Corpus> open_parquet_corpus(std::vector<std::string> files, RecordMapper mapper);

/// Refuses a file without JSON lines whose beginning says what it is instead; messages call it `name`.
void refuse_foreign(const std::string& path, const std::string& name);

/// Refuses a mapped column that is not among `columns`, with the nearest.
void check_column(const MappedColumn& column, const std::vector<std::string>& columns,
                  const std::string& file);

}  // namespace sheaf
