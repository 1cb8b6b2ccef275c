// Two tiles of a block take a row each.
//@ mtmc 1 cuda
//@ input x f32[9,311]
//@ output y f32[9]
//@ launch row_norm grid=5 block=64 args=(x, y)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void row_norm(const float* x, float* y) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const int row = blockIdx.x * 2 + tile.meta_group_rank();
  if (row >= 9) return;
  float part = 0.0f;
  for (int c = tile.thread_rank(); c < 311; c += tile.size()) {
    part += x[row * 311 + c] * x[row * 311 + c];
  }
  const float sum = cg::reduce(tile, part, cg::plus<float>());
  if (tile.thread_rank() == 0) y[row] = sqrtf(sum);
}
