// Tables where good authors put them: in namespaces, classes and functions.
//@ mtmc 1 cuda
//@ input x f32[7,13,17]
//@ output y f32[7,13,17]
//@ launch apply grid=13 block=128 args=(x, y, 7*13*17)
namespace tables {

static constexpr float kScale[4] = {0.5f, 0.5f, 0.5f, 0.5f};

template <class T>
struct Shift {
  static constexpr T kValues[2] = {T(0), T(0)};
};

}  // namespace tables

static __device__ float scale_of(int i) {
  static constexpr int kOrder[8] = {3, 2, 1, 0, 0, 1, 2, 3};
  return tables::kScale[kOrder[i & 7]];
}

__constant__ float kOne[1] = {1.0f};

extern "C" __global__ void apply(const float* x, float* y, int n) {
  static_assert(tables::kScale[0] == 0.5f);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = tanhf(x[i]) * scale_of(i) + x[i] * kOne[0] + tables::Shift<float>::kValues[i & 1];
}
