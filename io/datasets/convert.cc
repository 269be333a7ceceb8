#include "io/datasets/convert.h"

#include <filesystem>

#include "core/base/error.h"
#include "io/datasets/corpus_writer.h"
#include "io/datasets/schema_writer.h"

namespace sheaf {

Converted convert_dataset(const std::string& format, const std::string& from, const std::string& to,
                          const ConvertSettings& settings,
                          const std::function<void(const DatasetRow&)>& on_reject) {
  const auto reader = open_dataset(format, from, settings.dataset);
  const TaskKind task = find_dataset_format(format)->task;
  if (!settings.schema.empty() && task != TaskKind::extract)
    refuse("--schema works only with datasets of attributes; {} has questions", format);
  CorpusWriter writer(to, task);
  SchemaWriter schema;
  Converted done;
  while (settings.limit == 0 || done.rows + done.rejects < settings.limit) {
    const auto row = reader->next();
    if (!row) break;
    if (!row->error.empty()) {
      ++done.rejects;
      on_reject(*row);
      continue;
    }
    ++done.rows;
    writer.add(row->cells);
    if (task == TaskKind::extract) {
      schema.add(row->cells);
      continue;
    }
    for (const auto& question : row->cells["questions"]) {
      ++done.questions;
      if (question.contains("answers") && question["answers"].empty()) ++done.unanswerable;
    }
  }
  if (done.rows == 0 && done.rejects == 0) refuse("{}: the file has no entries; nothing was written", from);
  if (done.rows == 0)
    refuse("{}: none of its {} entries can be read as {}; nothing was written", from, done.rejects, format);
  writer.finish();
  if (!settings.schema.empty()) {
    const std::filesystem::path path(settings.schema);
    if (!path.parent_path().empty()) real_files().make_folder(path.parent_path().string());
    write_whole(real_files(), path.has_parent_path() ? path.parent_path().string() : ".",
                path.filename().string(), schema.text(std::filesystem::path(from).filename().string()));
  }
  return done;
}

}  // namespace sheaf
