// Threads write one flag, all the same value; the last one then writes another.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) flag_written_again(float const* const __restrict__ input, unsigned* const __restrict__ output, __grid_constant__ info_st const info) {
  output[0] = 0u;
  if (threadIdx.x == 63) output[0] = 1u;
}
