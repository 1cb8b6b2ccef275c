// Tensor cores by hand, with ragged edges.
//@ mtmc 1 cuda
//@ input x f16[33,64]
//@ input y f16[64,17]
//@ output out f16[33,17]
//@ launch product grid=(3, 3) block=32 args=(x, y, out)
#include <cuda_fp16.h>
#include <stdint.h>

namespace {

constexpr int kRows = 33, kInner = 64, kColumns = 17;

__device__ uint32_t pack(__half low, __half high) {
  return static_cast<uint32_t>(__half_as_ushort(high)) << 16 | __half_as_ushort(low);
}

// Two neighbours of one row of the left matrix.
__device__ uint32_t left(const __half* x, int row, int k) {
  return row < kRows ? pack(x[row * kInner + k], x[row * kInner + k + 1]) : 0u;
}

// Two neighbours of one column of the right matrix.
__device__ uint32_t right(const __half* y, int k, int column) {
  return column < kColumns ? pack(y[k * kColumns + column], y[(k + 1) * kColumns + column]) : 0u;
}

}  // namespace

extern "C" __global__ void product(const __half* x, const __half* y, __half* out) {
  const int group = threadIdx.x / 4, pair = threadIdx.x % 4 * 2;
  const int row = blockIdx.x * 16 + group, column = blockIdx.y * 8;
  float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int k = 0; k < kInner; k += 16) {
    const uint32_t a[4] = {left(x, row, k + pair), left(x, row + 8, k + pair),
                           left(x, row, k + pair + 8), left(x, row + 8, k + pair + 8)};
    const uint32_t b[2] = {right(y, k + pair, column + group), right(y, k + pair + 8, column + group)};
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  for (int i = 0; i < 4; ++i) {
    const int r = row + i / 2 * 8, n = column + pair + i % 2;
    if (r < kRows && n < kColumns) out[r * kColumns + n] = __float2half(c[i]);
  }
}
