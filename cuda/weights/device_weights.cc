#include "cuda/weights/device_weights.h"

#include <cmath>
#include <deque>

#include "cuda/ops/ops.h"
#include "cuda/weights/weight_stream.h"

namespace sheaf::cuda {
namespace {

constexpr int kBuffersOnTheirWay = 8;  // besides one for every thread to fill

/// Copies on a stream of its own. The stream waits for what the default stream did before (clearing biases).
class DeviceSink final : public WeightSink {
 public:
  explicit DeviceSink(int buffers) {
    check(cudaGetDevice(&device_), "asking for the device");
    check(cudaStreamCreate(&stream_), "making a stream");
    for (int i = 0; i < buffers; ++i) {
      // Without blocking sync a waiting thread would take a core from those that read.
      check(cudaEventCreateWithFlags(&copied_.emplace_back(), cudaEventBlockingSync | cudaEventDisableTiming),
            "making an event");
    }
  }
  DeviceSink(const DeviceSink&) = delete;
  DeviceSink& operator=(const DeviceSink&) = delete;
  ~DeviceSink() override {
    for (cudaEvent_t event : copied_) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
  }

  void send(int buffer, const std::byte* from, int64_t bytes, std::byte* to) override {
    check(cudaSetDevice(device_), "choosing the device");
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_),
          "sending weights");
    check(cudaEventRecord(copied_[static_cast<size_t>(buffer)], stream_), "sending weights");
  }
  void wait(int buffer) override {
    check(cudaSetDevice(device_), "choosing the device");
    check(cudaEventSynchronize(copied_[static_cast<size_t>(buffer)]), "sending weights");
  }

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> copied_;  ///< by buffer; one that was never recorded counts as done
};

DeviceMemory<float> upload_vector(const std::vector<float>& values) {
  DeviceMemory<float> device(static_cast<int64_t>(values.size()));
  if (!values.empty())
    check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "upload");
  return device;
}

/// Makes room on the device for every weight first, then streams all of them.
class Upload {
 public:
  explicit Upload(WeightNumbers numbers) : numbers_(numbers) {}

  /// Matrices one above the other, as bf16.
  DeviceMemory<bf16> stack(std::initializer_list<const Matrix*> matrices) {
    DeviceMemory<bf16> device(count_values(matrices));
    bf16* to = device.data();
    for (const Matrix* matrix : matrices) {
      add(*matrix, WeightForm::rounded, to);
      to += matrix->rows * matrix->cols;
    }
    return device;
  }

  /// The same as the layers have them.
  DeviceMatrix matrix(std::initializer_list<const Matrix*> matrices) {
    DeviceMatrix device;
    if (numbers_ == WeightNumbers::wide) {
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
      add(*matrix, WeightForm::narrow, to, scales);
      to += matrix->rows * matrix->cols;
      scales += matrix->rows;
    }
    return device;
  }

  DeviceMemory<float> vector(const Matrix& matrix) {
    if (matrix.empty()) return {};
    DeviceMemory<float> device(matrix.cols);
    add(matrix, WeightForm::exact, device.data());
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
      if (!bias->empty()) add(*bias, WeightForm::exact, to);
      to += matrix->rows;
    }
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
      check(cudaMemcpy(to, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice), "sending scales");
  }

 private:
  static int64_t count_values(std::initializer_list<const Matrix*> matrices) {
    int64_t values = 0;
    for (const Matrix* matrix : matrices) values += matrix->rows * matrix->cols;
    return values;
  }

  void add(const Matrix& matrix, WeightForm form, void* to, float* scales = nullptr) {
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

  WeightNumbers numbers_;
  std::vector<WeightSlice> wholes_;
  std::deque<Scales> scales_;
};

/// Puts the rows of gate and up side by side. `halves` is memory to work in.
template <class T>
void interleave(const DeviceMemory<T>& both, int64_t cols, DeviceMemory<T>& halves) {
  if (both.size() == 0) return;
  halves.grow(both.size());
  check(cudaMemcpyAsync(halves.data(), both.data(), static_cast<size_t>(both.size()) * sizeof(T),
                        cudaMemcpyDeviceToDevice, nullptr),
        "interleaving gate and up");
  interleave_rows(halves.data(), both.size() / 2 / cols, cols, both.data(), nullptr);
}

/// The products' kernels want gate and up of the same values side by side.
void interleave_gate_up(const Model& model, DeviceWeights& weights) {
  DeviceMemory<bf16> wide;
  DeviceMemory<e4m3> narrow;
  DeviceMemory<float> scales;
  for (const DeviceLayer& layer : weights.layers) {
    interleave(layer.gate_up.wide, model.config.hidden, wide);
    interleave(layer.gate_up.narrow, model.config.hidden, narrow);
    interleave(layer.gate_up.scales, 1, scales);
  }
  check(cudaDeviceSynchronize(), "interleaving gate and up");
}

}  // namespace

int64_t DeviceWeights::bytes() const {
  int64_t total = (embedding.size() + output.size()) * int64_t{sizeof(bf16)};
  for (const DeviceLayer& layer : layers)
    total += layer.qkv.bytes() + layer.o.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  return total;
}

int64_t weight_bytes(const Model& model, WeightNumbers numbers) {
  int64_t wide = model.embedding.rows * model.embedding.cols, values = 0;
  if (!model.config.tied_output) wide += model.output.rows * model.output.cols;
  int64_t most = 0;  // a second copy of gate and up while their rows are interleaved
  for (const LayerWeights& layer : model.layers) {
    for (const Matrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
      values += matrix->rows * matrix->cols;
    most = std::max(most, 2 * layer.gate.rows * layer.gate.cols);
  }
  return wide * int64_t{sizeof(bf16)} + (values + most) * (numbers == WeightNumbers::narrow ? 1 : 2);
}

DeviceWeights upload_weights(const Model& model, WeightNumbers numbers) {
  DeviceWeights weights;
  Upload upload(numbers);
  weights.embedding = upload.stack({&model.embedding});
  for (const LayerWeights& layer : model.layers) {
    DeviceLayer device;
    device.attention_norm = upload.vector(layer.attention_norm);
    device.mlp_norm = upload.vector(layer.mlp_norm);
    device.q_norm = upload.vector(layer.q_norm);
    device.k_norm = upload.vector(layer.k_norm);
    device.qkv_bias = upload.joined_bias(layer);
    device.qkv = upload.matrix({&layer.q, &layer.k, &layer.v});
    device.o = upload.matrix({&layer.o});
    device.gate_up = upload.matrix({&layer.gate, &layer.up});
    device.down = upload.matrix({&layer.down});
    weights.layers.push_back(std::move(device));
  }
  weights.final_norm = upload.vector(model.final_norm);
  if (!model.config.tied_output) weights.output = upload.stack({&model.output});
  weights.rope_freqs = upload_vector(model.config.rope_freqs);
  upload.run();
  interleave_gate_up(model, weights);
  return weights;
}

DeviceWeights random_weights(const ModelConfig& config, WeightNumbers numbers, uint64_t seed) {
  auto values = [&](int64_t rows, int64_t cols) {
    DeviceMemory<bf16> device(rows * cols);
    fill_random(device.data(), rows * cols, 1.0f / std::sqrt(static_cast<float>(cols)), seed++, nullptr);
    return device;
  };
  auto matrix = [&](int64_t rows, int64_t cols) {
    DeviceMatrix device;
    device.wide = values(rows, cols);
    if (numbers == WeightNumbers::wide) return device;
    device.narrow.grow(rows * cols);
    device.scales.grow(rows);
    round_weights(device.wide.data(), rows, cols, device.narrow.data(), device.scales.data(), nullptr);
    check(cudaDeviceSynchronize(), "rounding random weights");
    device.wide = {};
    return device;
  };
  auto ones = [](int64_t count) {
    return upload_vector(std::vector<float>(static_cast<size_t>(count), 1.0f));
  };
  const int64_t q_size = int64_t{config.heads} * config.head_dim,
                kv_size = int64_t{config.kv_heads} * config.head_dim;
  DeviceWeights weights;
  weights.embedding = values(config.vocab, config.hidden);
  for (int32_t i = 0; i < config.layers; ++i) {
    DeviceLayer layer;
    layer.attention_norm = ones(config.hidden);
    layer.mlp_norm = ones(config.hidden);
    if (config.qk_norm != QkNorm::none) {
      layer.q_norm = ones(config.qk_norm == QkNorm::per_head ? config.head_dim : q_size);
      layer.k_norm = ones(config.qk_norm == QkNorm::per_head ? config.head_dim : kv_size);
    }
    layer.qkv = matrix(q_size + 2 * kv_size, config.hidden);
    layer.o = matrix(config.hidden, q_size);
    layer.gate_up = matrix(int64_t{2} * config.ffn, config.hidden);
    layer.down = matrix(config.hidden, config.ffn);
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = ones(config.hidden);
  if (!config.tied_output) weights.output = values(config.vocab, config.hidden);
  weights.rope_freqs = upload_vector(config.rope_freqs);
  check(cudaDeviceSynchronize(), "making random weights");
  return weights;
}

}  // namespace sheaf::cuda
