#pragma once
#include <fcntl.h>
#include <string>
#include <vector>

#include "io/base/descriptor.h"
#include "io/base/table_stream.h"
#include "io/corpus/corpus.h"

namespace sheaf {

inline Schema two_categories() {
  Schema schema;
  schema.categories = {{"Coffee", {{"Brand", {}, ValueType::text, {}}}},
                       {"Tea", {{"Brand", {}, ValueType::text, {}}}}};
  return schema;
}
inline const Schema kSchema = two_categories();

inline Job extract_job(const std::string& path) {
  Job job;
  job.file = "job.yaml";
  job.input.path = path;
  job.input.id = "sku";
  job.input.category = "category";
  job.input.document = {"title", "text"};
  return job;
}

inline Job ask_job(const std::string& path) {
  Job job;
  job.file = "job.yaml";
  job.input.path = path;
  job.input.context = "context";
  job.input.questions = "questions";
  return job;
}

/// The job with its records from a file that holds a stream of Arrow's IPC format.
inline Job with_stream(Job job, const std::string& path) {
  static const std::atomic<bool> never = false;
  auto file = std::make_shared<Descriptor>(open_regular(path, O_RDONLY));
  job.input.table = std::make_shared<TableInput>(
      "the stream", [file] { return open_ipc_stream(file->number(), "the stream", never); });
  return job;
}

struct CorpusRecords {
  std::vector<Record> records;
  std::vector<Reject> rejects;
  std::vector<int64_t> order;  ///< Place::row of every row as it came
  int64_t count = 0;           ///< records, with all that a reject stands for
};

inline CorpusRecords read_all(Corpus& corpus) {
  CorpusRecords rows;
  while (auto row = corpus.next()) {
    if (auto* record = std::get_if<Record>(&*row)) {
      rows.order.push_back(record->place.row);
      ++rows.count;
      rows.records.push_back(std::move(*record));
    } else {
      rows.order.push_back(std::get<Reject>(*row).place.row);
      rows.count += std::get<Reject>(*row).records;
      rows.rejects.push_back(std::get<Reject>(std::move(*row)));
    }
  }
  return rows;
}

inline CorpusRecords read_all(const Job& job, const Schema* schema) {
  return read_all(*open_corpus(job, schema));
}

}  // namespace sheaf
