// A reduction as a library would write it: namespaces, templates, limits.
//@ mtmc 1 cuda
//@ input x f32[71,13]
//@ output y f32[13]
//@ launch columns grid=13 block=32 args=(x, y, 71, 13)
#include <cstdint>
#include <limits>

namespace reduction {

template <class T>
struct Maximum {
  static constexpr T kIdentity = -std::numeric_limits<T>::infinity();

  // A NaN wins.
  static __device__ T combine(T a, T b) { return a > b || a != a ? a : b; }
};

template <template <class> class Operation, class T>
__device__ T over_warp(T value) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    value = Operation<T>::combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}

}  // namespace reduction

extern "C" __global__ void columns(const float* x, float* y, int32_t rows, int32_t width) {
  using Maximum = reduction::Maximum<float>;
  float top = Maximum::kIdentity;
  for (int32_t r = threadIdx.x; r < rows; r += 32) {
    top = Maximum::combine(top, x[r * width + blockIdx.x]);
  }
  top = reduction::over_warp<reduction::Maximum>(top);
  if (threadIdx.x == 0) y[blockIdx.x] = top;
}
