// Adapters on tensors that hold all experts of a layer in one. PEFT writes lora_A as [experts · rank, in],
// expert by expert, and lora_B as [out, rank · experts], rank by rank. Versions differ in which of the
// tensor's two sizes they take for "in"; only the shapes tell.
#include "core/base/error.h"
#include "io/base/mapped_file.h"
#include "io/model/lora.h"
#include "io/model/tensor_map.h"

namespace sheaf {
namespace {

/// Sizes of what one expert has in the tensor: gate above up, or down.
struct Stacked {
  int64_t rows, cols;
  bool is_down;
};

/// The part of an expert: rows [first, first + count) of its matrix. `turned`: "in" is the matrix's rows.
std::shared_ptr<const LowRank> part_of(const LowRank& all, int64_t expert, int64_t experts, bool turned,
                                       int64_t first, int64_t count, int64_t rows, int64_t cols) {
  auto part = std::make_shared<LowRank>();
  part->file = all.file;
  part->module = all.module;
  part->rank = all.rank;
  part->scale = all.scale;
  const int64_t rank = all.rank, in = turned ? rows : cols;
  const auto a = [&](int64_t r, int64_t i) {
    return all.a[static_cast<size_t>((expert * rank + r) * in + i)];
  };
  const auto b = [&](int64_t o, int64_t r) {
    return all.b[static_cast<size_t>(o * rank * experts + r * experts + expert)];
  };
  for (int64_t r = 0; r < rank; ++r)
    for (int64_t col = 0; col < cols; ++col) part->a.push_back(turned ? b(col, r) : a(r, col));
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t r = 0; r < rank; ++r) part->b.push_back(turned ? a(r, row) : b(row, r));
  return part;
}

}  // namespace

void Adapter::attach_experts(const std::string& module, std::vector<ExpertWeights>& experts) {
  // Where both tensors have adapters, PEFT puts one wrapper into the other.
  for (const char* inner : {"", ".base_layer"})
    if (const auto found = modules_.find(module + inner); found != modules_.end() && !experts.empty())
      attach_stacked(found->first, found->second, experts);
}

void Adapter::attach_stacked(const std::string& name, Module& module,
                             std::vector<ExpertWeights>& experts) const {
  const auto count = static_cast<int64_t>(experts.size()), rank = int64_t{module.delta->rank};
  const int64_t ffn = experts[0].gate.rows, hidden = experts[0].gate.cols;
  if (module.ranks != rank * count)
    refuse("{}: module {} has {} rows in lora_A, but {} experts of rank {} need {}", folder_, shown(name),
           module.ranks, count, rank, rank * count);
  for (const Stacked& stacked : {Stacked{2 * ffn, hidden, false}, Stacked{hidden, ffn, true}}) {
    const bool straight = module.rows == stacked.rows && module.cols == stacked.cols,
               turned = module.rows == stacked.cols && module.cols == stacked.rows;
    if (!straight && !turned) continue;
    if (straight && turned)
      refuse(
          "{}: module {}: the experts' matrix is square, so the adapter's shapes do not tell which way round "
          "it "
          "is; train one with \"target_modules\" instead",
          folder_, shown(name));
    for (int64_t i = 0; i < count; ++i) {
      ExpertWeights& expert = experts[static_cast<size_t>(i)];
      const auto put = [&](Matrix& matrix, int64_t first) {
        if (matrix.adapter) refuse("{}: two adapters are on the experts of module {}", folder_, shown(name));
        matrix.adapter =
            part_of(*module.delta, i, count, turned, first, matrix.rows, stacked.rows, stacked.cols);
      };
      if (stacked.is_down) {
        put(expert.down, 0);
      } else {
        put(expert.gate, 0);
        put(expert.up, ffn);
      }
    }
    module.used = true;
    return;
  }
  refuse(
      "{}: module {} is for matrices of [{}, {}], but the model's experts have gate and up of [{}, {}] and "
      "down "
      "of [{}, {}]",
      folder_, shown(name), module.rows, module.cols, 2 * ffn, hidden, hidden, ffn);
}

}  // namespace sheaf
