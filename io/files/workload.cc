#include "io/files/workload.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/base/json_file.h"

namespace sheaf {
namespace {

using nlohmann::json;

class WorkloadReader {
 public:
  WorkloadReader(const std::string& path, bool slots, bool apart)
      : path_(path), slots_(slots), apart_(apart) {}

  Workload read() {
    bool first = true;
    each_json_line(path_, [&](const json& row, const std::string& place) {
      if (!std::exchange(first, false)) return add_context(row);
      workload_.name = JsonFields(row, place).text("name", "workload");
      instruction_ = ids(row, "instruction_ids");
      workload_.common = static_cast<int64_t>(instruction_.size());
    });
    if (workload_.questions == 0) refuse("{}: the workload has no questions", path_);
    return std::move(workload_);
  }

 private:
  const json& member(const json& row, const char* key) const {
    const auto at = row.is_object() ? row.find(key) : row.end();
    if (at == row.end()) reject("\"{}\" is missing", key);
    return *at;
  }

  Tokens ids(const json& row, const char* key) { return ids_of(member(row, key), key); }

  Tokens ids_of(const json& array, const char* key) {
    Tokens tokens;
    if (!array.is_array()) reject("\"{}\" must be a list of token ids", key);
    for (const json& id : array) {
      if (!id.is_number_unsigned() || id > INT32_MAX - 1)
        reject("\"{}\" has an entry that is not a token id", key);
      tokens.push_back(id.get<TokenId>());
      workload_.vocab = std::max(workload_.vocab, tokens.back() + 1);
    }
    return tokens;
  }

  std::vector<Tokens> documents(const json& row, const char* key) {
    const json& list = member(row, key);
    if (!list.is_array() || list.empty() || !list.front().is_array()) return {ids_of(list, key)};
    std::vector<Tokens> documents;
    for (const json& each : list) documents.push_back(ids_of(each, key));
    return documents;
  }

  /// Ids of a question or key: an answer must have something to follow.
  Tokens prompt_ids(const json& row, const char* key) {
    Tokens tokens = ids(row, key);
    if (tokens.empty()) reject("\"{}\" is empty", key);
    return tokens;
  }

  const json& list(const json& row, const char* key) const {
    const json& value = member(row, key);
    if (!value.is_array() || value.empty()) reject("\"{}\" must be a list with at least one entry", key);
    return value;
  }

  int32_t length(const json& row, const char* key) const {
    const json& value = member(row, key);
    if (!value.is_number_unsigned() || value < 1 || value > 100000)
      reject("\"{}\" must be a whole number from 1 to 100000", key);
    return value.get<int32_t>();
  }

  RecordParts record(std::shared_ptr<const BinParts> bin, Tokens document) {
    RecordParts parts;
    parts.bin = std::move(bin);
    parts.record = static_cast<int32_t>(records_);
    parts.stream = static_cast<uint64_t>(records_++);
    parts.document = std::move(document);
    return parts;
  }

  void add_context(const json& row) {
    const std::vector<Tokens> documents = this->documents(row, "context_ids");
    Tokens context;
    for (const Tokens& each : documents) append(context, each);
    auto bin = std::make_shared<BinParts>();
    bin->instruction = instruction_;
    if (slots_) append(bin->instruction, context);
    std::vector<RecordParts> records;
    if (!slots_) records.push_back(record(bin, apart_ ? Tokens() : context));
    if (apart_ && !slots_)
      for (const Tokens& each : documents) records.back().documents.push_back({each, {}});
    for (const json& question : list(row, "questions")) {
      ++workload_.questions;
      if (slots_) {
        records.push_back(record(bin, ids(question, "ids")));
        for (const json& slot : list(question, "slots"))
          records.back().own_questions.push_back(
              {prompt_ids(slot, "key_ids"), length(slot, "value_tokens"), Stop::line, nullptr});
      } else {
        records.back().own_questions.push_back(
            {prompt_ids(question, "ids"), length(question, "answer_tokens"), Stop::line, nullptr});
      }
    }
    for (RecordParts& each : records)
      for (DocumentParts& chain : each.documents) chain.relevance.assign(each.own_questions.size(), 0.5f);
    // Contexts share the instruction and may share a prompt; with slots each context is an instruction of its
    // own.
    if (slots_ || workload_.bins.empty())
      workload_.bins.push_back(std::move(records));
    else
      for (RecordParts& each : records) workload_.bins.back().push_back(std::move(each));
  }

  const std::string& path_;
  bool slots_, apart_;
  int64_t records_ = 0;
  Tokens instruction_;
  Workload workload_;
};

}  // namespace

std::vector<ReadyRecord> workload_rows(const Workload& workload) {
  std::vector<ReadyRecord> rows;
  for (size_t bin = 0; bin < workload.bins.size(); ++bin)
    for (const RecordParts& record : workload.bins[bin]) rows.push_back({std::to_string(bin), record});
  return rows;
}

Work least_work(const Workload& workload, const LayerWindows& windows) {
  Work work;
  work.add_chain(0, workload.common, windows);
  for (const auto& bin : workload.bins) {
    const auto head = static_cast<int64_t>(bin.front().bin->instruction.size());
    work.add_chain(workload.common, head - workload.common, windows);
    for (const RecordParts& record : bin) {
      std::vector<int64_t> documents = {std::ssize(record.document)};
      for (const DocumentParts& each : record.documents) documents.push_back(std::ssize(each.tokens));
      for (const int64_t document : documents) work.add_chain(head, document, windows);
      for (const QuestionParts& question : record.questions()) {
        // The last token of an answer is picked and never computed.
        for (const int64_t document : documents)
          work.add_chain(head + document,
                         static_cast<int64_t>(question.tokens.size()) + question.max_tokens - 1, windows);
        work.picks += question.max_tokens;
      }
    }
  }
  return work;
}

Workload read_workload(const std::string& path, bool slots, bool apart) {
  return WorkloadReader(path, slots, apart).read();
}

}  // namespace sheaf
