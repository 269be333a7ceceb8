#include "io/jobs/bench.h"

#include <fmt/ranges.h>

#include "app/commands.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/model/shapes.h"
#include "io/base/named_output.h"
#include "io/files/hardware_file.h"

namespace sheaf {
namespace {

struct BenchCommand : BenchSettings {
  std::string device = "cuda";
  bool random_weights = false;  ///< said aloud: without a model path it is so anyhow
  bool packed = false;
  std::string profile;              ///< a file to write; then there is no workload
  std::vector<std::string> shapes;  ///< to time for the profile
  std::string dtype = "auto";
  bool attention = false;  ///< alone; then there is no workload
  AttentionBench attended;
  bool json = false;
};

/// A workload's records have one document each.
std::vector<std::string> timed_methods() {
  std::vector<std::string> names;
  for (const Method& method : all_methods())
    if (!method.wording.findings) names.emplace_back(method.name);
  return names;
}

void write_profile(const BenchCommand& options) {
  if (!options.model.path.empty() || options.packed || options.model.reproducible)
    refuse("--profile times random weights: leave out --model, --packed and --reproducible");
  for (const std::string& shape : options.shapes) shape_by_name(shape);  // before two minutes are spent
  const NamedOutput file(options.profile);
  const auto left_out = [](const std::string& text) { print_line(text, Stream::err); };
  file.write(profile_text(profile_device(options.model, options.shapes, left_out, rewrite_line)));
}

void time_attention(const BenchCommand& options) {
  if (!options.model.path.empty() || options.packed)
    refuse("--attention computes with no weights: leave out --model and --packed");
  const nlohmann::ordered_json found = bench_attention(options.model, options.attended, rewrite_line);
  options.json ? print_json(found) : print_text(attention_text(found));
}

void bench(BenchCommand& options) {
  BenchModel& model = options.model;
  model.device = parse_device(options.device, "--device");
  if (model.device.several())
    refuse("--device {}: bench times one device; name one, such as {}", options.device,
           model.device.kind == Device::Kind::cpu ? "cpu" : "cuda:0");
  model.dtype = read_word<Precision>(options.dtype).value_or(model.dtype);
  if (options.packed) model.weights = WeightStorage::packed;
  if (!options.profile.empty()) return write_profile(options);
  if (options.attention) return time_attention(options);
  if (options.workload.empty()) refuse("bench: give a workload to time, --attention, or --profile FILE");
  print_json(bench_workload(options), -1);
}

}  // namespace

void add_bench_command(Program& program) {
  auto options = std::make_shared<BenchCommand>();
  BenchModel& model = options->model;
  BenchPacking& packing = options->packing;
  add_command(
      program, "bench", "Time a workload of token ids, with random weights or with a model's",
      {{"WORKLOAD", options->workload, "The workload: JSON lines of token ids (.gz and .zst too)"},
       {"--model", model.path, "Use the weights of this model: a GGUF file or a folder", value_name("MODEL")},
       {"--shape", model.shape, "The model's shape, listed below, or a config.json (not with --model)",
        value_name("SHAPE"), kWithDefault, works_without("--model")},
       {"--random-weights", options->random_weights,
        "Use random weights of the shape (the default; not with --model)", works_without("--model")},
       {"--method", packing.method.name, "How prompts are packed (hpd uses the workload's slots)",
        one_of(timed_methods()), kWithDefault},
       {"--documents", packing.method.documents, "Contexts or documents per prompt (0: as many as fit)",
        whole_from(0)},
       {"--questions", packing.method.questions, "The most questions per prompt (0: all of its documents)",
        whole_from(0)},
       {"--prompt-tokens", packing.method.prompt_tokens, "The most tokens in a prompt", whole_from(1),
        kWithDefault},
       {"--window", packing.window, "How many lines of the workload are planned together", whole_from(1),
        kWithDefault},
       {"--tokens-per-step,--rows", options->tokens, "Tokens per step (0: as many as suit the device)",
        whole_from(0)},
       {"--device", options->device, "Where to compute (cpu: for small shapes)",
        value_name("{auto,cpu,cuda,cuda:N}"), kWithDefault},
       {"--dtype", options->dtype,
        "The type to compute in: f32, int16 or int8 on the CPU; bf16 or fp8 on a GPU (auto: f32, bf16)",
        one_of(all_words<Precision>()), kWithDefault},
       {"--packed", options->packed,
        "Keep the weights on the GPU as the model's file has them (random ones: Q4_K), and "
        "expand them for every product"},
       {"--kv-fp8", model.fp8_keys, "Keep keys and values in FP8 (engine.kv_dtype: fp8)"},
       {"--reproducible", model.reproducible,
        "Make answers independent, to the bit, of the batch and of how prompts are packed"},
       {"--repeat", options->repeat,
        "How many times to run; if more than one, the first run warms up and the median of the "
        "others counts",
        whole_from(1), kWithDefault},
       {"--profile,--calibrate", options->profile,
        "Time made-up steps instead of a workload, and write a device profile for `sheaf estimate` to this "
        "file",
        works_without("WORKLOAD")},
       {"--attention", options->attention,
        "Time attention alone, of tokens behind one shared prefix and of separate sequences",
        works_without("WORKLOAD"), works_without("--profile")},
       {"--batch", options->attended.batches, "--attention: sequences, separated by commas", kInCommas,
        whole_from(1, 1 << 20), works_with("--attention")},
       {"--prefix", options->attended.prefixes, "--attention: tokens of the prefix", kInCommas,
        whole_from(1, 1 << 22), works_with("--attention")},
       {"--suffix", options->attended.suffixes, "--attention: tokens of a sequence behind the prefix",
        kInCommas, whole_from(1, 1 << 22), works_with("--attention")},
       {"--heads", options->attended.heads, "--attention: query heads (default: 8)", whole_from(1, 1024),
        works_with("--attention")},
       {"--kv-heads", options->attended.kv_heads, "--attention: heads of keys and values (default: 1)",
        whole_from(1, 1024), works_with("--attention")},
       {"--head-dim", options->attended.head_dim, "--attention: numbers of a head (default: 128)",
        whole_from(2, 512), works_with("--attention")},
       {"--json", options->json, "--attention: print JSON", works_with("--attention")},
       {"--shapes", options->shapes,
        "Shapes to time, separated by commas; only with --profile (default: some that suit the device)",
        kInCommas, value_name("SHAPE"), works_with("--profile")}},
      [options] { bench(*options); })
      .footer(fmt::format("Shapes:\n  {}", fmt::join(shape_names(), ", ")));
}

}  // namespace sheaf
