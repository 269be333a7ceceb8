#include "io/base/write_together.h"

#include <algorithm>

namespace sheaf {

void write_together(FileLayer& files, const std::string& folder, const std::vector<FileText>& texts) {
  const auto path = [&](const FileText& file) { return folder + "/" + file.name; };
  const auto staged = [&](const FileText& file) { return path(file) + ".part"; };
  if (std::ranges::all_of(texts, [&](const FileText& file) { return read_whole(path(file)) == file.text; }))
    return;
  for (const FileText& file : texts) {
    if (!file.text) continue;
    const auto target = files.open(staged(file));
    target->truncate(0);
    target->append(*file.text);
    target->sync();
  }
  for (const FileText& file : texts) files.remove(path(file));
  files.sync_folder(folder);  // no old one comes back beside a new one
  for (const FileText& file : texts)
    if (file.text) files.rename(staged(file), path(file));
  files.sync_folder(folder);
}

}  // namespace sheaf
