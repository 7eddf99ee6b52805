// What is allowed: a multiply-add that the source spells, a product that it rounds, divisions, square root and exponential.
extern "C" __global__ void __launch_bounds__(256) sound(const float* a, const float* b, float* c, float* d) {
    unsigned i = threadIdx.x + blockIdx.x * 256;
    float rounded = fma(a[i], b[i], -0.0f) + c[i];
    float const quotient = fma(a[i], b[i], c[i]) / sqrt(rounded);
    unsigned const row = i / gridDim.x;
    c[i] = quotient;
    d[row] = exp(b[i]);
}
