// Evaluation files and saved measurements that were damaged or made up: read or refused, never a crash.
#include "tests/fuzz.h"

#include "io/eval/eval_file.h"
#include "io/eval/eval_grid.h"

namespace sheaf {
namespace {

TEST(FuzzEval, EvaluationFilesAreReadOrRefused) {
  const TempFolder folder;
  const std::string job = folder.write("job.yaml",
                                       "model: {path: none}\ninput: {path: none.json, format: squad}\n"
                                       "task: {kind: ask, instruction: Tell}\n"
                                       "method: {name: ippd, max_value_tokens: 4}\noutput: {path: none}\n");
  const std::string good =
      "name: Boxes\noutput: {path: " + folder.path("out") +
      "}\nbaseline: standard\nmodels:\n  - {name: tiny, path: m, chat: plain}\ndatasets:\n"
      "  - {name: boxes, job: " +
      job +
      ", path: boxes.json, metric: squad}\n"
      "methods: [{name: standard}, {label: packed, name: ippd, documents: 2}]\ncost: {usd_per_hour: 3.6}\n";
  const std::vector<std::string_view> words = {
      "- ",   ": ", "&a ", "*a",       "<<: ",     "{",    "}",     "[",  "]",  "\n",      "  ",
      "null", "'",  "\"",  "name: x,", "paper: {", "set:", "1e400", "-1", "..", "skip: [", "lengths: {"};
  fuzz_target("eval", {good}, words, [&](const std::string& text) {
    const Eval eval = read_eval(folder.write("eval.yaml", text), {});
    GridOptions options;
    options.files = false;
    read_grid(eval, options);
  });
}

}  // namespace
}  // namespace sheaf
