//@ mtmc 1 cuda
//@ input  x  f32[16384,4096]
//@ weight w  f32[4096,4096]
//@ buffer h  f32[16384,4096]
//@ output y  f32[16384,1]
//@ tune   BM = 64 128 ; BN = 128 256 ; STAGES = 3 4
//@ launch gemm_gelu grid=(4096/BN, 16384/BM) block=256 shared=STAGES*(BM+BN)*32*4 args=(x, w, h, -1, 1e-5)
//@ call   aten::logsumexp.default(h, [1], keepdim=True, name="a\"") -> y, _ precision=tf32
//@ capture
#define TILE(a) \
  a
template <int N> __device__ float g(float x) { return x * R"raw({)raw"[0]; }
extern "C" {
__global__ void __launch_bounds__(256, 2) gemm_gelu(const float* __restrict__ x, const float* w, float* h,
                                                    long long n, float eps) { /* } */ }
}
