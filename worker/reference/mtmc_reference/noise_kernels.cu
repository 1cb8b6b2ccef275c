// SPDX-License-Identifier: Apache-2.0
// Results that are off by their rounding, each element read and written once.
//
// What `sum_rounding.py` and `rounding.py` compute by a dozen of operators. NVRTC compiles this
// file without any header. It is C++ besides, so that a test can run it on the host.

#ifndef MTMC_THREADS
#define MTMC_THREADS 256
#endif

using int64 = long long;
using uint64 = unsigned long long;

union Double {
  int64 bits;
  double value;
};

// Of a double that is passed by its bits.
template <class T>
__device__ inline T ValueOf(int64 bits) {
  const Double number = {bits};
  return static_cast<T>(number.value);
}

// Random words, one for each element of each result: the finalizer of SplitMix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014) over its place in a stream.
__device__ inline uint64 Mixed(uint64 x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A stream of noise: standard deviations by which an element is off, `least` at least, either
// sign; half a normal deviate (Box and Muller, 1958) comes on top.
struct Noise {
  uint64 stream;
  float least;

  __device__ float operator()(int64 index) const {
    const uint64 word = Mixed(stream + static_cast<uint64>(index) * 0x9e3779b97f4a7c15ull);
    // The lowest bit is the sign; 31 and 32 others are two numbers in (0, 1) and [0, 1).
    const float radius = (static_cast<float>((word >> 1) & 0x7fffffffu) + 0.5f) * 0x1p-31f;
    const float angle = static_cast<float>(word >> 32) * 0x1p-32f;
    const float normal = sqrtf(-2.0f * logf(radius)) * cosf(6.283185307f * angle);
    const float size = least + fabsf(normal) * 0.5f;
    return (word & 1) ? size : -size;
  }
};

__device__ inline Noise NoiseOf(int64 seed, int64 number, int64 least) {
  return {Mixed(Mixed(static_cast<uint64>(seed)) + static_cast<uint64>(number)),
          ValueOf<float>(least)};
}

template <class Visit>
__device__ inline void ForEach(int64 count, Visit visit) {
  const int64 threads = static_cast<int64>(gridDim.x) * MTMC_THREADS;
  const int64 first = static_cast<int64>(blockIdx.x) * MTMC_THREADS + threadIdx.x;
  for (int64 i = first; i < count; i += threads) visit(i);
}

// Off by `factor` times the element.
template <class T>
__global__ void DisturbElements(T* result, int64 count, int64 factor, int64 seed, int64 number,
                                int64 least) {
  const Noise noise = NoiseOf(seed, number, least);
  const T part = ValueOf<T>(factor);
  ForEach(count, [&](int64 i) { result[i] += fabs(result[i]) * part * noise(i); });
}

// Off by `unit` times `scale`.
template <class T>
__global__ void DisturbScaled(T* result, const T* scale, int64 count, int64 unit, int64 seed,
                              int64 number, int64 least) {
  const Noise noise = NoiseOf(seed, number, least);
  const T part = ValueOf<T>(unit);
  ForEach(count, [&](int64 i) { result[i] += scale[i] * part * noise(i); });
}

// What `sum_rounding.sum_scale` says of sums of `terms` terms none of which is known to be
// equal to another; the factors have the root of `terms` in them.
template <class T>
struct SumScale {
  T terms, size_factor, alike_factor, least_apart;

  __device__ T operator()(T total, T squares, T wander) const {
    const T square = total * total, q = fabs(squares);
    // By how much terms differ; not a number where all are zero.
    const T spread = q * terms / square - 1;
    T near = spread > 0 ? least_apart / sqrt(spread) : (spread == spread ? T{1} : T{0});
    if (near > 1) near = 1;
    const T twice = near * near, fourth = twice * twice;
    return sqrt(q + wander + square) * size_factor * (fourth * fourth * alike_factor + 1);
  }
};

// Off by `unit` times the scale of sums, and of `roundings` of each. `wander` may be null.
template <class T>
__global__ void DisturbSums(T* result, const T* squares, const T* wander, int64 count, int64 terms,
                            int64 size_factor, int64 alike_factor, int64 apart, int64 roundings,
                            int64 unit, int64 seed, int64 number, int64 least) {
  const Noise noise = NoiseOf(seed, number, least);
  const SumScale<T> scale_of = {static_cast<T>(terms), ValueOf<T>(size_factor),
                                ValueOf<T>(alike_factor), ValueOf<T>(apart)};
  const T own = ValueOf<T>(roundings), part = ValueOf<T>(unit);
  ForEach(count, [&](int64 i) {
    const T total = result[i];
    const T scale = scale_of(total, squares[i], wander ? wander[i] : T{0}) + fabs(total) * own;
    result[i] = total + scale * part * noise(i);
  });
}

// A batch norm's running mean and variance, off by what `norm_rounding.Statistics` says of batches
// of `all` terms each, which have the mean and the inverse deviation; `wander` is that of sums.
template <class T>
__global__ void DisturbStatistics(T* running_mean, T* running_variance, const T* mean,
                                  const T* inverse_deviation, const T* wander, int64 count,
                                  int64 all, int64 terms, int64 size_factor, int64 alike_factor,
                                  int64 apart, int64 roundings, int64 part_of_batch, int64 epsilon,
                                  int64 unit, int64 seed, int64 number, int64 least) {
  const Noise noise = NoiseOf(seed, number, least);
  const SumScale<T> scale_of = {static_cast<T>(terms), ValueOf<T>(size_factor),
                                ValueOf<T>(alike_factor), ValueOf<T>(apart)};
  const T n = static_cast<T>(all), own = ValueOf<T>(roundings), unit_of = ValueOf<T>(unit);
  const T part = ValueOf<T>(part_of_batch), added = ValueOf<T>(epsilon);
  const auto disturbed = [&](T now, T batch, T scale, float deviations) {
    const T rounded = (fabs(now - batch * part) + fabs(batch) * part) * own;
    return now + (rounded + scale * part) * unit_of * deviations;
  };
  ForEach(count, [&](int64 i) {
    const T square = mean[i] * mean[i];
    T biased = 1 / (inverse_deviation[i] * inverse_deviation[i]) - added;
    if (biased < 0) biased = 0;
    const T mean_scale = scale_of(mean[i], (biased + square) / n, wander[i] / (n * n));
    const T variance = n > 1 ? biased * (n / (n - 1)) : biased;
    const T ratio = variance > 0 ? sqrt(square / variance) : T{0};
    const T variance_scale = variance * scale_of.size_factor * (1 + ratio);
    running_mean[i] = disturbed(running_mean[i], mean[i], mean_scale, noise(2 * i));
    running_variance[i] = disturbed(running_variance[i], variance, variance_scale, noise(2 * i + 1));
  });
}
