// 96 values live at once, in blocks whose threads have 64 registers.
extern "C" __global__ void __launch_bounds__(1024) spill(const float* in, float* out) {
    float v[96];
#pragma unroll
    for (int i = 0; i < 96; i++) v[i] = in[threadIdx.x + i * 1024];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 96; i++) out[threadIdx.x + i * 1024] = fmaf(v[i], v[(i * 7 + 5) % 96], v[95 - i]);
}
