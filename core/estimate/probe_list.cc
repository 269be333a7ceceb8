#include "core/estimate/probe_list.h"

#include <algorithm>

namespace sheaf {
namespace {

class List {
 public:
  void bare(std::initializer_list<int32_t> rows, int32_t most_picks) {
    for (const int32_t count : rows) add(ProbeKind::bare, {{1, 0, count, 0, 1}}, most_picks);
  }
  /// Prompts of so many tokens, `rows` in all.
  void prefill(std::initializer_list<int32_t> tokens, int32_t rows) {
    for (const int32_t each : tokens) attention({std::max(1, rows / each), 0, 1, 0, each});
  }
  void attention(ProbePart part) { add(ProbeKind::attention, {part}, 16); }
  void held_out(std::vector<ProbePart> parts) { add(ProbeKind::held_out, std::move(parts), INT32_MAX); }
  ProbeList take() { return std::move(list_); }

 private:
  void add(ProbeKind kind, std::vector<ProbePart> parts, int32_t most_picks) {
    int32_t picks = 0;
    for (const ProbePart& part : parts) picks += part.groups * part.runs;
    picks = std::min(picks, most_picks);
    list_.push_back({kind, {std::move(parts), picks}});
  }
  ProbeList list_;
};

}  // namespace

ProbeList probes_for_gpu() {
  List list;
  list.bare({1,   2,   4,   8,    16,   32,   48,   64,   96,   128,  192,   256,
             384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384},
            4096);
  list.prefill({32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}, 8192);
  list.prefill({128, 512, 2048}, 2048);
  list.prefill({128, 512}, 512);
  list.prefill({16384}, 16384);
  // Questions behind documents, documents behind an instruction, the second half of a long prompt.
  for (const ProbePart& part : {ProbePart{60, 225, 9, 0, 13},
                                {20, 400, 4, 0, 40},
                                {8, 3500, 30, 0, 12},
                                {5, 11800, 20, 0, 72},
                                {40, 50, 1, 0, 180},
                                {8, 2754, 1, 0, 737},
                                {1, 0, 1, 8192, 8192},
                                {300, 100, 12, 0, 2}})
    list.attention(part);
  // Decoding: nothing shared, all shared, some shared.
  for (const int32_t own : {64, 256, 1024, 4096})
    for (const int32_t rows : {1, 16, 64, 256, 1024})
      if (int64_t{own} * rows <= 300000) list.attention({1, 0, rows, own, 1});
  for (const int32_t trunk : {256, 1024, 4096, 16384})
    for (const int32_t rows : {16, 64, 256, 1024, 4096}) list.attention({1, trunk, rows, 16, 1});
  for (const ProbePart& part : {ProbePart{16, 225, 9, 14, 1},
                                {64, 225, 9, 14, 1},
                                {256, 225, 9, 14, 1},
                                {64, 1024, 4, 16, 1},
                                {16, 3500, 30, 14, 1},
                                {256, 100, 12, 3, 1}})
    list.attention(part);
  list.held_out({{120, 225, 9, 14, 1}, {20, 0, 1, 0, 225}, {20, 225, 9, 0, 13}});
  list.held_out({{16, 3491, 30, 14, 1}, {4, 2754, 1, 0, 737}, {4, 3491, 30, 0, 12}});
  list.held_out({{300, 100, 12, 3, 1}, {40, 70, 1, 0, 31}, {40, 100, 12, 0, 6}});
  list.held_out({{1, 11793, 20, 0, 72}, {1, 73, 1, 4096, 5000}});
  list.held_out({{200, 384, 4, 40, 1}, {16, 40, 1, 0, 344}, {16, 384, 4, 0, 40}});
  list.held_out({{50, 225, 9, 14, 1}});
  return list.take();
}

ProbeList probes_for_cpu() {
  List list;
  list.bare({1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, 128);
  list.prefill({32, 128, 512}, 512);
  list.prefill({1024}, 1024);
  for (const ProbePart& part : {ProbePart{1, 0, 1, 256, 1},
                                {1, 0, 16, 256, 1},
                                {1, 0, 128, 256, 1},
                                {1, 0, 16, 2048, 1},
                                {1, 1024, 16, 16, 1},
                                {1, 1024, 128, 16, 1},
                                {1, 4096, 64, 16, 1},
                                {8, 225, 9, 14, 1},
                                {4, 225, 9, 0, 13},
                                {1, 2048, 1, 0, 128}})
    list.attention(part);
  list.held_out({{4, 225, 9, 14, 1}, {1, 0, 1, 0, 92}});
  list.held_out({{5, 100, 12, 3, 1}, {1, 70, 1, 0, 31}, {1, 100, 12, 0, 3}});
  list.held_out({{6, 300, 5, 8, 1}, {1, 300, 5, 0, 13}});
  return list.take();
}

}  // namespace sheaf
