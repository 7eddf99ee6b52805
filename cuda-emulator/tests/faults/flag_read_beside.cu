// Threads write one flag, and one reads it without a barrier.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) flag_read_beside(float const* const __restrict__ input, unsigned* const __restrict__ output, __grid_constant__ info_st const info) {
  if (threadIdx.x < 63) output[0] = 1u;
  else output[1] = output[0];
}
