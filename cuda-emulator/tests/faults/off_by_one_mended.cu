// The last thread reads no further than the input.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) off_by_one_mended(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  unsigned next = threadIdx.x + 1;
  output[threadIdx.x] = next < info.static_meta[0] ? input[next] : 0.0f;
}
