// The host's part of loading, without a GPU: matrices are cut, read on many threads and come out of the ring
// in their places, whatever the sink does.
#include "cuda/weights/weight_stream.h"

#include <chrono>
#include <cstring>
#include <cuda_bf16.h>
#include <deque>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <random>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "core/base/error.h"
#include "tests/model/finite_blocks.h"
#include "tests/skip.h"

namespace sheaf::cuda {
namespace {

/// Matrices of random blocks and room for what is sent.
class Weights {
 public:
  void add(DType dtype, int64_t rows, int64_t cols, Precision form, int32_t rope_head_dim = 0,
           int32_t rank = 0) {
    Matrix& matrix = matrices_.emplace_back();
    matrix.name = "matrix " + std::to_string(matrices_.size());
    matrix.dtype = dtype;
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.rope_head_dim = rope_head_dim;
    auto& blocks = blocks_.emplace_back(static_cast<size_t>(rows * matrix.row_bytes()));
    fill_with_finite_blocks(dtype, blocks.data(), rows * cols / block_values(dtype), random_);
    matrix.data = blocks.data();
    if (rank > 0) {
      auto delta = std::make_shared<LowRank>();
      delta->rank = rank;
      delta->scale = 0.5f;
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < rank * cols; ++i) delta->a.push_back(normal(random_));
      for (int64_t i = 0; i < rank * rows; ++i) delta->b.push_back(normal(random_));
      matrix.adapter = delta;
    }
    WeightSlice whole{&matrix, 0, rows, form, nullptr};
    whole.to = received_.emplace_back(static_cast<size_t>(whole.bytes()), std::byte{0xee}).data();
    wholes.push_back(whole);
  }

  /// One of every kind, each larger than a small buffer.
  void add_every_kind() {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1,
                              DType::q5_0, DType::q4_k, DType::q5_k, DType::q6_k}) {
      add(dtype, 37, 256, Precision::bf16);
      add(dtype, 48, 256, Precision::bf16, 16);
      add(dtype, 48, 256, Precision::bf16, 8, 3);
      add(dtype, 20, 512, Precision::bf16, 0, 4);
      add(dtype, 1, 768, Precision::f32);
    }
    add(DType::f32, 5, 3, Precision::bf16);
    add(DType::f32, 1, 1, Precision::f32);
  }

  /// Everything is where it belongs, as Matrix::read gives it and CUDA's own function rounds it.
  void check() const {
    for (size_t m = 0; m < wholes.size(); ++m) {
      const std::vector<float> right = wholes[m].matrix->read_all();
      const std::byte* got = received_[m].data();
      for (size_t i = 0; i < right.size(); ++i) {
        if (wholes[m].form == Precision::f32) {
          ASSERT_EQ(std::memcmp(got + 4 * i, &right[i], 4), 0) << matrices_[m].name << " value " << i;
        } else {
          const __nv_bfloat16 value = __float2bfloat16(right[i]);
          ASSERT_EQ(std::memcmp(got + 2 * i, &value, 2), 0) << matrices_[m].name << " value " << i;
        }
      }
    }
  }

  std::vector<WeightSlice> wholes;

 private:
  std::mt19937 random_{7};
  std::deque<Matrix> matrices_;
  std::deque<std::vector<std::byte>> blocks_, received_;
};

/// Copies only when it is waited for, as late as a device may, and checks how it is used.
class LateSink : public WeightSink {
 public:
  explicit LateSink(int buffers) : pending_(static_cast<size_t>(buffers)) {}
  void send(int buffer, const std::byte* from, int64_t bytes, std::byte* to) override {
    EXPECT_FALSE(sending_.exchange(true)) << "two threads send at once";
    {
      const std::scoped_lock lock(mutex_);
      Copy& copy = pending_[static_cast<size_t>(buffer)];
      EXPECT_EQ(copy.from, nullptr) << "buffer " << buffer << " was filled again before it was copied";
      copy = {from, bytes, to};
      order.push_back(buffer);
    }
    ++sent;
    before_sent();
    sending_ = false;
  }
  void wait(int buffer) override {
    const std::scoped_lock lock(mutex_);
    Copy& copy = pending_[static_cast<size_t>(buffer)];
    if (copy.from != nullptr) std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
    copy = {};
    waited.push_back(buffer);
  }
  virtual void before_sent() {}

  int sent = 0;
  std::vector<int> order, waited;

 private:
  struct Copy {
    const std::byte* from = nullptr;
    int64_t bytes = 0;
    std::byte* to = nullptr;
  };
  std::vector<Copy> pending_;
  std::mutex mutex_;
  std::atomic<bool> sending_ = false;
};

struct Memory {
  Memory(int buffers, int64_t buffer_bytes)
      : bytes(static_cast<size_t>(buffers * buffer_bytes)), ring{bytes.data(), buffers, buffer_bytes} {}
  std::vector<std::byte> bytes;
  WeightRing ring;
};

TEST(WeightStream, EveryKindArrivesRounded) {
  for (const auto& [threads, buffers, buffer_bytes] :
       {std::tuple{1, 1, 3072}, {1, 4, 4096}, {3, 2, 3500}, {16, 24, 8192}, {8, 3, 1 << 20}, {40, 5, 3072}}) {
    Weights weights;
    weights.add_every_kind();
    Memory memory(buffers, buffer_bytes);
    LateSink sink(buffers);
    const auto slices = cut_to_slices(weights.wholes, buffer_bytes);
    stream_weights(slices, memory.ring, threads, sink);
    EXPECT_EQ(sink.sent, static_cast<int>(slices.size()));
    weights.check();
  }
}

TEST(WeightStream, SlicesCoverEveryRowOnceInFileOrder) {
  Weights weights;
  weights.add_every_kind();
  const auto slices = cut_to_slices(weights.wholes, 3072);
  std::set<std::pair<const Matrix*, int64_t>> rows;
  const std::byte* last = nullptr;
  for (const WeightSlice& slice : slices) {
    EXPECT_LE(slice.bytes(), 3072);
    EXPECT_GT(slice.rows, 0);
    for (int64_t row = 0; row < slice.rows; ++row)
      EXPECT_TRUE(rows.emplace(slice.matrix, slice.first_row + row).second) << slice.matrix->name;
    const std::byte* place = slice.matrix->data + slice.first_row * slice.matrix->row_bytes();
    EXPECT_LE(last, place);
    last = place;
  }
  size_t all = 0;
  for (const WeightSlice& whole : weights.wholes) all += static_cast<size_t>(whole.rows);
  EXPECT_EQ(rows.size(), all);
}

TEST(WeightStream, ARowLargerThanABufferGetsALargerBuffer) {
  Weights weights;
  weights.add(DType::bf16, 3, 64, Precision::bf16);
  const int64_t usual = ring_buffer_bytes(weights.wholes);
  EXPECT_THROW(cut_to_slices(weights.wholes, 127), Error);
  weights.add(DType::bf16, 2, usual, Precision::bf16);
  const int64_t larger = ring_buffer_bytes(weights.wholes);
  EXPECT_EQ(larger, 2 * usual);
  Memory memory(2, larger);
  LateSink sink(2);
  stream_weights(cut_to_slices(weights.wholes, larger), memory.ring, 2, sink);
  weights.check();
  EXPECT_THROW(stream_weights(weights.wholes, {memory.ring.memory, 2, usual}, 2, sink), Error);
}

TEST(WeightStream, BuffersAreTakenInTheOrderTheyWereSent) {
  Weights weights;
  weights.add(DType::bf16, 64, 256, Precision::bf16);
  Memory memory(4, 512);
  LateSink sink(4);
  stream_weights(cut_to_slices(weights.wholes, 512), memory.ring, 1, sink);
  ASSERT_EQ(sink.order.size(), 64u);
  for (size_t i = 0; i < sink.order.size(); ++i) EXPECT_EQ(sink.order[i], static_cast<int>(i % 4));
  // One wait before each filling, and one for each buffer at the end.
  EXPECT_EQ(sink.waited.size(), 64u + 4u);
}

class SlowSink final : public LateSink {
 public:
  using LateSink::LateSink;
  void before_sent() override { std::this_thread::sleep_for(std::chrono::microseconds(300)); }
};

TEST(WeightStream, ASlowSinkGetsEveryWeightWhole) {
  Weights weights;
  weights.add_every_kind();
  Memory memory(3, 4096);
  SlowSink sink(3);
  stream_weights(cut_to_slices(weights.wholes, 4096), memory.ring, 12, sink);
  weights.check();
}

class ThrowingSink final : public LateSink {
 public:
  ThrowingSink(int buffers, int good) : LateSink(buffers), good_(good) {}
  void before_sent() override {
    if (sent > good_) fail("the device is gone after {}", good_);
  }

 private:
  int good_;
};

TEST(WeightStream, AnErrorOfTheSinkReachesTheCaller) {
  for (const int threads : {1, 2, 16}) {
    Weights weights;
    weights.add_every_kind();
    Memory memory(4, 3072);
    ThrowingSink sink(4, 10);
    try {
      stream_weights(cut_to_slices(weights.wholes, 3072), memory.ring, threads, sink);
      FAIL() << "nothing was said";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "the device is gone after 10");
    }
    EXPECT_EQ(sink.sent, 11) << "sent on after the error";
  }
}

class WaitingFailsSink final : public LateSink {
 public:
  using LateSink::LateSink;
  void wait(int buffer) override {
    LateSink::wait(buffer);
    if (++waits_ > 20) fail("a copy failed");
  }

 private:
  std::atomic<int> waits_ = 0;
};

TEST(WeightStream, AnErrorOfACopyReachesTheCaller) {
  Weights weights;
  weights.add_every_kind();
  Memory memory(4, 3072);
  WaitingFailsSink sink(4);
  EXPECT_THROW(stream_weights(cut_to_slices(weights.wholes, 3072), memory.ring, 6, sink), Error);
}

TEST(WeightStream, AFileCutShortReachesTheCallerByName) {
  const std::string path = (std::filesystem::temp_directory_path() / "sheaf-weights-XXXXXX").string();
  std::string name = path;
  const int file = mkstemp(name.data());
  ASSERT_GE(file, 0);
  const int64_t rows = 256, cols = 2048, bytes = rows * cols * 2;
  ASSERT_EQ(ftruncate(file, bytes), 0);
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  // 22 is MADV_POPULATE_READ.
  const bool can = madvise(mapped, 4096, 22) == 0;
  std::string said;
  if (can) {
    ASSERT_EQ(ftruncate(file, bytes / 2), 0);
    Matrix matrix;
    matrix.name = "cut.weight";
    matrix.dtype = DType::bf16;
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.data = static_cast<const std::byte*>(mapped);
    std::vector<std::byte> out(static_cast<size_t>(bytes));
    const std::vector<WeightSlice> whole{{&matrix, 0, rows, Precision::bf16, out.data()}};
    Memory memory(4, 1 << 16);
    LateSink sink(4);
    try {
      stream_weights(cut_to_slices(whole, 1 << 16), memory.ring, 4, sink);
    } catch (const Error& error) {
      said = error.what();
    }
  }
  munmap(mapped, bytes);
  close(file);
  std::filesystem::remove(name);
  SKIP_UNLESS(can, test::Lacking::paging_in, "this kernel cannot page in a range (Linux 5.14 can)");
  EXPECT_EQ(said, name + ": tensor cut.weight cannot be read; the file was cut short or its disk failed");
}

TEST(WeightStream, AWeightThatIsNotFiniteReachesTheCallerByName) {
  std::vector<float> values(256 * 64, 1.0f);
  values[200 * 64 + 3] = std::numeric_limits<float>::infinity();
  Matrix matrix;
  matrix.name = "bad.weight";
  matrix.file = "model.safetensors";
  matrix.rows = 256;
  matrix.cols = 64;
  matrix.data = reinterpret_cast<const std::byte*>(values.data());
  std::vector<std::byte> out(values.size() * 4);
  std::vector<float> scales(256);
  for (const Precision form : {Precision::bf16, Precision::f32, Precision::fp8, Precision::automatic}) {
    const std::vector<WeightSlice> whole{{&matrix, 0, 256, form, out.data(), scales.data()}};
    Memory memory(4, 1 << 12);
    LateSink sink(4);
    try {
      stream_weights(cut_to_slices(whole, 1 << 12), memory.ring, 4, sink);
      ADD_FAILURE() << "nothing was said";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input);
      EXPECT_TRUE(std::string_view(error.what()).starts_with("model.safetensors: tensor bad.weight holds"))
          << error.what();
    }
  }
}

TEST(WeightStream, NothingToSendIsDoneAtOnce) {
  Memory memory(1, 64);
  LateSink sink(1);
  stream_weights({}, memory.ring, 3, sink);
  EXPECT_EQ(sink.sent, 0);
}

}  // namespace
}  // namespace sheaf::cuda
