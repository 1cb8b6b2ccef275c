// The inner dimension is split over blocks that add in any order.
//@ mtmc 1 cuda
//@ input x f32[131,257]
//@ input y f32[257]
//@ output out f32[131]
//@ tune SPLIT = 3 8
//@ launch clear grid=1 block=131 args=(out)
//@ launch add grid=(131, SPLIT) block=32 args=(x, y, out)
extern "C" __global__ void clear(float* out) { out[threadIdx.x] = 0.0f; }

extern "C" __global__ void add(const float* __restrict__ x, const float* __restrict__ y,
                               float* out) {
  float part = 0.0f;
  for (int c = blockIdx.y * 32 + threadIdx.x; c < 257; c += 32 * SPLIT) {
    part = __fmaf_rn(__ldg(&x[blockIdx.x * 257 + c]), y[c], part);
  }
  part += __shfl_xor_sync(~0u, part, 16);
  part += __shfl_xor_sync(~0u, part, 8);
  part += __shfl_xor_sync(~0u, part, 4);
  part += __shfl_xor_sync(~0u, part, 2);
  part += __shfl_xor_sync(~0u, part, 1);
  if (threadIdx.x == 0) atomicAdd(&out[blockIdx.x], part);
}
