// Half of the threads wait at a barrier that the others do not reach.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) barrier_in_a_branch(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  extern __shared__ __align__(16) char memory[];
  float* tile = (float*)memory;
  output[threadIdx.x] = 0.0f;
  if (threadIdx.x < blockDim.x / 2) {
    tile[threadIdx.x] = input[threadIdx.x];
    __syncthreads();
    output[threadIdx.x] = tile[blockDim.x / 2 - 1 - threadIdx.x];
  }
}
