// The barrier is outside the branch.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) barrier_in_a_branch_mended(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  extern __shared__ __align__(16) char memory[];
  float* tile = (float*)memory;
  output[threadIdx.x] = 0.0f;
  if (threadIdx.x < blockDim.x / 2) tile[threadIdx.x] = input[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < blockDim.x / 2) output[threadIdx.x] = tile[blockDim.x / 2 - 1 - threadIdx.x];
}
