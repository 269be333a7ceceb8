#include <algorithm>
#include <array>
#include <cstddef>

#include "cpu/kernels/int_x86.h"

/// TDPBSSD: 16 rows × 64 inputs times 64 inputs × 16 columns, 16,384 multiply-adds in 16 cycles, 52 until its
/// sums can be added to. So four tiles of sums take turns. A row's chunk is 64 bytes of one plane, a panel's
/// 1,024, so that both are loaded as they lie.
namespace sheaf {
namespace {

constexpr int64_t kDepth = 64;
constexpr int64_t kTileRows = 16;
constexpr int64_t kPlaneBytes = kDepth * kPanel;  // of a panel's chunk

struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t first_row = 0;
  uint8_t unused[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

using Sums = std::array<int32_t, kTileRows * kPanel>;

// Tiles are named by constants. 0 to 3 hold sums, the others what is multiplied.

void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

void store_sums(Sums* sums) {
  _tile_stored(0, sums[0].data(), 64);
  _tile_stored(1, sums[1].data(), 64);
  _tile_stored(2, sums[2].data(), 64);
  _tile_stored(3, sums[3].data(), 64);
}

/// One plane, 32 rows × two panels: rows in 4 and 5, panels in 6 and 7.
void multiply_four(const int8_t* a, int64_t row_bytes, const int8_t* b, int64_t panel_stride,
                   int64_t chunk_stride, int64_t chunks, Sums* sums) {
  clear_sums();
  for (int64_t chunk = 0; chunk < chunks; ++chunk, a += kDepth, b += chunk_stride) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, row_bytes);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, b + panel_stride, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, a + kTileRows * row_bytes, row_bytes);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  store_sums(sums);
}

/// One plane, up to 16 rows × four panels: rows in 4, panels in 5 to 7.
void multiply_row(const int8_t* a, int64_t row_bytes, const int8_t* b, int64_t panel_stride,
                  int64_t chunk_stride, int64_t chunks, Sums* sums) {
  clear_sums();
  for (int64_t chunk = 0; chunk < chunks; ++chunk, a += kDepth, b += chunk_stride) {
    _tile_loadd(4, a, row_bytes);
    _tile_loadd(5, b, 64);
    _tile_dpbssd(0, 4, 5);
    _tile_loadd(6, b + panel_stride, 64);
    _tile_dpbssd(1, 4, 6);
    _tile_loadd(7, b + 2 * panel_stride, 64);
    _tile_dpbssd(2, 4, 7);
    _tile_loadd(5, b + 3 * panel_stride, 64);
    _tile_dpbssd(3, 4, 5);
  }
  store_sums(sums);
}

/// One plane, up to 16 rows × one panel.
void multiply_one(const int8_t* a, int64_t row_bytes, const int8_t* b, int64_t chunk_stride, int64_t chunks,
                  Sums* sums) {
  _tile_zero(0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk, a += kDepth, b += chunk_stride) {
    _tile_loadd(4, a, row_bytes);
    _tile_loadd(5, b, 64);
    _tile_dpbssd(0, 4, 5);
  }
  _tile_stored(0, sums[0].data(), 64);
}

/// Two planes, up to 16 rows × one or two panels: high · high in 0 and 1, high · low + low · high in 2 and 3.
template <int Panels>
void multiply_pair(const int8_t* a, int64_t row_bytes, const int8_t* b, int64_t panel_stride,
                   int64_t chunk_stride, int64_t chunks, Sums* sums) {
  clear_sums();
  for (int64_t chunk = 0; chunk < chunks; ++chunk, a += 2 * kDepth, b += chunk_stride) {
    _tile_loadd(4, a, row_bytes);
    _tile_loadd(5, a + kDepth, row_bytes);
    _tile_loadd(6, b, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(2, 5, 6);
    _tile_loadd(7, b + kPlaneBytes, 64);
    if constexpr (Panels == 2) {
      _tile_loadd(6, b + panel_stride, 64);
      _tile_dpbssd(1, 4, 6);
      _tile_dpbssd(3, 5, 6);
    }
    _tile_dpbssd(2, 4, 7);
    if constexpr (Panels == 2) {
      _tile_loadd(7, b + panel_stride + kPlaneBytes, 64);
      _tile_dpbssd(3, 4, 7);
    }
  }
  store_sums(sums);
}

/// Hands the sums of `rows` rows of panel `panel` to where they go.
template <int Planes, class Out>
void put_rows(const Out& out, int64_t rows, int64_t panel, const Sums& high, const Sums& low) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t lane = 0; lane < kPanel; lane += kLanes) {
      const auto load = [&](const Sums& sums) __attribute__((always_inline)) {
        return *reinterpret_cast<const StoredInts*>(sums.data() + row * kPanel + lane);
      };
      put<Planes>(out, row, panel * kPanel + lane, load(high), load(low));
    }
}

template <class Out>
void multiply_bytes(const IntFactors& f, int64_t row, int64_t rows, const Out& out) {
  const int64_t row_bytes = f.chunks * kDepth;
  const int8_t* a = f.a + row * row_bytes;
  alignas(64) Sums sums[4];
  const int64_t together = rows > kTileRows ? 2 : 4;
  int64_t panel = 0;
  for (; panel + together <= f.panels; panel += together) {
    const int8_t* b = f.b + panel * f.panel_stride;
    const auto run = rows > kTileRows ? multiply_four : multiply_row;
    run(a, row_bytes, b, f.panel_stride, f.chunk_stride, f.chunks, sums);
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t first = i / together * kTileRows;
      put_rows<1>(out.at(row + first), std::min(kTileRows, rows - first), panel + i % together,
                  sums[static_cast<size_t>(i)], sums[static_cast<size_t>(i)]);
    }
  }
  for (; panel < f.panels; ++panel)
    for (int64_t first = 0; first < rows; first += kTileRows) {
      multiply_one(a + first * row_bytes, row_bytes, f.b + panel * f.panel_stride, f.chunk_stride, f.chunks,
                   sums);
      put_rows<1>(out.at(row + first), std::min(kTileRows, rows - first), panel, sums[0], sums[0]);
    }
}

template <class Out>
void multiply_two_planes(const IntFactors& f, int64_t row, int64_t rows, const Out& out) {
  const int64_t row_bytes = f.chunks * kDepth * 2;
  const int8_t* a = f.a + row * row_bytes;
  alignas(64) Sums sums[4];
  for (int64_t panel = 0; panel < f.panels; panel += 2) {
    const int64_t panels = std::min<int64_t>(2, f.panels - panel);
    const auto run = panels == 2 ? multiply_pair<2> : multiply_pair<1>;
    run(a, row_bytes, f.b + panel * f.panel_stride, f.panel_stride, f.chunk_stride, f.chunks, sums);
    for (int64_t p = 0; p < panels; ++p)
      put_rows<2>(out.at(row), rows, panel + p, sums[static_cast<size_t>(p)],
                  sums[static_cast<size_t>(2 + p)]);
  }
}

/// Tiles have as many rows as are left: what lies behind the last row is not read.
template <class Out>
void multiply_all(const IntFactors& factors, const Out& out) {
  for (int64_t row = 0; row < factors.rows;) {
    const int64_t left = factors.rows - row;
    // Two tiles of rows only where both are full.
    const int64_t rows =
        factors.planes == 1 && left >= 2 * kTileRows ? 2 * kTileRows : std::min(left, kTileRows);
    TileShapes shapes;
    if (rows < kTileRows)  // sums and rows; with one plane, 5 is of a panel
      std::fill_n(shapes.rows, 4 + factors.planes, static_cast<uint8_t>(rows));
    _tile_loadconfig(&shapes);
    if (factors.planes == 1)
      multiply_bytes(factors, row, rows, out);
    else
      multiply_two_planes(factors, row, rows, out);
    row += rows;
  }
  _tile_release();
}

void multiply_scaled(const IntFactors& factors, const float* row_scales, const float* column_scales,
                     float* const* c) {
  multiply_all(factors, Scaled{row_scales, column_scales, c});
}

void add_sums(const IntFactors& factors, int32_t* const* sums) {
  multiply_all(factors, Added{sums});
}

}  // namespace

const IntKernels& amx_int_kernels() {
  static constexpr IntKernels kernels{"AMX",           {kDepth, 4, 1}, {kDepth, 4, kPanel},
                                      multiply_scaled, add_sums,       2};
  return kernels;
}

}  // namespace sheaf
