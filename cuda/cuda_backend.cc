#include "cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "core/base/error.h"
#include "core/engine/step_batch.h"
#include "core/model/shapes.h"
#include "cuda/attention/attention_plan.h"
#include "cuda/base/device_memory.h"
#include "cuda/kv_mover.h"
#include "cuda/layer_graphs.h"
#include "cuda/loaded_model.h"
#include "cuda/stage_clock.h"
#include "cuda/step.h"
#include "cuda/weights/device_weights.h"

namespace sheaf {
namespace {

using namespace cuda;

constexpr int64_t kTimedSteps = 8;                  // one of so many is timed stage by stage
constexpr int64_t kBesideStep = int64_t{64} << 20;  // for graphs and kernels that are loaded late
constexpr int64_t kStepBesidePool = 1024;           // rows of a step that the pool must leave room for

/// The products of a small model are short, and so are its jobs: opening cuBLAS would take longer than it
/// saves.
ProductKernels kernels_for(int64_t weight_bytes, const CudaOptions& options) {
  constexpr int64_t small = 1'000'000'000;
  if (options.reproducible) return ProductKernels::only_ours;
  return weight_bytes < small ? ProductKernels::ours : ProductKernels::fastest;
}

/// Refuses what does not fit.
WeightKind kind_for(const Model& model, const CudaOptions& options) {
  const int64_t there = cuda_free_bytes(options.device);
  const auto fits = [&](bool packed) { return weight_bytes(model, {options.fp8, packed}) <= there; };
  const bool can_pack = can_stay_packed(model);
  if (options.weights == WeightStorage::packed && !can_pack)
    refuse(
        "model.weights: packed does not work with rows whose length is not a multiple of 8, with GPTQ's "
        "sorted columns (desc_act), or with experts of a layer that differ in their types or have adapters; "
        "set model.weights: expanded");
  if (options.weights == WeightStorage::packed ||
      (options.weights == WeightStorage::automatic && can_pack && !fits(false))) {
    if (fits(true)) return {options.fp8, true};
  } else if (fits(false)) {
    return {options.fp8, false};
  }
  const bool packed = options.weights != WeightStorage::expanded && can_pack;
  const bool other = !packed && can_pack && fits(true);
  refuse("{}: its weights need {:.1f} GB, but cuda:{} has {:.1f} GB free; {}", model.path,
         static_cast<double>(weight_bytes(model, {options.fp8, packed})) / 1e9, options.device,
         static_cast<double>(there) / 1e9,
         other ? "set model.weights: packed" : "set engine.device: cpu, or use a smaller model");
}

/// Has cuBLAS load what the first matrix product would load.
void load_cublas(int device) {
  choose_device(device);
  constexpr int64_t rows = 64, size = 512;
  const Stream stream;
  Products products(ProductKernels::fastest);
  products.set_stream(stream.get());
  const DeviceMemory<bf16> weight(size * size), in(rows * size);
  const DeviceMemory<float> out(rows * size);
  products.multiply(weight.data(), in.data(), rows, size, size, out.data());
  check(cudaStreamSynchronize(stream.get()), "the first product");
}

/// One prompt of `rows` rows, of which as many are picked as can be at once.
StepBatch one_prompt(int32_t rows, int32_t page_size) {
  StepBatch batch;
  batch.spans.push_back({0, rows});
  batch.tiles.push_back({0, 0, rows});
  for (int32_t row = 0; row < rows; ++row) {
    batch.tokens.push_back(0);
    batch.positions.push_back(row);
    batch.kv_slots.push_back(row);
    batch.tile_rows.push_back({row, row + 1});
    if (row % page_size == 0) batch.pages.push_back(row / page_size);
    if (row < kPicksAtOnce) batch.picks.push_back({.row = row});
  }
  return batch;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(ModelConfig config, DeviceWeights weights, const CudaOptions& options, ProductKernels kernels)
      : options_(options), model_(std::move(config), std::move(weights), options.fp8, kernels) {
    layers_to_run_ = model_.config.layer_count();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, options_.device), "reading the device's properties");
    name_ = properties.name;
    if (options_.fp8_keys) model_.head_scales = head_scales(model_);
    multiprocessors_ = properties.multiProcessorCount;
  }
  ~CudaBackend() override {
    cudaSetDevice(options_.device);
    cudaStreamSynchronize(model_.stream.get());
  }

  const ModelConfig& config() const override { return model_.config; }
  std::string device() const override { return name_; }
  std::string describe() const override {
    const Mxfp4Rows& rows = model_.weights.mxfp4;
    std::string exact;
    if (rows.rows > 0) exact = fmt::format(", {} of {} rows of MXFP4 need bf16", rows.inexact, rows.rows);
    if (rows.inexact > 0)
      exact +=
          fmt::format(" (the experts of {} layer{})", rows.wide_layers, rows.wide_layers == 1 ? "" : "s");
    return fmt::format("{} (cuda:{}), {}{}", name_, options_.device, numbers(), exact);
  }
  bool wants_whole_pages() const override { return options_.reproducible; }
  int64_t kv_bytes_per_token() const override { return footprint().kv_bytes_per_token; }
  int32_t preferred_tokens() const override { return footprint().preferred_tokens; }
  TimedStages stage_seconds() const override { return times_.by_stage(); }
  Routing routing() const override { return routing_; }

  void allocate_kv(int32_t pages, int32_t page_size) override {
    if (page_size < 2 || 64 % page_size != 0)
      fail("pages of {} tokens do not divide a block of 64 keys", page_size);
    choose_device();
    model_.pool = {};  // what was in it is not needed
    make_pool(int64_t{pages} * page_size);
    pages_ = pages;
    page_size_ = page_size;
    model_.attention_rounds = model_.fp8 && rounds_to_fp8(model_.layout, page_size);
    const KvPrecision stored = options_.fp8_keys ? KvPrecision::fp8 : KvPrecision::automatic;
    model_.attends_in_fp8 = attended_precision(config(), stored, options_.reproducible) == KvPrecision::fp8 &&
                            hopper_attention(model_.layout, page_size);
    model_.room = {};
    replays_ = options_.graphs && hopper_attention(model_.layout, page_size);
    graphs_.forget();
    planner_ = make_attention_planner(
        {model_.group(), page_size, 4 * multiprocessors_ / config().kv_heads, options_.reproducible});
    for (int32_t rows : {preferred_tokens(), 64}) warm_up(rows);
  }

  bool grows_kv() const override { return true; }
  void grow_kv(int32_t pages) override {
    choose_device();
    KvPool old = std::exchange(model_.pool, {});
    try {
      make_pool(int64_t{pages} * page_size_);
    } catch (const OutOfMemory&) {
      model_.pool = std::move(old);
      throw;
    }
    const int64_t heads = int64_t{2} * config().kv_heads, all = heads * config().layer_count();
    move_heads(old.wide, options_.fp8_keys ? heads : all, model_.pool.wide);
    move_heads(old.narrow_keys, all / 2, model_.pool.narrow_keys);
    move_heads(old.narrow_values, all / 2, model_.pool.narrow_values);
    move_heads(old.turns, 1, model_.pool.turns);
    let_go_of_memory();
    pages_ = pages;
  }

  void free_kv() override {
    choose_device();
    let_go_of_memory();
    model_.pool = {};
    model_.room = {};
  }

  std::string kv_kind() const override {
    return fmt::format("{}, {}{}", name_, numbers(), options_.fp8_keys ? ", a scale for each head" : "");
  }
  int64_t kv_slot_bytes(KvForm form) const override { return mover_.slot_bytes(form); }
  void read_kv(std::span<const int32_t> slots, std::span<std::byte> to, KvForm form) override {
    choose_device();
    mover_.read(slots, to, form);
  }
  void write_kv(std::span<const int32_t> slots, std::span<const std::byte> from, KvForm form) override {
    choose_device();
    mover_.write(slots, from, form);
  }
  std::shared_ptr<std::byte> host_memory(int64_t bytes) override {
    choose_device();
    return mover_.host_memory(bytes);
  }

  int32_t steps_at_once() const override { return static_cast<int32_t>(steps_.size()); }

  void start(const StepBatch& batch, std::span<Picked> picked) override { launch(batch, picked, {}); }

  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    if (in_flight_ > 0) fail("a step cannot run at once while others are in flight");
    launch(batch, picked, logits);
    finish();
  }

  void finish() override {
    if (in_flight_ == 0) fail("no step is in flight");
    choose_device();
    const Step& step = steps_[oldest_];
    oldest_ = (oldest_ + 1) % steps_.size();
    --in_flight_;
    check(cudaEventSynchronize(step.done.get()), "a step");
    if (step.rows() > 0) {
      step.clock.add_to(times_);
      count_routes(step);
    }
    step.hand_back();
  }

 private:
  /// What numbers are computed in: "bf16, reproducible".
  std::string numbers() const {
    const bool cutlass =
        config().experts.count > 0 && grouped_by(config(), model_.wide_experts()) == GroupedBy::ampere;
    return fmt::format("{}{}{}{}{}", model_.fp8 ? "fp8" : "bf16", model_.packed() ? ", weights packed" : "",
                       options_.fp8_keys ? ", keys and values in fp8" : "",
                       options_.reproducible ? ", reproducible" : "", cutlass ? ", experts by CUTLASS" : "");
  }

  /// An engine may be made on one thread and run on another.
  void choose_device() const { cuda::choose_device(options_.device); }

  void launch(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) {
    check_batch(batch, config(), pages_, page_size_);
    if (in_flight_ == steps_.size()) fail("{} steps are in flight already", in_flight_);
    choose_device();
    Step& step = steps_[(oldest_ + in_flight_) % steps_.size()];
    step.batch = &batch;
    step.picked = picked;
    try {
      if (step.rows() > 0) run(step, logits);
      check(cudaEventRecord(step.done.get(), model_.stream.get()), "a step's end");
      check(cudaGetLastError(), "starting a step");
    } catch (...) {
      // What was begun still reads arrays of this step, which the next one overwrites.
      cudaStreamSynchronize(model_.stream.get());
      throw;
    }
    ++in_flight_;
  }

  void run(Step& step, std::span<float> logits) {
    upload(step);
    const bool timed = launched_++ % kTimedSteps == 0;
    step.clock.begin(timed, model_.stream.get());
    start_rows(model_, step);
    step.clock.mark(Stage::other);
    run_or_replay_layers(step, timed);
    pick_tokens(model_, step, logits);
    fetch_routes(step);
    step.clock.mark(Stage::pick);
    step.clock.end();
  }

  void fetch_routes(Step& step) {
    const DeviceMemory<int32_t>& offsets = model_.room.experts.offsets;
    if (offsets.size() == 0) return;
    step.routed.grow(offsets.size());
    check(cudaMemcpyAsync(step.routed.data(), offsets.data(),
                          static_cast<size_t>(offsets.size()) * sizeof(int32_t), cudaMemcpyDeviceToHost,
                          model_.stream.get()),
          "fetching what experts were chosen");
  }
  void count_routes(const Step& step) {
    std::vector<int64_t> tokens_of(static_cast<size_t>(config().experts.count));
    const int64_t stride = std::ssize(tokens_of) + 1;
    for (int32_t index = 0; index < layers_to_run_; ++index) {
      if (!config().layers[static_cast<size_t>(index)].experts) continue;
      const int32_t* const offsets = step.routed.data() + index * stride;
      for (size_t expert = 0; expert < tokens_of.size(); ++expert)
        tokens_of[expert] = offsets[expert + 1] - offsets[expert];
      routing_.add(tokens_of);
    }
  }

  /// Plans the step and sends its arrays. After this it needs no more memory.
  void upload(Step& step) {
    try {
      step.pack(planner_, model_.windows);
      if (inputs_.size() < step.staging.capacity()) {
        let_go_of_memory();
        inputs_.grow(step.staging.capacity());
      }
      step.place(inputs_.data(), page_size_, options_.reproducible);
      make_room(step);
    } catch (const OutOfMemory&) {
      let_go_of_memory();
      model_.room = {};  // or a smaller step would find no more memory than this one
      throw;
    }
    step.staging.send(inputs_.data(), model_.stream.get());
  }

  void make_room(Step& step) {
    const std::vector<Pick>& picks = step.batch->picks;
    const auto together = static_cast<int64_t>(most_picks_together(picks, kPicksAtOnce));
    const Activations::Size size{step.rows(), step.partial_rows(), static_cast<int64_t>(picks.size()),
                                 together};
    if (!model_.room.holds(size)) {
      let_go_of_memory();
      model_.room.grow(size, config(), model_.layout, model_.fp8, model_.attends_in_fp8,
                       model_.wide_experts());
    }
    step.chosen.grow(model_.room.size.picks);
  }

  /// Before memory is replaced: waits for the steps that use it, and forgets the graphs that hold its
  /// address.
  void let_go_of_memory() {
    check(cudaStreamSynchronize(model_.stream.get()), "the steps before");
    graphs_.forget();
  }

  void run_or_replay_layers(Step& step, bool timed) {
    const auto run = [&] { run_layers(model_, step, layers_to_run_); };
    if (timed || !replays_ || step.weighs_documents() || layers_to_run_ < config().layer_count())
      return run();
    const bool replayed = graphs_.run({step.rows(), step.attention_kinds()}, model_.stream.get(), run);
    if (replayed && options_.replayed) ++*options_.replayed;
  }

  Footprint footprint() const { return cuda_footprint(model_.config, options_.fp8_keys); }

  /// A new pool; there is none yet.
  void make_pool(int64_t wanted) {
    const int64_t slots = (wanted + kNarrowPage - 1) / kNarrowPage * kNarrowPage;
    const ModelConfig& config = model_.config;
    const int64_t bytes = slots * footprint().kv_bytes_per_token;
    const int64_t step =
        cuda_step_bytes(config, kStepBesidePool, kStepBesidePool, options_.fp8_keys) + kBesideStep;
    if (bytes + step > cuda_free_bytes(options_.device))
      throw OutOfMemory(fmt::format("CUDA: {} MB of keys and values leave less than {} MB for a step",
                                    bytes / 1000000, step / 1000000));
    const int64_t values =
        int64_t{2} * config.layer_count() * config.kv_heads * slots * model_.layout.padded_dim;
    KvPool made;
    if (options_.fp8_keys) {
      made.narrow_keys.grow(values / 2);
      made.narrow_values.grow(values / 2);
      if (model_.key_biases()) made.turns.grow(slots * config.rotary_dim);
    }
    made.wide.grow(options_.fp8_keys ? values / config.layer_count() : values);
    // Hidden values count as 0 × what lies there, which must be a number.
    made.each([&]<class T>(const DeviceMemory<T>& memory) {
      if (memory.size() == 0) return;
      check(cudaMemsetAsync(memory.data(), 0, static_cast<size_t>(memory.size()) * sizeof(T),
                            model_.stream.get()),
            "clearing the pool");
    });
    model_.pool = std::move(made);
    model_.layout.slots = slots;
  }

  /// To a pool with more slots. `heads`: of all that are there, keys and values of each layer.
  template <class T>
  void move_heads(const DeviceMemory<T>& from, int64_t heads, const DeviceMemory<T>& to) const {
    if (from.size() == 0) return;
    const auto row = static_cast<size_t>(from.size() / heads) * sizeof(T);
    check(cudaMemcpy2DAsync(to.data(), static_cast<size_t>(to.size() / heads) * sizeof(T), from.data(), row,
                            row, static_cast<size_t>(heads), cudaMemcpyDeviceToDevice, model_.stream.get()),
          "moving keys and values");
  }

  /// A step up to the first layer with experts, or of one layer, so that the first real one need not load
  /// kernels and choose among cuBLAS's.
  void warm_up(int32_t most_rows) {
    const auto rows = static_cast<int32_t>(std::min<int64_t>(most_rows, int64_t{pages_} * page_size_));
    const StepBatch batch = one_prompt(rows, page_size_);
    std::vector<Picked> picked(batch.picks.size());
    const auto& layers = config().layers;
    const auto first = std::ranges::find_if(layers, &LayerConfig::experts);
    layers_to_run_ = first == layers.end() ? 1 : static_cast<int32_t>(first - layers.begin()) + 1;
    try {
      step(batch, picked, {});
    } catch (const OutOfMemory&) {
      // The engine will ask for smaller steps; what is not warm now gets warm then.
    }
    layers_to_run_ = config().layer_count();
    launched_ = 0;
    times_ = {};
    routing_ = {};
  }

  CudaOptions options_;
  std::string name_;
  int32_t multiprocessors_ = 0;
  LoadedModel model_;
  KvMover mover_{model_};
  int32_t pages_ = 0, page_size_ = 0;
  AttentionPlanner planner_;

  std::array<Step, 2> steps_;  ///< a ring
  size_t oldest_ = 0, in_flight_ = 0;
  DeviceMemory<std::byte> inputs_;  ///< the packed arrays of a step, one step after the other

  LayerGraphs graphs_;
  bool replays_ = false;  ///< whether this model's steps can be replayed
  int32_t layers_to_run_ = 0;

  int64_t launched_ = 0;
  StageTimes times_;
  Routing routing_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const Model& model, const CudaOptions& options) {
  choose_device(options.device);
  check_model(model.config, options);
  const WeightKind kind = kind_for(model, options);
  const ProductKernels kernels = kernels_for(weight_bytes(model, kind), options);
  std::future<void> beside;  // the upload
  if (kernels == ProductKernels::fastest)
    beside = std::async(std::launch::async, load_cublas, options.device);
  return std::make_unique<CudaBackend>(model.config, upload_weights(model, kind), options, kernels);
}

std::unique_ptr<Backend> make_random_cuda_backend(const ModelConfig& config, const CudaOptions& options,
                                                  uint64_t seed) {
  choose_device(options.device);
  check_model(config, options);
  // Expanded, the tables twice: of tokens and of the output.
  const int64_t values = layer_weights(config) + idle_weights(config);
  const int64_t bytes = (options.fp8 ? 1 : 2) * values + int64_t{4} * config.vocab * config.hidden;
  const bool packed =
      options.weights == WeightStorage::packed ||
      (options.weights == WeightStorage::automatic && bytes > cuda_free_bytes(options.device));
  DeviceWeights weights = random_weights(config, {options.fp8, packed}, seed);
  const ProductKernels kernels = kernels_for(weights.bytes(), options);
  return std::make_unique<CudaBackend>(config, std::move(weights), options, kernels);
}

int64_t cuda_free_bytes(int device) {
  size_t free_bytes = 0, total = 0;
  choose_device(device);
  check(cudaMemGetInfo(&free_bytes, &total), "asking for free memory");
  return static_cast<int64_t>(free_bytes);
}

}  // namespace sheaf
