#include "io/model/experts_in_turns.h"

#include <cstring>
#include <fmt/ranges.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr int64_t kInBlock = 32;          // values with one scale
constexpr int64_t kCodes = kInBlock / 2;  // bytes of their codes

/// What a matrix takes of a tensor: its outputs begin with `first`, and every `step`-th is its own.
struct Turn {
  const char* name;
  int64_t first, step;
};
constexpr Turn kGateTurn{"gate", 0, 2}, kUpTurn{"up", 1, 2}, kDownTurn{"down", 0, 1};

/// Values of a plain tensor that lie `row_step` and `col_step` values apart, the first at `begin`.
struct Strides {
  int64_t begin, row_step, col_step;
};
Matrix strided(const Matrix& all, const Strides& at, int64_t rows, int64_t cols, std::string name) {
  const int64_t size = block_bytes(all.dtype);
  Matrix result;
  result.name = std::move(name);
  result.file = all.file;
  result.dtype = all.dtype;
  result.rows = rows;
  result.cols = cols;
  auto source = std::make_shared<StoredRows>();
  source->tensor = all.name;
  source->data = all.data + at.begin * size;
  source->bytes = ((rows - 1) * at.row_step + (cols - 1) * at.col_step + 1) * size;
  source->read = [from = source->data, at, cols, size](int64_t first, int64_t count, std::byte* out) {
    // Rows lie side by side in the file, so that they are the inner loop.
    for (int64_t col = 0; col < cols; ++col)
      for (int64_t row = 0; row < count; ++row)
        std::memcpy(out + (row * cols + col) * size,
                    from + ((first + row) * at.row_step + col * at.col_step) * size,
                    static_cast<size_t>(size));
  };
  result.source = std::move(source);
  return result;
}

/// A checkpoint has neighbours in a byte, the first in the low bits; a block of ggml has value i and value
/// i + 16.
void put_block(const std::byte* codes, std::byte scale, std::byte* out) {
  out[0] = scale;
  const auto code = [&](int64_t i) { return std::to_integer<int>(codes[i / 2]) >> i % 2 * 4 & 15; };
  for (int64_t i = 0; i < kCodes; ++i) out[1 + i] = static_cast<std::byte>(code(i) | code(i + kCodes) << 4);
}

/// All experts' matrices of one kind: one tensor, or blocks and scales.
class Stack {
 public:
  Stack(TensorMap& tensors, std::string name, int64_t experts, int64_t inputs, int64_t outputs)
      : tensors_(tensors), name_(std::move(name)), inputs_(inputs), outputs_(outputs) {
    bias_ = tensors.take(name_ + "_bias", {experts, outputs});
    if (!tensors.has(name_ + "_blocks") && !tensors.has(name_ + "_scales")) {
      plain_ = tensors.take(name_, {experts, inputs, outputs});
      return;
    }
    if (inputs % kInBlock != 0)
      refuse("{}: tensor {}_blocks: MXFP4 needs inputs in blocks of {}, but there are {}", tensors.source(),
             name_, kInBlock, inputs);
    blocks_ = raw("_blocks", {experts, outputs, inputs / kInBlock, kCodes});
    scales_ = raw("_scales", {experts, outputs, inputs / kInBlock});
  }

  Matrix weight(int64_t expert, const Turn& turn) const {
    std::string name = fmt::format("{}:{}:{}", name_, expert, turn.name);
    const int64_t rows = outputs_ / turn.step;
    if (!plain_.empty())
      return strided(plain_, {expert * inputs_ * outputs_ + turn.first, turn.step, outputs_}, rows, inputs_,
                     std::move(name));
    const int64_t blocks = inputs_ / kInBlock, begin = expert * outputs_ + turn.first;
    Matrix result;
    result.name = std::move(name);
    result.file = blocks_.file;
    result.dtype = DType::mxfp4;
    result.rows = rows;
    result.cols = inputs_;
    auto source = std::make_shared<StoredRows>();
    source->tensor = name_ + "_blocks";
    source->data = blocks_.data + expert * outputs_ * blocks * kCodes;
    source->bytes = outputs_ * blocks * kCodes;
    source->read = [codes = blocks_.data, scales = scales_.data, blocks, begin, step = turn.step](
                       int64_t first, int64_t count, std::byte* out) {
      for (int64_t row = first; row < first + count; ++row)
        for (int64_t i = 0; i < blocks; ++i, out += 1 + kCodes) {
          const int64_t block = (begin + row * step) * blocks + i;
          put_block(codes + block * kCodes, scales[block], out);
        }
    };
    result.source = std::move(source);
    return result;
  }

  Matrix bias(int64_t expert, const Turn& turn) const {
    return strided(bias_, {expert * outputs_ + turn.first, 0, turn.step}, 1, outputs_ / turn.step,
                   fmt::format("{}:{}:{}", bias_.name, expert, turn.name));
  }

 private:
  FileTensor raw(const char* ending, const std::vector<int64_t>& shape) const {
    FileTensor tensor = tensors_.take_raw(name_ + ending, {"U8"});
    if (tensor.shape != shape)
      refuse("{}: tensor {}{} has shape [{}], but the model's description needs [{}]", tensors_.source(),
             name_, ending, fmt::join(tensor.shape, ", "), fmt::join(shape, ", "));
    return tensor;
  }

  TensorMap& tensors_;
  std::string name_;
  int64_t inputs_, outputs_;
  Matrix plain_, bias_;
  FileTensor blocks_, scales_;
};

}  // namespace

std::vector<ExpertWeights> take_experts_in_turns(TensorMap& tensors, const std::string& module,
                                                 const ExpertSizes& sizes) {
  const Stack gate_up(tensors, module + "gate_up_proj", sizes.count, sizes.hidden, 2 * sizes.ffn);
  const Stack down(tensors, module + "down_proj", sizes.count, sizes.ffn, sizes.hidden);
  std::vector<ExpertWeights> experts;
  for (int64_t i = 0; i < sizes.count; ++i)
    experts.push_back({gate_up.weight(i, kGateTurn), gate_up.weight(i, kUpTurn), down.weight(i, kDownTurn),
                       gate_up.bias(i, kGateTurn), gate_up.bias(i, kUpTurn), down.bias(i, kDownTurn)});
  return experts;
}

}  // namespace sheaf
