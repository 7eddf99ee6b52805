extern "C" __global__ void __launch_bounds__(256) assembly(const float* a, float* b) {
    float y;
    asm("add.f32 %0, %1, %2;" : "=f"(y) : "f"(a[threadIdx.x]), "f"(b[threadIdx.x]));
    b[threadIdx.x] = y;
}
