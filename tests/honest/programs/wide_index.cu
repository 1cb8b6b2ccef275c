// More elements than 32 bits count, as the bits that they are.
//@ mtmc 1 cuda
//@ input x bf16[65537,32769]
//@ output y bf16[65537,32769]
//@ launch relu grid=65537 block=256 args=(x, y)
extern "C" __global__ void relu(const unsigned short* x, unsigned short* y) {
  const size_t row = (size_t)blockIdx.x * 32769;
  for (int c = threadIdx.x; c < 32769; c += 256) y[row + c] = x[row + c] >> 15 ? 0 : x[row + c];
}
