//@ mtmc 1 cuda
//@ input x f32[1]
//@ output y f32[1]
//@ launch add grid=1 block=1 args=(x, y)
template <int N, int M>
struct Bomb {
  static constexpr long value = Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value;
};
template <int M>
struct Bomb<0, M> {
  static constexpr long value = M;
};
extern "C" __global__ void add(const float* x, float* y) { y[0] = x[0] + Bomb<30, 1>::value; }
