#include "cuda/weights/device_weights.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>
#include <span>

#include "core/backend/footprint.h"
#include "cuda/weights/weight_stream.h"

namespace sheaf::cuda {
namespace {

constexpr int kBuffersOnTheirWay = 8;  // besides one for every thread to fill

/// Copies on a stream of its own. The stream waits for what the default stream did before (clearing biases).
class DeviceSink final : public WeightSink {
 public:
  explicit DeviceSink(int buffers) {
    check(cudaGetDevice(&device_), "asking for the device");
    // Without blocking sync a waiting thread would take a core from those that read.
    for (int i = 0; i < buffers; ++i) copied_.emplace_back(cudaEventBlockingSync | cudaEventDisableTiming);
  }

  void send(int buffer, const std::byte* from, int64_t bytes, std::byte* to) override {
    choose_device(device_);
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_.get()),
          "sending weights");
    check(cudaEventRecord(copied_[static_cast<size_t>(buffer)].get(), stream_.get()), "sending weights");
  }
  void wait(int buffer) override {
    choose_device(device_);
    check(cudaEventSynchronize(copied_[static_cast<size_t>(buffer)].get()), "sending weights");
  }

 private:
  int device_ = 0;
  Stream stream_;
  std::deque<Event> copied_;  ///< by buffer; one that was never recorded counts as done
};

/// Numbers of the adapter of a matrix.
int64_t adapter_values(const Matrix& matrix) {
  return matrix.adapter ? matrix.adapter->rank * (matrix.rows + matrix.cols) : 0;
}

void upload_adapter(const Matrix& matrix, PackedPart& part) {
  if (!matrix.adapter) return;
  const LowRank& adapter = *matrix.adapter;
  std::vector<float> both = adapter.a;
  for (const float value : adapter.b) both.push_back(adapter.scale * value);
  part.adapter = upload_vector(both);
  part.rows.adapter = {part.adapter.data(), part.adapter.data() + adapter.a.size(), adapter.rank};
}

/// Whether matrices that lie in one are stored as their file has them. What is e4m3 there and here, or bf16
/// there, is as small either way.
bool stay_packed(WeightKind kind, std::span<const Matrix* const> matrices) {
  return kind.packed && !std::ranges::all_of(matrices, [&](const Matrix* matrix) {
           return matrix->dtype == DType::bf16 || (kind.fp8 && is_e4m3(matrix->dtype));
         });
}

/// Whether a layer's experts are as gpt-oss has them, all in MXFP4: they come packed in any case, and the
/// device finds out what becomes of them (settle_mxfp4()).
bool in_mxfp4(const LayerWeights& layer) {
  return !layer.experts.empty() && std::ranges::all_of(layer.experts, [](const ExpertWeights& expert) {
    return std::ranges::all_of(std::array{&expert.gate, &expert.up, &expert.down}, [](const Matrix* matrix) {
      return matrix->dtype == DType::mxfp4 && !matrix->adapter;
    });
  });
}

/// The biases of gate and up of all experts, as the rows of their weights lie.
std::vector<float> gate_up_biases(const LayerWeights& layer, RowOrder order) {
  std::vector<float> both;
  for (const ExpertWeights& expert : layer.experts) {
    const std::vector<float> gate = expert.gate_bias.read_all(), up = expert.up_bias.read_all();
    const size_t first = both.size();
    both.resize(first + gate.size() + up.size());
    for (size_t row = 0; row < gate.size(); ++row) {
      const auto at = first + static_cast<size_t>(interleaved(order, static_cast<int64_t>(row)));
      both[at] = gate[row];
      both[at + 8] = up[row];
    }
  }
  return both;
}
std::vector<float> down_biases(const LayerWeights& layer) {
  std::vector<float> all;
  for (const ExpertWeights& expert : layer.experts)
    for (const float value : expert.down_bias.read_all()) all.push_back(value);
  return all;
}

/// Numbers of the biases of a layer's experts.
int64_t biases_of(const LayerWeights& layer) {
  int64_t count = 0;
  for (const ExpertWeights& expert : layer.experts)
    count += expert.gate_bias.cols + expert.up_bias.cols + expert.down_bias.cols;
  return count;
}

/// Logits in base 2.
std::vector<float> in_base_2(std::vector<float> logits) {
  for (float& logit : logits) logit *= std::numbers::log2e_v<float>;
  return logits;
}

/// Makes room on the device for every weight first, then streams all of them.
class Upload {
 public:
  explicit Upload(WeightKind kind) : kind_(kind) {}

  /// Matrices one above the other, as bf16.
  DeviceMemory<bf16> stack(std::span<const Matrix* const> matrices) {
    DeviceMemory<bf16> device(count_values(matrices));
    bf16* to = device.data();
    for (const Matrix* matrix : matrices) {
      add(*matrix, Precision::bf16, to);
      to += matrix->rows * matrix->cols;
    }
    return device;
  }

  /// The same as the layers have them. `gated`: they are gate and up.
  DeviceMatrix matrix(const std::vector<const Matrix*>& matrices, bool gated = false) {
    DeviceMatrix device;
    if (stay_packed(kind_, matrices)) {
      int64_t first = 0;
      for (const Matrix* matrix : matrices) {
        const RowOrder order = !gated      ? RowOrder::plain
                               : kind_.fp8 ? RowOrder::by_sixteens
                                           : RowOrder::by_eights;
        device.packed.push_back(stored(*matrix, {first, order}));
        first += gated ? 8 : matrix->rows;
      }
      return device;
    }
    return stacked(matrices);
  }

  PackedPart stored(const Matrix& matrix, const RowPlace& place) {
    PackedPart part = make_part(matrix.dtype, matrix.rows, matrix.cols, place);
    add(matrix, Precision::automatic, part.memory.data());
    upload_adapter(matrix, part);
    return part;
  }

  /// Matrices one above the other, in bf16 or e4m3.
  DeviceMatrix stacked(std::span<const Matrix* const> matrices) {
    DeviceMatrix device;
    if (!kind_.fp8) {
      device.wide = stack(matrices);
      return device;
    }
    int64_t rows = 0;
    for (const Matrix* matrix : matrices) rows += matrix->rows;
    device.narrow.grow(count_values(matrices));
    device.scales.grow(rows);
    auto& [host, to_scales] = scales_.emplace_back(static_cast<size_t>(rows), device.scales.data());
    e4m3* to = device.narrow.data();
    float* scales = host.data();
    for (const Matrix* matrix : matrices) {
      add(*matrix, Precision::fp8, to, scales);
      to += matrix->rows * matrix->cols;
      scales += matrix->rows;
    }
    return device;
  }

  DeviceMemory<float> vector(const Matrix& matrix) {
    if (matrix.empty()) return {};
    DeviceMemory<float> device(matrix.cols);
    add(matrix, Precision::f32, device.data());
    return device;
  }

  /// The biases of q, k and v in a row; zero where only some have one.
  DeviceMemory<float> joined_bias(const LayerWeights& layer) {
    if (layer.q_bias.empty() && layer.k_bias.empty() && layer.v_bias.empty()) return {};
    DeviceMemory<float> device(layer.q.rows + layer.k.rows + layer.v.rows);
    check(cudaMemset(device.data(), 0, static_cast<size_t>(device.size()) * sizeof(float)),
          "clearing biases");
    float* to = device.data();
    for (const auto& [bias, matrix] :
         {std::pair{&layer.q_bias, &layer.q}, {&layer.k_bias, &layer.k}, {&layer.v_bias, &layer.v}}) {
      if (!bias->empty()) add(*bias, Precision::f32, to);
      to += matrix->rows;
    }
    return device;
  }

  DeviceExperts experts(const LayerWeights& layer, const Experts& described) {
    DeviceExperts device;
    if (layer.router.empty()) return device;
    device.router.grow(router_rows(described) * layer.router.cols);
    check(cudaMemset(device.router.data(), 0, static_cast<size_t>(device.router.size()) * sizeof(bf16)),
          "clearing a router");
    add(layer.router, Precision::bf16, device.router.data());
    if (!layer.shared_gate.empty())
      add(layer.shared_gate, Precision::bf16, device.router.data() + layer.router.rows * layer.router.cols);
    device.router_bias = vector(layer.router_bias);
    device.gate_up = experts_of(layer, {&ExpertWeights::gate, &ExpertWeights::up});
    device.down = experts_of(layer, {&ExpertWeights::down});
    return device;
  }

  void run() {
    const int threads = reading_threads();
    WeightRing ring{nullptr, threads + kBuffersOnTheirWay, ring_buffer_bytes(wholes_)};
    const PinnedMemory<std::byte> memory = pin(ring);
    ring.memory = memory.data();
    DeviceSink sink(ring.buffers);
    stream_weights(cut_to_slices(wholes_, ring.buffer_bytes), ring, threads, sink);
    for (const auto& [host, to] : scales_)
      check(cudaMemcpy(to, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice),
            "sending scales");
  }

 private:
  using ExpertMatrix = Matrix ExpertWeights::*;

  /// One matrix of all experts, each having the named ones one above the other: gate and up, or down.
  DeviceMatrix experts_of(const LayerWeights& layer, std::initializer_list<ExpertMatrix> names) {
    std::vector<const Matrix*> all;
    for (const ExpertWeights& expert : layer.experts)
      for (const ExpertMatrix name : names) all.push_back(&(expert.*name));
    if (!in_mxfp4(layer) && !stay_packed(kind_, all)) return stacked(all);
    // can_stay_packed() has seen that those of one name are alike, and have no adapters.
    const RowOrder order = names.size() == 1 ? RowOrder::plain
                           : kind_.fp8       ? RowOrder::by_sixteens
                                             : RowOrder::by_eights;
    DeviceMatrix device;
    int64_t first = 0;
    for (const ExpertMatrix name : names) {
      const Matrix& like = layer.experts.front().*name;
      const auto count = static_cast<int64_t>(layer.experts.size());
      PackedPart part = make_part(like.dtype, like.rows * count, like.cols, {first, order});
      uint8_t* to = part.memory.data();
      for (const ExpertWeights& expert : layer.experts) {
        add(expert.*name, Precision::automatic, to);
        to += like.rows * part.rows.row_bytes;
      }
      device.packed.push_back(std::move(part));
      first += 8;
    }
    return device;
  }

  static int64_t count_values(std::span<const Matrix* const> matrices) {
    int64_t values = 0;
    for (const Matrix* matrix : matrices) values += matrix->rows * matrix->cols;
    return values;
  }

  void add(const Matrix& matrix, Precision form, void* to, float* scales = nullptr) {
    wholes_.push_back({&matrix, 0, matrix.rows, form, static_cast<std::byte*>(to), scales});
  }

  /// Fewer buffers where so much cannot be pinned.
  static PinnedMemory<std::byte> pin(WeightRing& ring) {
    for (;; ring.buffers /= 2) {
      try {
        return PinnedMemory<std::byte>(ring.buffers * ring.buffer_bytes);
      } catch (const OutOfMemory&) {
        if (ring.buffers < 4) throw;
      }
    }
  }

  struct Scales {
    Scales(size_t count, float* device) : host(count), to(device) {}
    std::vector<float> host;
    float* to;
  };

  WeightKind kind_;
  std::vector<WeightSlice> wholes_;
  std::deque<Scales> scales_;
};

/// Puts the rows of gate and up, `rows` each, side by side. `halves` is memory to work in.
template <class T>
void interleave(T* both, int64_t rows, int64_t cols, DeviceMemory<T>& halves) {
  halves.grow(2 * rows * cols);
  check(cudaMemcpyAsync(halves.data(), both, static_cast<size_t>(2 * rows * cols) * sizeof(T),
                        cudaMemcpyDeviceToDevice, nullptr),
        "interleaving gate and up");
  interleave_rows(halves.data(), rows, cols, both, nullptr);
}

/// The products' kernels want gate and up of the same values side by side.
void interleave_gate_up(const Model& model, DeviceWeights& weights) {
  DeviceMemory<bf16> wide;
  DeviceMemory<e4m3> narrow;
  DeviceMemory<float> scales;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& host = model.layers[i];
    const DeviceMatrix& both = weights.layers[i].gate_up;
    if (both.wide.size() > 0) interleave(both.wide.data(), host.gate.rows, host.gate.cols, wide);
    if (both.narrow.size() > 0) interleave(both.narrow.data(), host.gate.rows, host.gate.cols, narrow);
    if (both.scales.size() > 0) interleave(both.scales.data(), host.gate.rows, 1, scales);
    const DeviceMatrix& experts = weights.layers[i].experts.gate_up;
    for (size_t j = 0; j < host.experts.size(); ++j) {
      const Matrix& gate = host.experts[j].gate;
      const int64_t first = static_cast<int64_t>(2 * j) * gate.rows;
      if (experts.wide.size() > 0)
        interleave(experts.wide.data() + first * gate.cols, gate.rows, gate.cols, wide);
      if (experts.narrow.size() > 0) {
        interleave(experts.narrow.data() + first * gate.cols, gate.rows, gate.cols, narrow);
        interleave(experts.scales.data() + first, gate.rows, 1, scales);
      }
    }
  }
  check(cudaDeviceSynchronize(), "interleaving gate and up");
}

}  // namespace

PackedPart make_part(DType type, int64_t rows, int64_t cols, const RowPlace& place) {
  const int64_t row_bytes = cols / block_values(type) * block_bytes(type);
  PackedPart part{DeviceMemory<uint8_t>(rows * row_bytes), {}, {}, place};
  part.rows = {type, part.memory.data(), rows, row_bytes, static_cast<int32_t>(cols)};
  return part;
}

void find_scales(DeviceMatrix& matrix) {
  if (matrix.packed.empty()) return;
  int64_t rows = 0;
  for (const PackedPart& part : matrix.packed) rows += part.rows.rows;
  matrix.peaks.grow(rows);
  matrix.scales.grow(rows);
  for (const PackedPart& part : matrix.packed)
    find_peaks(part.rows, part.place, matrix.peaks.data(), matrix.scales.data(), nullptr);
}

std::vector<float> frequencies(const ModelConfig& config) {
  std::vector<float> all;
  for (const RopeTable& rope : config.ropes) all.insert(all.end(), rope.freqs.begin(), rope.freqs.end());
  all.resize(static_cast<size_t>(rotary_tables(config)) * static_cast<size_t>(config.rotary_dim / 2), 0);
  return all;
}

DeviceMemory<float> upload_vector(const std::vector<float>& values) {
  DeviceMemory<float> device(static_cast<int64_t>(values.size()));
  if (!values.empty())
    check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "upload");
  return device;
}

int64_t DeviceMatrix::bytes() const {
  int64_t total = wide.size() * 2 + narrow.size() + (scales.size() + peaks.size()) * 4;
  for (const PackedPart& part : packed) total += part.memory.size() + part.adapter.size() * 4;
  return total;
}
int64_t DeviceMatrix::values() const {
  int64_t total = wide.size() + narrow.size();
  for (const PackedPart& part : packed) total += part.rows.rows * part.rows.cols;
  return total;
}

int64_t DeviceWeights::bytes() const {
  int64_t total = (embedding.size() + output.size()) * int64_t{sizeof(bf16)} + packed_embedding.memory.size();
  for (const DeviceLayer& layer : layers) {
    total += layer.experts.bytes();
    for (const DeviceMatrix* matrix : layer.matrices()) total += matrix->bytes();
  }
  return total;
}

bool can_stay_packed(const Model& model) {
  // Sorted int4 (fp32 that is put together on reading) would grow.
  const auto fits = [&](const Matrix& matrix) {
    return matrix.cols % 8 == 0 && !(matrix.source && matrix.dtype == DType::f32);
  };
  for (const LayerWeights& layer : model.layers)
    for (const Matrix* matrix : layer.linears())
      if (!fits(*matrix)) return false;
  // All experts of a layer lie in one matrix.
  for (const LayerWeights& layer : model.layers)
    for (const auto name : {&ExpertWeights::gate, &ExpertWeights::up, &ExpertWeights::down})
      for (const ExpertWeights& expert : layer.experts)
        if ((expert.*name).dtype != (layer.experts.front().*name).dtype || (expert.*name).adapter)
          return false;
  return fits(model.embedding) && !model.embedding.adapter;
}

int64_t weight_bytes(const Model& model, WeightKind kind) {
  const auto values = [](const Matrix& matrix) { return matrix.rows * matrix.cols; };
  const int64_t value_bytes = kind.fp8 ? 1 : 2;
  const int64_t count = model.config.experts.count;
  int64_t total = 0, most = 0, twice = 0;
  for (const LayerWeights& layer : model.layers) {
    total += biases_of(layer) * 4;
    total += 2 * values(layer.router);
    for (const Matrix* matrix : layer.linears()) {
      if (matrix == &layer.router) continue;  // in bf16 always
      const bool packed = kind.packed && matrix->dtype != DType::bf16;
      total += packed ? matrix->rows * matrix->row_bytes() : values(*matrix) * value_bytes;
      if (kind.fp8) total += matrix->rows * (packed ? 8 : 4);
      if (packed) total += adapter_values(*matrix) * 4;
    }
    // Room for the rows of gate and up while they are interleaved, or for any matrix expanded.
    if (!layer.experts.empty()) {
      const ExpertWeights& expert = layer.experts.front();
      const int64_t both = values(expert.gate) + values(expert.up);
      most = std::max({most, both, kind.packed ? expanded_values(both * count, count) : 0});
      if (!kind.packed && in_mxfp4(layer))  // one layer's are there twice
        for (const ExpertWeights& each : layer.experts)
          for (const Matrix* matrix : {&each.gate, &each.up, &each.down})
            twice = std::max(twice, count * 3 * matrix->rows * matrix->row_bytes());
    }
    most = std::max({most, values(layer.gate) + values(layer.up),
                     kind.packed ? values(layer.q) + values(layer.k) + values(layer.v) : 0,
                     kind.packed ? std::max(values(layer.o), values(layer.down)) : 0});
  }
  const bool tied = model.config.tied_output;
  total +=
      kind.packed && !tied ? model.embedding.rows * model.embedding.row_bytes() : values(model.embedding) * 2;
  if (!tied) total += values(model.output) * 2;
  return total + twice + most * value_bytes;
}

DeviceWeights upload_weights(const Model& model, WeightKind kind) {
  DeviceWeights weights;
  Upload upload(kind);
  if (kind.packed && !model.config.tied_output)
    weights.packed_embedding = upload.stored(model.embedding, {});
  else
    weights.embedding = upload.stack(std::array{&model.embedding});
  for (const LayerWeights& layer : model.layers) {
    DeviceLayer device;
    device.pre_attention_norm = upload.vector(layer.pre_attention_norm);
    device.post_attention_norm = upload.vector(layer.post_attention_norm);
    device.pre_mlp_norm = upload.vector(layer.pre_mlp_norm);
    device.post_mlp_norm = upload.vector(layer.post_mlp_norm);
    device.q_norm = upload.vector(layer.q_norm);
    device.k_norm = upload.vector(layer.k_norm);
    device.qkv_bias = upload.joined_bias(layer);
    device.qkv = upload.matrix({&layer.q, &layer.k, &layer.v});
    device.o = upload.matrix({&layer.o});
    device.o_bias = upload.vector(layer.o_bias);
    device.sinks = upload_vector(in_base_2(layer.sinks.read_all()));
    if (!layer.gate.empty()) {
      device.gate_up = upload.matrix({&layer.gate, &layer.up}, true);
      device.down = upload.matrix({&layer.down});
    }
    device.experts = upload.experts(layer, model.config.experts);
    weights.layers.push_back(std::move(device));
  }
  weights.final_norm = upload.vector(model.final_norm);
  if (!model.config.tied_output) weights.output = upload.stack(std::array{&model.output});
  weights.rope_freqs = upload_vector(frequencies(model.config));
  upload.run();
  interleave_gate_up(model, weights);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    DeviceLayer& layer = weights.layers[i];
    DeviceExperts& experts = layer.experts;
    if (kind.fp8)
      for (DeviceMatrix* matrix : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) find_scales(*matrix);
    experts.narrow = kind.fp8;
    if (in_mxfp4(model.layers[i])) {
      settle_mxfp4(experts, kind, weights.mxfp4);
    } else if (kind.fp8) {
      find_scales(experts.gate_up);
      find_scales(experts.down);
    }
    if (!model.config.experts.biases) continue;
    const RowOrder order = experts.narrow ? RowOrder::by_sixteens : RowOrder::by_eights;
    experts.gate_up_bias = upload_vector(gate_up_biases(model.layers[i], order));
    experts.down_bias = upload_vector(down_biases(model.layers[i]));
  }
  check(cudaDeviceSynchronize(), "loading weights");
  return weights;
}

}  // namespace sheaf::cuda
