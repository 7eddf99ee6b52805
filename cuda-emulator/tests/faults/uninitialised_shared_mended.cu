// Every element of the tile is written.
struct info_st { unsigned static_meta[2]; };
extern "C" __global__ void __launch_bounds__(64) uninitialised_shared_mended(float const* const __restrict__ input, float* const __restrict__ output, __grid_constant__ info_st const info) {
  extern __shared__ __align__(16) char memory[];
  float* tile = (float*)memory;
  tile[threadIdx.x] = threadIdx.x % 2 == 0 ? input[threadIdx.x] : 0.0f;
  __syncthreads();
  output[threadIdx.x] = tile[threadIdx.x];
}
