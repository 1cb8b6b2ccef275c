// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/worked_examples.h"

#include <utility>

namespace mtmc::gateway {
namespace {

struct Entry {
  std::string_view type;
  std::string_view advice;
  // With the placeholders of kSpellings; empty if there is no program.
  std::string_view program;
  // For programs that only CUDA can express.
  bool is_cuda_only = false;
};

// How the dialects say the same thing.
struct Spelling {
  std::string_view placeholder;
  std::string_view opencl;
  std::string_view cuda;
};

constexpr Spelling kSpellings[] = {
    {"@DIALECT", "opencl", "cuda"},
    {"@KERNEL", "__kernel void", "extern \"C\" __global__ void"},
    {"@IN ", "__global const float *restrict ", "const float* __restrict__ "},
    {"@IN4 ", "__global const float4 *restrict ", "const float4* __restrict__ "},
    {"@OUT ", "__global float *restrict ", "float* __restrict__ "},
    {"@OUT4 ", "__global float4 *restrict ", "float4* __restrict__ "},
    {"@SHARED", "__local", "__shared__"},
    {"@BARRIER", "barrier(CLK_LOCAL_MEM_FENCE)", "__syncthreads()"},
    {"@THREAD_X", "get_local_id(0)", "threadIdx.x"},
    {"@THREAD_Y", "get_local_id(1)", "threadIdx.y"},
    {"@BLOCK_X", "get_group_id(0)", "blockIdx.x"},
    {"@BLOCK_Y", "get_group_id(1)", "blockIdx.y"},
    {"@FMAX", "fmax", "fmaxf"},
};

constexpr Entry kEntries[] = {
    {"fuse",
     "Merge the named kernels into one, so that the tensor between them is never written to "
     "memory: keep each "
     "intermediate value in a register, delete the buffer and the second launch. Reductions over "
     "the same axis "
     "become one sweep.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[4096,1024]
//@ weight b f32[1024]
//@ output y f32[4096,1024]
//@ launch add_relu grid=4096*1024/256 block=256 args=(x, b, y)
// Was: add (x + b -> h), then relu (h -> y). h is gone.
@KERNEL add_relu(@IN x, @IN b, @OUT y) {
  const int i = @BLOCK_X * 256 + @THREAD_X;
  const float h = x[i] + b[i % 1024];
  y[i] = @FMAX(h, 0.0f);
}
)"},
    {"tile",
     "Let each block compute a tile of the output from tiles of the inputs that it stages in local "
     "memory, so that "
     "each value is loaded once per block and used many times. Put a barrier after filling a tile "
     "and before "
     "overwriting it. Guard edges when the tile does not divide the shape.",
     R"(//@ mtmc 1 @DIALECT
//@ input a f32[512,512]
//@ input b f32[512,512]
//@ output c f32[512,512]
//@ launch matmul grid=(512/16, 512/16) block=(16, 16) args=(a, b, c)
@KERNEL matmul(@IN a, @IN b, @OUT c) {
  @SHARED float a_tile[16][16];
  @SHARED float b_tile[16][16];
  const int tx = @THREAD_X, ty = @THREAD_Y;
  const int row = @BLOCK_Y * 16 + ty, column = @BLOCK_X * 16 + tx;
  float sum = 0.0f;
  for (int k = 0; k < 512; k += 16) {
    a_tile[ty][tx] = a[row * 512 + k + tx];
    b_tile[ty][tx] = b[(k + ty) * 512 + column];
    @BARRIER;
    for (int j = 0; j < 16; ++j) sum += a_tile[ty][j] * b_tile[j][tx];
    @BARRIER;
  }
  c[row * 512 + column] = sum;
}
)"},
    {"vectorize",
     "Load and store several neighbouring elements at once through float4 pointers, so that each "
     "thread moves 16 "
     "bytes per access. The row length must be a multiple of the vector width; divide the grid by "
     "it.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[8192,1024]
//@ output y f32[8192,1024]
//@ launch relu grid=8192*1024/4/256 block=256 args=(x, y)
@KERNEL relu(@IN4 x, @OUT4 y) {
  const int i = @BLOCK_X * 256 + @THREAD_X;
  float4 v = x[i];
  v.x = @FMAX(v.x, 0.0f);
  v.y = @FMAX(v.y, 0.0f);
  v.z = @FMAX(v.z, 0.0f);
  v.w = @FMAX(v.w, 0.0f);
  y[i] = v;
}
)"},
    {"reorder",
     "Change which thread computes what, or the order of loops, so that neighbouring threads touch "
     "neighbouring "
     "addresses and inner loops run over contiguous memory. Results must not change.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[1024,4096]
//@ output y f32[4096]
//@ launch column_sum grid=4096/64 block=64 args=(x, y)
// Thread t owns column t: at each row the threads of a block read 64 neighbours.
@KERNEL column_sum(@IN x, @OUT y) {
  const int column = @BLOCK_X * 64 + @THREAD_X;
  float sum = 0.0f;
  for (int row = 0; row < 1024; ++row) sum += x[row * 4096 + column];
  y[column] = sum;
}
)"},
    {"split",
     "Where a reduction is long and there are few rows, let several blocks reduce parts of it into "
     "a buffer and a "
     "second kernel add the parts, so that the whole device has work. Add the parts in a fixed "
     "order, without "
     "atomics, so that runs agree.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[16,65536]
//@ buffer partial f32[16,64]
//@ output y f32[16]
//@ launch partial_sum grid=(64, 16) block=64 args=(x, partial)
//@ launch total_sum grid=1 block=16 args=(partial, y)
@KERNEL partial_sum(@IN x, @OUT partial) {
  @SHARED float sums[64];
  const int lane = @THREAD_X, part = @BLOCK_X, row = @BLOCK_Y;
  float sum = 0.0f;
  for (int i = lane; i < 1024; i += 64) sum += x[row * 65536 + part * 1024 + i];
  sums[lane] = sum;
  @BARRIER;
  for (int width = 32; width > 0; width /= 2) {
    if (lane < width) sums[lane] += sums[lane + width];
    @BARRIER;
  }
  if (lane == 0) partial[row * 64 + part] = sums[0];
}

@KERNEL total_sum(@IN partial, @OUT y) {
  const int row = @THREAD_X;
  float sum = 0.0f;
  for (int part = 0; part < 64; ++part) sum += partial[row * 64 + part];
  y[row] = sum;
}
)"},
    {"tune",
     "Expose sizes that the best choice depends on: declare them with `tune`, use the names as "
     "macros in the source "
     "and in the launch. At most about 32 combinations; the first value of each must work.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[1048576]
//@ output y f32[1048576]
//@ tune THREADS = 256 128 512 ; PER_THREAD = 4 1 8
//@ launch square grid=1048576/(THREADS*PER_THREAD) block=THREADS args=(x, y)
@KERNEL square(@IN x, @OUT y) {
  const int begin = @BLOCK_X * (THREADS * PER_THREAD) + @THREAD_X;
  for (int i = 0; i < PER_THREAD; ++i) {
    const float v = x[begin + i * THREADS];
    y[begin + i * THREADS] = v * v;
  }
}
)"},
    {"library",
     "Replace the region by one `call` of an ATen operator, in PyTorch's notation, and keep "
     "hand-written kernels "
     "around it. Results bind to declared buffers or outputs of exactly the operator's result "
     "type.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[1024,4096]
//@ weight w f32[4096,4096]
//@ buffer h f32[1024,4096]
//@ output y f32[1024,4096]
//@ call aten::linear(x, w, None) -> h
//@ launch relu grid=1024*4096/256 block=256 args=(h, y)
@KERNEL relu(@IN h, @OUT y) {
  const int i = @BLOCK_X * 256 + @THREAD_X;
  y[i] = @FMAX(h[i], 0.0f);
}
)"},
    {"capture",
     "Add the directive `capture`, so that all steps run as one recorded graph without gaps "
     "between launches. "
     "Nothing else changes.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[4096]
//@ buffer h f32[4096]
//@ output y f32[4096]
//@ launch twice grid=16 block=256 args=(x, h)
//@ launch twice grid=16 block=256 args=(h, y)
//@ capture
@KERNEL twice(@IN x, @OUT y) {
  const int i = @BLOCK_X * 256 + @THREAD_X;
  y[i] = 2.0f * x[i];
}
)"},
    {"simplify",
     "Use algebra that is exact in real arithmetic: skip zeros of triangular or diagonal factors, "
     "hoist what does "
     "not depend on a loop, merge scalings. Never use values that inputs happen to have.",
     R"(//@ mtmc 1 @DIALECT
//@ input d f32[4096]
//@ input b f32[4096,4096]
//@ output y f32[4096,4096]
//@ launch scale_rows grid=4096*4096/256 block=256 args=(d, b, y)
// diag(d) @ b scales row i of b by d[i]: no product of matrices is needed.
@KERNEL scale_rows(@IN d, @IN b, @OUT y) {
  const int i = @BLOCK_X * 256 + @THREAD_X;
  y[i] = d[i / 4096] * b[i];
}
)"},
    {"pipeline",
     "Overlap loading the next tile with computing on the current one: two stages of local memory, "
     "asynchronous "
     "copies into one while the other is used, a wait and a barrier before the switch.",
     R"(//@ mtmc 1 @DIALECT
//@ input x f32[1048576]
//@ output y f32[64]
//@ launch block_sum grid=64 block=256 args=(x, y)
#include <cuda_pipeline.h>
// Block b sums 16384 values in 64 tiles of 256.
@KERNEL block_sum(@IN x, @OUT y) {
  @SHARED float stage[2][256];
  @SHARED float sums[256];
  const int t = threadIdx.x;
  const float* tile = x + blockIdx.x * 16384;
  __pipeline_memcpy_async(&stage[0][t], &tile[t], 4);
  __pipeline_commit();
  float sum = 0.0f;
  for (int k = 0; k < 64; ++k) {
    if (k + 1 < 64) {
      __pipeline_memcpy_async(&stage[(k + 1) % 2][t], &tile[(k + 1) * 256 + t], 4);
      __pipeline_commit();
    }
    __pipeline_wait_prior(k + 1 < 64 ? 1 : 0);
    sum += stage[k % 2][t];
  }
  sums[t] = sum;
  __syncthreads();
  for (int width = 128; width > 0; width /= 2) {
    if (t < width) sums[t] += sums[t + width];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = sums[0];
}
)",
     /*is_cuda_only=*/true},
    {"tensorize",
     "Compute matrix products on tensor cores with wmma fragments, within the job's precision "
     "class. Convert to tf32 "
     "explicitly, accumulate in FP32, and keep everything else in FP32.",
     R"(//@ mtmc 1 @DIALECT
//@ input a f32[1024,1024]
//@ input b f32[1024,1024]
//@ output c f32[1024,1024]
//@ launch matmul grid=(1024/16, 1024/16) block=32 args=(a, b, c)
#include <mma.h>
// One warp computes a 16x16 tile of c.
@KERNEL matmul(@IN a, @IN b, @OUT c) {
  using namespace nvcuda::wmma;
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  fragment<accumulator, 16, 16, 8, float> sum;
  fill_fragment(sum, 0.0f);
  for (int k = 0; k < 1024; k += 8) {
    fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> left;
    fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> right;
    load_matrix_sync(left, a + row * 1024 + k, 1024);
    load_matrix_sync(right, b + k * 1024 + column, 1024);
    for (int i = 0; i < left.num_elements; ++i) left.x[i] = __float_to_tf32(left.x[i]);
    for (int i = 0; i < right.num_elements; ++i) right.x[i] = __float_to_tf32(right.x[i]);
    mma_sync(sum, left, right, sum);
  }
  store_matrix_sync(c + row * 1024 + column, sum, 1024, mem_row_major);
}
)",
     /*is_cuda_only=*/true},
    {"fix_build",
     "The program is refused or does not compile. Read the diagnostics, change only what they "
     "name: directive "
     "syntax, tensor names and types as the problem gives them, argument lists equal to kernel "
     "signatures, const on "
     "inputs, undeclared identifiers, functions that the dialect does not have. Keep the "
     "structure.",
     ""},
    {"fix_launch",
     "The program compiles and fails when it runs: a crash, an access out of bounds, a time-out, "
     "or a refused launch. "
     "Check index arithmetic and edge guards against the shapes, grid times block against the "
     "elements, local memory "
     "sizes, barriers in divergent branches, and 32-bit overflow of indices.",
     ""},
    {"fix_result",
     "The program runs and its result is wrong. Compare each step with the PyTorch source: axes "
     "and strides, "
     "training-mode batch statistics (biased variance), the exact form of GELU, epsilon inside the "
     "square root, "
     "initial values of max and min, missing barriers, elements that no thread writes, and "
     "accumulation in FP32.",
     ""},
};

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string Spell(std::string_view program, kernel::Dialect dialect) {
  std::string text(program);
  for (const Spelling& spelling : kSpellings) {
    const bool is_cuda = dialect == kernel::Dialect::kCuda;
    ReplaceAll(text, spelling.placeholder, is_cuda ? spelling.cuda : spelling.opencl);
  }
  return text;
}

}  // namespace

WorkedExample FindWorkedExample(std::string_view type, kernel::Dialect dialect) {
  for (const Entry& entry : kEntries) {
    if (entry.type != type) continue;
    const bool is_shown = !entry.is_cuda_only || dialect == kernel::Dialect::kCuda;
    return {.advice = std::string(entry.advice),
            .program = is_shown ? Spell(entry.program, dialect) : std::string()};
  }
  return {.advice = "Apply the action to its region and keep the rest of the program as it is."};
}

std::vector<std::string> WorkedExampleTypes() {
  std::vector<std::string> types;
  for (const Entry& entry : kEntries) types.emplace_back(entry.type);
  return types;
}

}  // namespace mtmc::gateway
