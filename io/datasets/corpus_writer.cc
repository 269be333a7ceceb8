#include "io/datasets/corpus_writer.h"

#include <filesystem>

#include "core/base/error.h"
#include "io/base/globs.h"
#include "io/base/parquet_lines.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using Type = TableColumn::Type;

constexpr size_t kBuffer = 1 << 20;

}  // namespace

CorpusWriter::CorpusWriter(const std::string& path, TaskKind task)
    : path_(path), task_(task), lines_path_(path + ".lines.part") {
  if (!path.ends_with(".jsonl") && !path.ends_with(".parquet"))
    refuse("{}: the name of the corpus must end in .jsonl or .parquet", path);
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    real_files().make_folder(folder.string());
  real_files().remove(lines_path_);
  lines_ = real_files().open(lines_path_);
}

CorpusWriter::~CorpusWriter() {
  if (!lines_) return;
  std::error_code ignored;
  fs::remove(lines_path_, ignored);
}

void CorpusWriter::add(const nlohmann::ordered_json& row) {
  documents_ = documents_ || row.contains("documents");
  buffer_ += row.dump() + "\n";
  if (buffer_.size() < kBuffer) return;
  lines_->append(buffer_);
  buffer_.clear();
}

void CorpusWriter::write_parquet(const std::string& target) const {
  std::vector<TableColumn> columns;
  if (task_ == TaskKind::extract) {
    columns = {
        {"id", Type::integer}, {"category", Type::text}, {"document", Type::text}, {"gold", Type::text}};
  } else {
    columns = {{"id", Type::text}, {"context", Type::text}};
    if (documents_) columns.push_back({"documents", Type::texts});
    columns.push_back({"questions", Type::questions});
  }
  real_files().remove(target);
  write_parquet_lines(lines_path_, columns, *real_files().open(target));
}

void CorpusWriter::finish() {
  lines_->append(buffer_);
  buffer_.clear();
  if (!path_.ends_with(".parquet")) {
    lines_.reset();
    real_files().rename(lines_path_, path_);
    return;
  }
  const std::string staged = path_ + ".part";
  write_parquet(staged);
  real_files().rename(staged, path_);
}

}  // namespace sheaf
