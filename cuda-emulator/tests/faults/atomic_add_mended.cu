// One thread adds, in ascending order.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) atomic_add_mended(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (unsigned i = 0; i < info.static_meta[0]; i++) sum += input[i];
    output[0] = sum;
  }
}
