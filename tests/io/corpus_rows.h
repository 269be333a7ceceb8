#pragma once
#include <string>
#include <vector>

#include "io/corpus/corpus.h"

namespace sheaf {

inline Schema two_categories() {
  Schema schema;
  schema.categories = {{"Coffee", {{"Brand", {}, ValueType::text, {}}}},
                       {"Tea", {{"Brand", {}, ValueType::text, {}}}}};
  return schema;
}

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

struct CorpusRows {
  std::vector<Item> items;
  std::vector<Reject> rejects;
  std::vector<int64_t> order;  ///< Place::row of every row as it came
};

inline CorpusRows read_all(Corpus& corpus) {
  CorpusRows rows;
  while (auto row = corpus.next()) {
    if (auto* item = std::get_if<Item>(&*row)) {
      rows.order.push_back(item->place.row);
      rows.items.push_back(std::move(*item));
    } else {
      rows.order.push_back(std::get<Reject>(*row).place.row);
      rows.rejects.push_back(std::get<Reject>(std::move(*row)));
    }
  }
  return rows;
}

inline CorpusRows read_all(const Job& job, const Schema* schema) {
  return read_all(*open_corpus(job, schema));
}

}  // namespace sheaf
