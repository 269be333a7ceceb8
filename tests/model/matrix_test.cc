#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/model/model.h"

namespace sheaf {
namespace {

/// Rows [rows, 2] whose values tell their row: {10 r, 10 r + 1}.
std::vector<float> counted(int rows) {
  std::vector<float> values;
  for (int r = 0; r < rows; ++r) {
    values.push_back(10.0f * static_cast<float>(r));
    values.push_back(10.0f * static_cast<float>(r) + 1);
  }
  return values;
}

Matrix over(const std::vector<float>& values, int64_t cols) {
  Matrix matrix;
  matrix.name = "test";
  matrix.rows = static_cast<int64_t>(values.size()) / cols;
  matrix.cols = cols;
  matrix.data = reinterpret_cast<const std::byte*>(values.data());
  return matrix;
}

TEST(Matrix, ReadsRowsAndSlices) {
  const auto values = counted(6);
  const Matrix matrix = over(values, 2);
  EXPECT_EQ(matrix.read_all(), values);
  const Matrix part = matrix.slice(2, 3, "part");
  EXPECT_EQ(part.name, "part");
  std::vector<float> row(2);
  part.read(1, 1, row.data());
  EXPECT_EQ(row, (std::vector<float>{30, 31}));
  EXPECT_THROW(part.read(2, 2, row.data()), Error);
  EXPECT_THROW(matrix.slice(5, 2, "past the end"), Error);
}

TEST(Matrix, PairedHeadsComeBackAsHalves) {
  // Two heads of four rows, stored 0 2 1 3: row j of half s lies at 2 j + s.
  const auto values = counted(8);
  Matrix matrix = over(values, 2);
  matrix.rope_head_dim = 4;
  const auto read = matrix.read_all();
  std::vector<float> order;
  for (size_t i = 0; i < read.size(); i += 2) order.push_back(read[i] / 10);
  EXPECT_EQ(order, (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  const auto second = matrix.slice(4, 4, "second head").read_all();
  EXPECT_EQ(second[2], 60);
  EXPECT_THROW(matrix.slice(2, 4, "not whole heads"), Error);
}

TEST(Matrix, AdapterIsAddedInModelOrderAndSlicedWithItsRows) {
  const std::vector<float> zeros(16, 0.0f);
  Matrix matrix = over(zeros, 2);
  matrix.rope_head_dim = 4;
  auto delta = std::make_shared<LowRank>();
  delta->rank = 1;
  delta->scale = 2;
  delta->a = {1, 3};
  delta->b = {0, 1, 2, 3, 4, 5, 6, 7};
  matrix.adapter = delta;
  const auto all = matrix.read_all();
  for (size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(all[2 * row], 2.0f * static_cast<float>(row));
    EXPECT_EQ(all[2 * row + 1], 6.0f * static_cast<float>(row));
  }
  const auto part = matrix.slice(4, 4, "part").read_all();
  EXPECT_EQ(std::vector<float>(all.begin() + 8, all.end()), part);
}

TEST(Matrix, StoredRowsAreTheRowsThatReadDecodes) {
  std::mt19937 random(5);
  for (const int32_t heads_of : {0, 8}) {
    Matrix matrix;
    matrix.name = "m";
    matrix.dtype = DType::q8_0;
    matrix.rows = 24;
    matrix.cols = 64;
    matrix.rope_head_dim = heads_of;
    std::vector<std::byte> blocks(static_cast<size_t>(matrix.rows * matrix.row_bytes()));
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(random() % 60);  // finite scales
    matrix.data = blocks.data();
    std::vector<std::byte> stored(static_cast<size_t>(10 * matrix.row_bytes()));
    matrix.read_stored(7, 10, stored.data());
    std::vector<float> right(640), got(640);
    matrix.read(7, 10, right.data());
    to_f32(matrix.dtype, stored.data(), 640, got.data());
    EXPECT_EQ(got, right) << heads_of;
    EXPECT_THROW(matrix.read_stored(20, 5, stored.data()), Error);
    // They are without the adapter, which must not make them infinite.
    auto adapter = std::make_shared<LowRank>();
    adapter->rank = 1;
    adapter->scale = 1;
    adapter->a.assign(static_cast<size_t>(matrix.cols), 0.5f);
    adapter->b.assign(static_cast<size_t>(matrix.rows), 0.5f);
    matrix.adapter = adapter;
    std::vector<std::byte> again(static_cast<size_t>(matrix.row_bytes()));
    matrix.read_stored(0, 1, again.data());
    matrix.adapter = nullptr;
    std::vector<std::byte> plain(again.size());
    matrix.read_stored(0, 1, plain.data());
    EXPECT_EQ(again, plain);
    adapter->b[0] = std::numeric_limits<float>::infinity();
    matrix.adapter = adapter;
    EXPECT_THROW(matrix.read_stored(0, 1, again.data()), Error);
  }
}

}  // namespace
}  // namespace sheaf
