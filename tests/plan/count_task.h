#pragma once
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/task/task.h"

namespace sheaf::test {

/// For Pipeline::between_groups: windows end whole, however long the machine takes for one.
constexpr std::chrono::milliseconds kNoGroups = std::chrono::hours(24);

/// Records whose document is a number of tokens and whose category is their bin.
class CountTask : public Task {
 public:
  std::string bin_name(const Record& record) const override { return record.category; }
  RecordParts parts(const Record& record) override {
    if (record.document == "bad") refuse("this one is bad");
    auto& bin = bins_[record.category];
    if (!bin) {
      auto made = std::make_shared<BinParts>();
      made->instruction = Tokens(10, 1);
      made->opening = {2};
      made->label = [](size_t) { return DocumentLabel{{5}, {6}, {7}, {8}}; };
      for (int i = 0; i < 3; ++i) made->questions.push_back({{3, 4}, 5, Stop::line, nullptr});
      bin = made;
    }
    RecordParts parts;
    parts.bin = bin;
    parts.document = Tokens(static_cast<size_t>(std::stoi(record.document)),
                            static_cast<TokenId>(record.id.get<int>() % 10));
    return parts;
  }
  Row row(const Record&, const std::vector<Answer>&) const override { return {}; }

 private:
  std::map<std::string, std::shared_ptr<const BinParts>> bins_;
};

class ListCorpus : public Corpus {
 public:
  explicit ListCorpus(std::vector<std::variant<Record, Reject>> rows) : rows_(std::move(rows)) {}
  std::optional<std::variant<Record, Reject>> next() override {
    if (at_ == rows_.size()) return std::nullopt;
    return rows_[at_++];
  }
  int64_t position() const override { return static_cast<int64_t>(at_); }
  void skip_to(int64_t position) override { at_ = std::min(rows_.size(), static_cast<size_t>(position)); }
  int64_t count_records(int64_t) override { return static_cast<int64_t>(rows_.size()); }

 private:
  std::vector<std::variant<Record, Reject>> rows_;
  size_t at_ = 0;
};

inline Record make_record(int id, const std::string& category, const std::string& document) {
  Record record;
  record.id = id;
  record.category = category;
  record.document = document;
  return record;
}

}  // namespace sheaf::test
