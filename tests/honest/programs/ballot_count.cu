// A warp votes on a row.
//@ mtmc 1 cuda
//@ input x f32[37,101]
//@ output y i64[37]
//@ launch count grid=37 block=32 args=(x, y)
#include <cstdint>

extern "C" __global__ void count(const float* x, int64_t* y) {
  int64_t found = 0;
  for (int begin = 0; begin < 101; begin += 32) {
    const int c = begin + threadIdx.x;
    const bool is_positive = c < 101 && x[blockIdx.x * 101 + c] > 0.0f;
    found += __popc(__ballot_sync(0xffffffffu, is_positive));
  }
  if (threadIdx.x == 0) y[blockIdx.x] = found;
}
