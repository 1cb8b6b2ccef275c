//@ mtmc 1 cuda
//@ input x f32[64]
//@ output y f32[64]
//@ launch twice grid=1 block=64 args=(x, y)
#define ALIAS(a) a
__global__ void twice(const float* x, float* y);
extern "C" { __global__ void other(float* y) { y[0] = 1; } }
namespace n { __device__ float f(float x) { return x; } }
template <int k> __global__ void shaped() {}
static void __launch_bounds__(64, (1)) __global__ own(int) {}
void \
__global__ twice(const float* x, float* y) { y[threadIdx.x] = 2 * n::f(x[threadIdx.x]); }
