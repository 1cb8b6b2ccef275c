// SPDX-License-Identifier: Apache-2.0
// Tensors compared and summed up with one read of each operand.
//
// Each block writes one row of doubles about the elements that its threads saw;
// `scan_kernels.py` puts the rows together. NVRTC compiles this file without any
// header. It is C++ besides, so that a test can run it on the host.

#ifndef MTMC_THREADS
#define MTMC_THREADS 256
#endif

using int64 = long long;

struct Fp16 {
  unsigned short bits;
};

struct Bf16 {
  unsigned short bits;
};

// A byte that is false where it is 0.
struct Bool {
  unsigned char byte;
};

#ifdef __CUDACC__
__device__ inline float ToFloat(Fp16 x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
}

__device__ inline float ToFloat(Bf16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
#endif

// The type in which two operands are compared: double where one of them is.
template <class Y, class R>
struct Wider {
  using Type = float;
};

template <class Y>
struct Wider<Y, double> {
  using Type = double;
};

template <class R>
struct Wider<double, R> {
  using Type = double;
};

template <>
struct Wider<double, double> {
  using Type = double;
};

template <class W>
__device__ inline W Widen(double x) {
  return static_cast<W>(x);
}

template <class W>
__device__ inline W Widen(float x) {
  return static_cast<W>(x);
}

template <class W>
__device__ inline W Widen(Fp16 x) {
  return static_cast<W>(ToFloat(x));
}

template <class W>
__device__ inline W Widen(Bf16 x) {
  return static_cast<W>(ToFloat(x));
}

template <class W>
struct Widened {
  template <class T>
  __device__ W operator()(T x) const {
    return Widen<W>(x);
  }
};

struct AsItIs {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

__device__ inline float Abs(float x) { return fabsf(x); }

__device__ inline double Abs(double x) { return fabs(x); }

// False for infinities and NaN, whose difference with themselves is NaN.
template <class W>
__device__ inline bool IsFinite(W x) {
  return x - x == 0;
}

// kWidth elements that are read at once, in 16 bytes each time.
template <class T, int kWidth>
struct alignas(kWidth == 1               ? alignof(T)
               : sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth
                                         : 16) Pack {
  T values[kWidth];
};

template <int kWidth, class T>
__device__ inline Pack<T, kWidth> Load(const T* first, int64 pack) {
  return reinterpret_cast<const Pack<T, kWidth>*>(first)[pack];
}

// Distance of y from r: what |y - r| <= t + t |r| asks of t, and with both swapped.
template <class W>
struct Distance {
  static constexpr int kColumns = 6;
  // A little less than 1: it forgives the rounding of a product, not of a quotient.
  static constexpr W kBelow = W(1) - W(1) / (1 << 20);

  W tolerance, swapped, absolute;
  // First element that needs `tolerance`.
  int64 index;
  // An element has no finite distance: the rest says nothing.
  bool is_special;
  // An element is further away than `floor` and `ratio` |r|.
  bool is_far;
  W ratio, floor;

  __device__ void Add(W y, W r, int64 position) {
    const W distance = Abs(y - r);
    if (distance > floor && distance > ratio * Abs(r)) is_far = true;
    if (!IsFinite(distance)) is_special = true;
    if (distance > absolute) absolute = distance;
    // A division costs more than everything else, and hardly any sets a record.
    const W scale = 1 + Abs(r);
    if (distance > 0 && distance >= tolerance * kBelow * scale) {
      const W needed = distance / scale;
      if (needed > tolerance) {
        tolerance = needed;
        index = position;
      }
    }
    const W swapped_scale = 1 + Abs(y);
    if (distance > 0 && distance >= swapped * kBelow * swapped_scale) {
      const W needed = distance / swapped_scale;
      if (needed > swapped) swapped = needed;
    }
  }

  __device__ void Merge(const Distance& other) {
    const bool is_first = other.tolerance == tolerance && other.index < index;
    if (other.tolerance > tolerance || is_first) index = other.index;
    if (other.tolerance > tolerance) tolerance = other.tolerance;
    if (other.swapped > swapped) swapped = other.swapped;
    if (other.absolute > absolute) absolute = other.absolute;
    if (other.is_special) is_special = true;
    if (other.is_far) is_far = true;
  }

  __device__ void Write(double* row) const {
    row[0] = tolerance;
    row[1] = swapped;
    row[2] = absolute;
    row[3] = static_cast<double>(index);
    row[4] = is_special;
    row[5] = is_far;
  }
};

// Sums over the squares of y - r, those of r, and r.
struct Nearness {
  static constexpr int kColumns = 3;

  double error_squares, squares, total;

  __device__ void Add(double y, double r, int64) {
    error_squares += (y - r) * (y - r);
    squares += r * r;
    total += r;
  }

  __device__ void Merge(const Nearness& other) {
    error_squares += other.error_squares;
    squares += other.squares;
    total += other.total;
  }

  __device__ void Write(double* row) const {
    row[0] = error_squares;
    row[1] = squares;
    row[2] = total;
  }
};

// Whether bytes differ anywhere.
struct Difference {
  static constexpr int kColumns = 1;

  bool differs;

  template <class T>
  __device__ void Add(T y, T r, int64) {
    if (y != r) differs = true;
  }

  __device__ void Add(Bool y, Bool r, int64) {
    if ((y.byte != 0) != (r.byte != 0)) differs = true;
  }

  __device__ void Merge(const Difference& other) {
    if (other.differs) differs = true;
  }

  __device__ void Write(double* row) const { row[0] = differs; }
};

// Range and sum; says nothing where an element is not finite. `low` and `high` start as
// an element of the tensor, so that a block without elements has a range.
template <class T>
struct Spread {
  static constexpr int kColumns = 4;

  T low, high;
  double sum;
  bool is_special;

  __device__ void Add(T x) {
    if (!IsFinite(x)) is_special = true;
    if (x < low) low = x;
    if (x > high) high = x;
    sum += static_cast<double>(x);
  }

  __device__ void Merge(const Spread& other) {
    if (other.low < low) low = other.low;
    if (other.high > high) high = other.high;
    sum += other.sum;
    if (other.is_special) is_special = true;
  }

  __device__ void Write(double* row) const {
    row[0] = low;
    row[1] = high;
    row[2] = sum;
    row[3] = is_special;
  }
};

// Merges what the threads of a block have found; thread 0 writes its row.
template <class Found>
__device__ inline void WriteRow(const Found& found, double* rows) {
  __shared__ Found all[MTMC_THREADS];
  all[threadIdx.x] = found;
  for (int half = MTMC_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x].Merge(all[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) all[0].Write(rows + static_cast<int64>(blockIdx.x) * Found::kColumns);
}

// Calls `visit` with each pack of this thread, and with each element after the last.
template <int kWidth, class VisitPack, class VisitElement>
__device__ inline void ForEach(int64 count, VisitPack visit_pack, VisitElement visit_element) {
  const int64 thread = static_cast<int64>(blockIdx.x) * MTMC_THREADS + threadIdx.x;
  const int64 threads = static_cast<int64>(gridDim.x) * MTMC_THREADS;
  const int64 packs = count / kWidth;
  for (int64 pack = thread; pack < packs; pack += threads) visit_pack(pack);
  for (int64 i = packs * kWidth + thread; i < count; i += threads) visit_element(i);
}

// Shows `found` each pair of elements as `Form` makes it, and writes the block's row.
template <int kWidth, class Form, class Found, class Y, class R>
__device__ inline void ComparePair(Found found, const Y* y, const R* r, int64 count, double* rows) {
  const Form form = {};
  ForEach<kWidth>(
      count,
      [&](int64 pack) {
        const Pack<Y, kWidth> ys = Load<kWidth>(y, pack);
        const Pack<R, kWidth> rs = Load<kWidth>(r, pack);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          found.Add(form(ys.values[i]), form(rs.values[i]), pack * kWidth + i);
        }
      },
      [&](int64 i) { found.Add(form(y[i]), form(r[i]), i); });
  WriteRow(found, rows);
}

union Double {
  int64 bits;
  double value;
};

// `ratio` and `floor` are the bits of doubles; see Distance.
template <class Y, class R, int kWidth>
__global__ void ScanFloats(const Y* y, const R* r, int64 count, int64 ratio, int64 floor,
                           double* rows) {
  using W = typename Wider<Y, R>::Type;
  Distance<W> found = {};
  const Double ratio_of = {ratio}, floor_of = {floor};
  found.ratio = static_cast<W>(ratio_of.value);
  found.floor = static_cast<W>(floor_of.value);
  ComparePair<kWidth, Widened<W>>(found, y, r, count, rows);
}

template <class Y, class R, int kWidth>
__global__ void ScanNearness(const Y* y, const R* r, int64 count, double* rows) {
  ComparePair<kWidth, Widened<double>>(Nearness{}, y, r, count, rows);
}

template <class T, int kWidth>
__global__ void ScanIntegers(const T* y, const T* r, int64 count, double* rows) {
  ComparePair<kWidth, AsItIs>(Difference{}, y, r, count, rows);
}

// REQUIRES: count > 0.
template <class T, int kWidth>
__global__ void ScanSpread(const T* x, int64 count, double* rows) {
  using W = typename Wider<T, T>::Type;
  Spread<W> found = {};
  found.low = found.high = Widen<W>(x[0]);
  ForEach<kWidth>(
      count,
      [&](int64 pack) {
        const Pack<T, kWidth> xs = Load<kWidth>(x, pack);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) found.Add(Widen<W>(xs.values[i]));
      },
      [&](int64 i) { found.Add(Widen<W>(x[i])); });
  WriteRow(found, rows);
}
