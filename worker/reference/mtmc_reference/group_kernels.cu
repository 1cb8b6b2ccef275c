// SPDX-License-Identifier: Apache-2.0
// Sums of squares by group of an output (`groups.py`), with one read of each operand.
// Follows `scan_kernels.cu` in one translation unit.

// Threads of a block and of a warp.
#ifndef MTMC_GROUP_THREADS
#define MTMC_GROUP_THREADS 128
#define MTMC_WARP 32
#endif

// As in `layout.py`.
constexpr int kMagnitudes = 12;
constexpr int kOctaveBits = 2;

union FloatBits {
  float value;
  unsigned bits;
};

union DoubleBits {
  double value;
  unsigned long long bits;
};

// Binary orders that |x| is below 1; large for 0.
__device__ inline int OrdersBelowOne(float x) {
  const FloatBits of = {x};
  return 127 - static_cast<int>((of.bits >> 23) & 255);
}

__device__ inline int OrdersBelowOne(double x) {
  DoubleBits of = {x};
  return 1023 - static_cast<int>((of.bits >> 52) & 2047);
}

template <class W>
__device__ inline int Magnitude(W x) {
  const int magnitude = OrdersBelowOne(x) >> kOctaveBits;
  return magnitude < 0 ? 0 : magnitude < kMagnitudes ? magnitude : kMagnitudes - 1;
}

// An error and its reference over the largest element; nothing where the latter is not finite.
template <class W>
struct Scaled {
  W error, size;

  __device__ Scaled(W y, W r, W scale) : error((y - r) * scale), size(r * scale) {
    if (!IsFinite(r)) error = size = 0;
  }
};

// Sums of one thread by magnitude: a column of these.
template <class W>
struct Histogram {
  W error[kMagnitudes][MTMC_GROUP_THREADS];
  W size[kMagnitudes][MTMC_GROUP_THREADS];
  unsigned count[kMagnitudes][MTMC_GROUP_THREADS];
};

// A row is cut into `strips` pieces of `strip` elements, each of which a warp sums up: two
// doubles of `pieces`. Each block writes the sums by magnitude, and counts, to its row of
// `rows`. Elements are divided by 2**top.
template <class Y, class R>
__global__ void ScanRows(const Y* y, const R* r, int64 count, int64 row, int64 strips, int64 strip,
                         int64 top, double* pieces, double* rows) {
  using W = typename Wider<Y, R>::Type;
  __shared__ Histogram<W> all;
  __shared__ W errors[MTMC_GROUP_THREADS], sizes[MTMC_GROUP_THREADS];
  const int thread = threadIdx.x, lane = thread % MTMC_WARP;
  for (int k = 0; k < kMagnitudes; ++k) {
    all.error[k][thread] = all.size[k][thread] = 0;
    all.count[k][thread] = 0;
  }
  const W scale = static_cast<W>(ldexp(1.0, -static_cast<int>(top)));
  const int64 total = (count + row - 1) / row * strips;
  const int64 warps = static_cast<int64>(gridDim.x) * MTMC_GROUP_THREADS / MTMC_WARP;
  const int64 warp = (static_cast<int64>(blockIdx.x) * MTMC_GROUP_THREADS + thread) / MTMC_WARP;
  for (int64 piece = warp; piece < total; piece += warps) {
    const int64 end = (piece / strips + 1) * row;
    const int64 first = piece / strips * row + piece % strips * strip;
    int64 last = first + strip < end ? first + strip : end;
    if (last > count) last = count;
    W error = 0, size = 0;
    const auto add = [&](W y_one, W r_one) {
      const Scaled<W> one(y_one, r_one, scale);
      const W error_square = one.error * one.error, size_square = one.size * one.size;
      const int k = Magnitude(one.size);
      error += error_square;
      size += size_square;
      all.error[k][thread] += error_square;
      all.size[k][thread] += size_square;
      ++all.count[k][thread];
    };
    constexpr int kAtOnce = 4;
    int64 i = first + lane;
    for (; i + (kAtOnce - 1) * MTMC_WARP < last; i += kAtOnce * MTMC_WARP) {
      W ys[kAtOnce], rs[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        ys[k] = Widen<W>(y[i + k * MTMC_WARP]);
        rs[k] = Widen<W>(r[i + k * MTMC_WARP]);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) add(ys[k], rs[k]);
    }
    for (; i < last; i += MTMC_WARP) add(Widen<W>(y[i]), Widen<W>(r[i]));
    errors[thread] = error;
    sizes[thread] = size;
    for (int half = MTMC_WARP / 2; half > 0; half /= 2) {
      __syncwarp();
      if (lane < half) {
        errors[thread] += errors[thread + half];
        sizes[thread] += sizes[thread + half];
      }
    }
    if (lane == 0) {
      pieces[2 * piece] = errors[thread];
      pieces[2 * piece + 1] = sizes[thread];
    }
    __syncwarp();
  }
  __syncthreads();
  for (int k = thread; k < kMagnitudes; k += MTMC_GROUP_THREADS) {
    double sums[3] = {};
    for (int each = 0; each < MTMC_GROUP_THREADS; ++each) {
      sums[0] += all.error[k][each];
      sums[1] += all.size[k][each];
      sums[2] += all.count[k][each];
    }
    double* const to = rows + (static_cast<int64>(blockIdx.x) * kMagnitudes + k) * 3;
    for (int part = 0; part < 3; ++part) to[part] = sums[part];
  }
}

// Sums the columns of a matrix of `columns` columns, for each strip of `strip` rows: two
// doubles of `sums`. A block takes as many columns as it has threads.
template <class Y, class R>
__global__ void ScanColumns(const Y* y, const R* r, int64 count, int64 columns, int64 strip,
                            int64 top, double* sums) {
  using W = typename Wider<Y, R>::Type;
  const W scale = static_cast<W>(ldexp(1.0, -static_cast<int>(top)));
  const int64 across = (columns + MTMC_GROUP_THREADS - 1) / MTMC_GROUP_THREADS;
  const int64 height = count / columns;
  const int64 total = (height + strip - 1) / strip * across;
  for (int64 task = blockIdx.x; task < total; task += gridDim.x) {
    const int64 column = task % across * MTMC_GROUP_THREADS + threadIdx.x;
    if (column >= columns) continue;
    const int64 first = task / across * strip;
    const int64 last = first + strip < height ? first + strip : height;
    W error = 0, size = 0;
#pragma unroll 4
    for (int64 i = first; i < last; ++i) {
      const Scaled<W> one(Widen<W>(y[i * columns + column]), Widen<W>(r[i * columns + column]),
                          scale);
      error += one.error * one.error;
      size += one.size * one.size;
    }
    double* const to = sums + (task / across * columns + column) * 2;
    to[0] = error;
    to[1] = size;
  }
}
