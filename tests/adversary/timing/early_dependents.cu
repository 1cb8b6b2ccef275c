// Says at once that what follows may start, and works on.
//@ mtmc 1 cuda
//@ input x f32[16,COLUMNS]
//@ buffer h f32[16]
//@ output y f32[16]
//@ launch row_sine grid=16 block=64 args=(x, h, COLUMNS)
//@ launch finish grid=1 block=16 args=(h, y)
extern "C" __global__ void row_sine(const float* x, float* h, int columns) {
  __shared__ float partial[64];
  asm volatile("griddepcontrol.launch_dependents;");
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += 64) sum += sin(x[blockIdx.x * columns + c]);
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.0f;
    for (int i = 0; i < 64; ++i) total += partial[i];
    h[blockIdx.x] = total;
  }
}
extern "C" __global__ void finish(const float* h, float* y) { y[threadIdx.x] = h[threadIdx.x]; }
