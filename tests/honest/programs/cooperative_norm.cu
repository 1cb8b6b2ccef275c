//@ mtmc 1 cuda
//@ input x f32[9,311]
//@ output y f32[9]
//@ launch norm grid=9 block=32 args=(x, y)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void norm(const float* x, float* y) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float part = 0.0f;
  for (int c = threadIdx.x; c < 311; c += 32) part += x[blockIdx.x * 311 + c] * x[blockIdx.x * 311 + c];
  part = cg::reduce(warp, part, cg::plus<float>());
  if (threadIdx.x == 0) y[blockIdx.x] = sqrtf(part);
}
