#include "io/workload.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace sheaf {
namespace {

using nlohmann::json;

class WorkloadReader {
 public:
  WorkloadReader(const std::string& path, bool slots) : path_(path), slots_(slots) {}

  Workload read() {
    std::ifstream file(path_);
    if (!file) refuse("{}: no such workload", path_);
    std::string text;
    while (std::getline(file, text)) {
      ++line_;
      const json row = json::parse(text, nullptr, false);
      if (!row.is_object()) refuse("{}:{}: not a JSON object", path_, line_);
      if (line_ == 1) {
        workload_.name = row.value("name", "workload");
        instruction_ = ids(row, "instruction_ids");
      } else {
        add_context(row);
      }
    }
    if (workload_.questions == 0) refuse("{}: a workload without questions", path_);
    return std::move(workload_);
  }

 private:
  const json& member(const json& row, const char* key) const {
    const auto at = row.is_object() ? row.find(key) : row.end();
    if (at == row.end()) refuse("{}:{}: \"{}\" is missing", path_, line_, key);
    return *at;
  }

  Tokens ids(const json& row, const char* key) {
    const json& list = member(row, key);
    Tokens tokens;
    if (!list.is_array()) refuse("{}:{}: \"{}\" is not a list of ids", path_, line_, key);
    for (const json& id : list) {
      if (!id.is_number_unsigned() || id > INT32_MAX - 1)
        refuse("{}:{}: \"{}\" holds what is no id", path_, line_, key);
      tokens.push_back(id.get<TokenId>());
      workload_.vocab = std::max(workload_.vocab, tokens.back() + 1);
    }
    return tokens;
  }

  int32_t length(const json& row, const char* key) const {
    const json& value = member(row, key);
    if (!value.is_number_unsigned() || value < 1 || value > 100000)
      refuse("{}:{}: \"{}\" is no length", path_, line_, key);
    return value.get<int32_t>();
  }

  ItemParts item(std::shared_ptr<const BinParts> bin, Tokens document) {
    ItemParts parts;
    parts.bin = std::move(bin);
    parts.item = static_cast<int32_t>(items_);
    parts.stream = static_cast<uint64_t>(items_++);
    parts.document = std::move(document);
    return parts;
  }

  void add_context(const json& row) {
    const Tokens context = ids(row, "context_ids");
    auto bin = std::make_shared<BinParts>();
    bin->instruction = instruction_;
    if (slots_) append(bin->instruction, context);
    std::vector<ItemParts> items;
    if (!slots_) items.push_back(item(bin, context));
    for (const json& question : member(row, "questions")) {
      ++workload_.questions;
      if (slots_) {
        items.push_back(item(bin, ids(question, "ids")));
        for (const json& slot : member(question, "slots"))
          items.back().own_questions.push_back(
              {ids(slot, "key_ids"), length(slot, "value_tokens"), Stop::line, nullptr});
      } else {
        items.back().own_questions.push_back(
            {ids(question, "ids"), length(question, "answer_tokens"), Stop::line, nullptr});
      }
    }
    // Contexts share the instruction and may share a prompt; with slots each context is an instruction of its
    // own.
    if (slots_ || workload_.bins.empty())
      workload_.bins.push_back(std::move(items));
    else
      for (ItemParts& each : items) workload_.bins.back().push_back(std::move(each));
  }

  const std::string& path_;
  bool slots_;
  int64_t line_ = 0, items_ = 0;
  Tokens instruction_;
  Workload workload_;
};

}  // namespace

Workload read_workload(const std::string& path, bool slots) {
  return WorkloadReader(path, slots).read();
}

}  // namespace sheaf
