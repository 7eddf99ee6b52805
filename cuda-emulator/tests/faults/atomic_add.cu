// Every thread adds to one total.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) atomic_add(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  atomicAdd(&output[0], input[threadIdx.x]);
}
