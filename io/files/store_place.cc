#include "io/files/store_place.h"

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/base/store_uri.h"

namespace sheaf {

void check_store_apart(const Job& job) {
  const std::string &store = job.engine.kv_store.path, &out = job.output.path;
  if (store.empty() || is_uri(out)) return;
  const auto is_inside = [](const std::string& path, const std::string& folder) {
    return (path + "/").starts_with(folder + (folder.ends_with('/') ? "" : "/"));
  };
  const std::string real_store = real_path(store), real_out = real_path(out);
  // A restart builds beside the folder, and keeps the old run there.
  for (const char* ending : {"", ".restart", ".previous", ".replaced"})
    if (is_inside(real_store, real_out + ending))
      refuse("{}: engine.kv_store {} is inside output.path {}{}; choose a folder outside of it", job.file,
             store, out, ending);
  if (is_inside(real_out, real_store))
    refuse("{}: output.path {} is inside engine.kv_store {}; choose a folder outside of it", job.file, out,
           store);
}

}  // namespace sheaf
