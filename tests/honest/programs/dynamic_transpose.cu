// Shared memory of the size that the launch says.
//@ mtmc 1 cuda
//@ input x f32[7,11,13]
//@ output y f32[13,7,11]
//@ launch permute grid=1 block=96 shared=77*13*4 args=(x, y)
extern "C" __global__ void permute(const float* x, float* y) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < 77 * 13; i += blockDim.x) tile[i] = x[i] * 2.0f;
  __syncthreads();
  for (int i = threadIdx.x; i < 77 * 13; i += blockDim.x) y[i] = tile[i % 77 * 13 + i / 77];
}
