#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine/step_batch.h"
#include "cuda/loaded_model.h"
#include "cuda/step.h"

namespace sheaf::cuda {
namespace {

/// Picks that are computed together, [first, end) of the step's.
struct PickRange {
  int64_t first, end;
  int32_t count() const { return static_cast<int32_t>(end - first); }
};

void compute_logits(LoadedModel& model, const Step& step, PickRange range) {
  const ModelConfig& config = model.config;
  const Activations& room = model.room;
  // The rows are done with, so the buffer of normed rows is free for the picked ones.
  rms_norm(room.x.data(), step.arrays.pick_rows + range.first, model.weights.final_norm.data(), range.count(),
           config.hidden, config.norm_eps, room.normed.data(), model.stream.get());
  model.products.multiply(model.weights.output_or_embedding(), room.normed.data(), range.count(),
                          config.vocab, config.hidden, room.logits.data());
  if (config.logit_scale != 1 || config.logit_cap > 0)
    scale_rows(room.logits.data(), int64_t{range.count()} * config.vocab, config.logit_scale,
               config.logit_cap, model.stream.get());
}

/// A draw goes over the whole vocabulary. Beyond 16 threads, the copy of the logits takes longer than the
/// draws.
int threads_that_pick() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
}

/// Waits for the logits, hands them out and draws from them.
void pick_on_host(LoadedModel& model, const Step& step, PickRange range, std::span<float> logits) {
  const cudaStream_t stream = model.stream.get();
  const auto vocab = static_cast<size_t>(model.config.vocab), first = static_cast<size_t>(range.first);
  const size_t count = static_cast<size_t>(range.count()) * vocab;
  model.host_logits.grow(static_cast<int64_t>(count));
  const float* const host = model.host_logits.data();
  check(cudaMemcpyAsync(model.host_logits.data(), model.room.logits.data(), count * sizeof(float),
                        cudaMemcpyDeviceToHost, stream),
        "logits");
  check(cudaStreamSynchronize(stream), "logits");
  if (!logits.empty()) std::copy_n(host, count, logits.begin() + range.first * model.config.vocab);
  const auto picks = std::span(step.batch->picks).subspan(first, static_cast<size_t>(range.count()));
  std::vector<size_t> drawn;
  for (size_t i = 0; i < picks.size(); i += 1 + static_cast<size_t>(picks[i].chains))
    if (on_host(picks[i])) drawn.push_back(i);
  if (drawn.empty()) return;
  if (!model.pickers) model.pickers = std::make_unique<ThreadPool>(threads_that_pick());
  model.pickers->run(std::ssize(drawn), [&](int64_t task, int) {
    const size_t i = drawn[static_cast<size_t>(task)];
    step.picked[first + i] = pick_next(picks.subspan(i), step.batch->allowed, host + i * vocab, vocab, vocab);
  });
}

/// The picks of a range that have chains.
ChainInputs chains_of(const LoadedModel& model, const Step& step, PickRange range) {
  const std::vector<ChainGroup>& groups = step.chain_groups;
  if (groups.empty()) return {};
  const Activations& room = model.room;
  const auto at = [&](int64_t pick) {
    return static_cast<int32_t>(std::find_if(groups.begin(), groups.end(),
                                             [&](const ChainGroup& group) { return group.pick >= pick; }) -
                                groups.begin());
  };
  const auto any = [&](auto&& is) { return std::any_of(groups.begin(), groups.end(), is); };
  return {step.arrays.chains,
          step.arrays.groups,
          at(range.first),
          at(range.end) - at(range.first),
          any([](const ChainGroup& group) { return group.contrast < 0; }),
          any([](const ChainGroup& group) { return group.aggregate != 0; }),
          room.chain_sums.data(),
          room.chain_sums.data() + room.size.picks_at_once};
}

}  // namespace

void pick_tokens(LoadedModel& model, const Step& step, std::span<float> logits) {
  const std::vector<Pick>& picks = step.batch->picks;
  const auto count = static_cast<int64_t>(picks.size());
  const bool host = !logits.empty() || std::any_of(picks.begin(), picks.end(), on_host);
  PickRange range{};
  for (; range.first < count; range.first = range.end) {
    range.end = static_cast<int64_t>(picks_end(picks, static_cast<size_t>(range.first), kPicksAtOnce));
    compute_logits(model, step, range);
    if (host) pick_on_host(model, step, range, logits);
    const ChainInputs chains = chains_of(model, step, range);
    const auto first = static_cast<int32_t>(range.first);
    float* const scores = model.room.logits.data();
    GreedyResult* const out = model.room.picks.data() + range.first;
    const cudaStream_t stream = model.stream.get();
    fuse_chains(chains, scores, first, range.count(), model.config.vocab, out, stream);
    pick_greedy(scores, step.arrays.greedy + range.first, step.arrays.allowed, range.count(),
                model.config.vocab, out, stream);
    find_voices(chains, scores, first, model.config.vocab, out, stream);
  }
  if (count > 0)
    check(cudaMemcpyAsync(step.chosen.data(), model.room.picks.data(),
                          static_cast<size_t>(count) * sizeof(GreedyResult), cudaMemcpyDeviceToHost,
                          model.stream.get()),
          "picked tokens");
}

}  // namespace sheaf::cuda
