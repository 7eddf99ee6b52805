// The first thread counts launches in a variable that outlives them.
struct info_st { unsigned static_meta[2]; };
__device__ int launches = 0;
extern "C" __global__ void __launch_bounds__(64) global_variable(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  if (threadIdx.x == 0) launches += 1;
  output[threadIdx.x] = input[threadIdx.x];
}
