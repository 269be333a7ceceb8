#include "core/task/task.h"

#include "core/base/error.h"

namespace sheaf {

std::vector<std::optional<Tokens>> Task::wanted(const Record&, const nlohmann::json&) const {
  refuse(
      "training data can be made for extract and ask jobs, with every method except pced, ape, map-reduce "
      "and "
      "seqbatch; choose another method.name");
}

}  // namespace sheaf
