// Two by two results a thread, with a lambda for what lies outside.
//@ mtmc 1 cuda
//@ input x f32[31,37]
//@ input y f32[37,41]
//@ output out f32[31,41]
//@ launch product grid=(2, 3) block=(8, 8) args=(x, y, out)
template <int kRows, int kColumns>
struct Matrix {
  const float* data;

  __device__ float operator()(int row, int column) const {
    return row < kRows && column < kColumns ? data[row * kColumns + column] : 0.0f;
  }
};

extern "C" __global__ void product(const float* x, const float* y, float* out) {
  constexpr int kTile = 16;
  __shared__ float left[kTile][kTile + 1];
  __shared__ float right[kTile][kTile];
  const Matrix<31, 37> a{x};
  const Matrix<37, 41> b{y};
  const int row = blockIdx.x * kTile, column = blockIdx.y * kTile;
  float sums[2][2] = {};
  const auto for_each = [](auto&& body) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) body(threadIdx.y + 8 * i, threadIdx.x + 8 * j, i, j);
    }
  };
  for (int k0 = 0; k0 < 37; k0 += kTile) {
    for_each([&](int r, int c, int, int) {
      left[r][c] = a(row + r, k0 + c);
      right[r][c] = b(k0 + r, column + c);
    });
    __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      for_each([&](int r, int c, int i, int j) { sums[i][j] += left[r][k] * right[k][c]; });
    }
    __syncthreads();
  }
  for_each([&](int r, int c, int i, int j) {
    if (row + r < 31 && column + c < 41) out[(row + r) * 41 + column + c] = sums[i][j];
  });
}
