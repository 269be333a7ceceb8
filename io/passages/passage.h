#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/base/globs.h"

namespace sheaf {

/// An entry of the collection that questions are looked up in.
struct Passage {
  nlohmann::json id;  ///< text or number; where the collection has none, the number of its row from 1
  std::string title;  ///< empty: none
  std::string text;

  /// As a prompt has it: the title on a line of its own.
  std::string document() const { return title.empty() ? text : title + "\n" + text; }
};

/// The passages of JSON lines, Parquet or Arrow files: columns "text", "title" and "id", or as BEIR and LOFT
/// call them.
class PassageReader {
 public:
  explicit PassageReader(std::vector<std::string> files, CorpusFormat format);
  ~PassageReader();
  PassageReader(const PassageReader&) = delete;
  PassageReader& operator=(const PassageReader&) = delete;

  struct Row {
    std::optional<Passage> passage;
    std::string trouble = {};  ///< where there is no passage: its place and why, "wiki.jsonl:3: …"
    int64_t rows = 1;          ///< more where `trouble` costs several
    int64_t number = 0;        ///< of the row in its file, from 1
    size_t file = 0;
  };
  /// Where a row stands: "wiki.jsonl:3".
  std::string place(size_t file, int64_t number) const;
  /// Nothing at the end. Refuses a file that cannot be opened or whose columns hold no text.
  std::optional<Row> next();

 private:
  class File;
  class Lines;
  class Table;

  std::vector<std::string> files_;
  CorpusFormat format_;
  size_t at_ = 0;
  int64_t rows_ = 0;  ///< so far
  std::unique_ptr<File> file_;
};

}  // namespace sheaf
