// Maximum and sum in one pass, merged across the lanes.
//@ mtmc 1 cuda
//@ input x f32[9,311]
//@ output y f32[9]
//@ launch logsumexp grid=9 block=32 args=(x, y)
struct Partial {
  float top;
  float sum;
};

__device__ Partial merge(Partial a, Partial b) {
  const float top = fmaxf(a.top, b.top);
  if (top == -INFINITY) return a;
  return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

extern "C" __global__ void logsumexp(const float* x, float* y) {
  Partial partial{-INFINITY, 0.0f};
  for (int c = threadIdx.x; c < 311; c += 32) {
    partial = merge(partial, {x[blockIdx.x * 311 + c], 1.0f});
  }
  for (int step = 16; step > 0; step /= 2) {
    partial = merge(partial, {__shfl_xor_sync(~0u, partial.top, step),
                              __shfl_xor_sync(~0u, partial.sum, step)});
  }
  if (threadIdx.x == 0) y[blockIdx.x] = partial.top + logf(partial.sum);
}
