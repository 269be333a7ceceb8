// What the planner of GPU attention decides: which answers share a block with the text before them, and when
// a prefix gets blocks of its own whose results are merged. Needs no GPU. tools/plot_attention_blocks draws
// it.
//   cmake --build build/release --target bench_attention_blocks && build/release/bench/bench_attention_blocks
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>

#include "cuda/attention/attention_plan.h"

namespace {

using namespace sheaf;
using namespace sheaf::cuda;

constexpr int32_t kPage = 16;

constexpr const char* kHelp =
    R"(bench_attention_blocks [GROUP]    (default: 4 query heads of a key/value head)

stacked  context, own, answers: so many answers share a block where each has `own` keys of its own (question and answer)
         behind a context of so many keys, which 64 answers see
split    answers, prefix: the shortest prefix of many contexts that gets blocks of its own where each context has so many
         answers; "-": none up to 65,536 keys
)";

/// Answers in the midst of decoding: `contexts` of `context` keys behind a prefix, each seen by `answers`
/// answers with `own` keys each.
struct Step {
  StepBatch batch;
  std::vector<int32_t> first_page;  ///< of each span
  int32_t pages = 0;

  Step(int32_t prefix, int32_t contexts, int32_t context, int32_t answers, int32_t own) {
    batch.tokens.resize(static_cast<size_t>(contexts) * static_cast<size_t>(answers));
    batch.positions.assign(batch.tokens.size(), prefix + context + own - 1);
    batch.decode_tokens = batch.rows();
    if (prefix > 0) look(prefix, 0, batch.rows());
    for (int32_t c = 0; c < contexts; ++c) {
      look(context, c * answers, answers);
      for (int32_t row = c * answers; row < (c + 1) * answers; ++row) look(own, row, 1);
    }
  }
  void look(int32_t keys, int32_t row, int32_t count) {
    batch.tiles.push_back(
        {static_cast<int32_t>(batch.spans.size()), static_cast<int32_t>(batch.tile_rows.size()), count});
    for (int32_t i = 0; i < count; ++i) batch.tile_rows.push_back({row + i, keys});
    batch.spans.push_back({static_cast<int32_t>(batch.pages.size()), keys, 0});
    first_page.push_back(pages);
    for (int32_t key = 0; key < keys; key += kPage) batch.pages.push_back(pages++);
  }
  /// The span that a page is of.
  size_t span_of(const AttentionPage& page) const {
    return static_cast<size_t>(std::ranges::upper_bound(first_page, page.slot / kPage) - first_page.begin()) -
           1;
  }
};

AttentionPlan plan_of(const Step& step, int32_t group) {
  AttentionPlan plan;
  // One block is enough to fill such a device, so that no long one is cut.
  make_attention_planner({group, kPage, 1})(step.batch, 0, plan);
  return plan;
}

/// Answers of the fullest block.
int32_t answers_of_a_block(int32_t group, int32_t context, int32_t own) {
  const Step step(0, 1, context, 64, own);
  int32_t most = 0;
  for (const AttentionItem& item : plan_of(step, group).items) most = std::max(most, item.row_count);
  return most;
}

/// Whether the prefix is in blocks that hold nothing else.
bool splits_prefix(int32_t group, int32_t prefix, int32_t answers) {
  const Step step(prefix, 64, 128, answers, 16);
  const AttentionPlan plan = plan_of(step, group);
  return std::ranges::any_of(plan.items, [&](const AttentionItem& item) {
    std::set<size_t> spans;
    for (int32_t p = item.first_page; p < item.first_page + item.page_count; ++p)
      spans.insert(step.span_of(plan.pages[static_cast<size_t>(p)]));
    return spans == std::set<size_t>{0};
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int32_t group = argc > 1 ? std::atoi(argv[1]) : 4;
  if (argc > 2 || group < 1 || group > 64) {
    std::fputs(kHelp, stdout);
    return argc == 2 && std::string_view(argv[1]).starts_with("-h") ? 0 : 2;
  }
  std::printf("# %d query heads of a key/value head\n# stacked  context  own  answers\n", group);
  for (const int32_t context : {256, 1024, 4096, 16384})
    for (int32_t own = 16; own <= 16384; own *= 2)
      std::printf("stacked %d %d %d\n", context, own, answers_of_a_block(group, context, own));
  std::printf("# split  answers  prefix\n");
  for (const int32_t answers : {1, 2, 4, 8, 12, 16, 24, 32, 64}) {
    int32_t least = 0, most = 65536;
    if (!splits_prefix(group, most, answers)) {
      std::printf("split %d -\n", answers);
      continue;
    }
    while (most - least > 16) {
      const int32_t middle = (least + most) / 2;
      (splits_prefix(group, middle, answers) ? most : least) = middle;
    }
    std::printf("split %d %d\n", answers, most);
  }
}
