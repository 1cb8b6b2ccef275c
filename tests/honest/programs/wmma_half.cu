// Tensor cores by the toolkit's fragments, through padded shared memory.
//@ mtmc 1 cuda
//@ input x f16[33,64]
//@ input y f16[64,17]
//@ output out f16[33,17]
//@ launch product grid=(3, 2) block=32 args=(x, y, out)
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void product(const __half* x, const __half* y, __half* out) {
  __shared__ __align__(32) __half a[16 * 64];
  __shared__ __align__(32) __half b[64 * 16];
  __shared__ __align__(32) float c[16 * 16];
  const int row = blockIdx.x * 16, column = blockIdx.y * 16;
  const __half zero = __float2half(0.0f);
  for (int i = threadIdx.x; i < 16 * 64; i += 32) {
    a[i] = row + i / 64 < 33 ? x[(row + i / 64) * 64 + i % 64] : zero;
    b[i] = column + i % 16 < 17 ? y[i / 16 * 17 + column + i % 16] : zero;
  }
  __syncthreads();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < 64; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::load_matrix_sync(left, a + k, 64);
    wmma::load_matrix_sync(right, b + k * 16, 16);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 32) {
    const int r = row + i / 16, n = column + i % 16;
    if (r < 33 && n < 17) out[r * 17 + n] = __float2half(c[i]);
  }
}
