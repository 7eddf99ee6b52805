// The threads wait at two barriers.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) different_barriers(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  output[threadIdx.x] = input[threadIdx.x];
}
