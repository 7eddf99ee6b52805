// What a CUDA C++ kernel is compiled against to run on the CPU: CUDA's built-in variables, intrinsics and half types.
//
// The emulator fills `emulator_state` before a thread runs, and `barrier` switches to another thread. Arithmetic is IEEE's, with
// one rounding per operation; other functions (exp, sin, ..) are those of the C library, whose bits are not a device's.
#pragma once

typedef unsigned long size_t;
typedef unsigned int uint;
typedef unsigned char uchar;
struct uint3 { unsigned x, y, z; };
typedef uint3 dim3;

// ---- The interface to the emulator; `State` in src/module.rs has the same layout.
struct EmulatorState {
  uint3 thread, block, block_size, grid_size;
  char *shared;
  void *context;
  void (*barrier)(void *context, unsigned line);
  void (*access)(void *context, const void *address, unsigned long size, unsigned write);
};
#define EMULATOR_EXPORT extern "C" __attribute__((visibility("default")))
#define EMULATOR_UNCHECKED __attribute__((no_sanitize("thread")))
EMULATOR_EXPORT EmulatorState emulator_state;
EmulatorState emulator_state = {};

// The bounds of this library: reads of its constants are allowed.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[], _end[];
EMULATOR_EXPORT EMULATOR_UNCHECKED void emulator_image(const char **begin, const char **end) { *begin = __ehdr_start; *end = _end; }

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define threadIdx emulator_state.thread
#define blockIdx emulator_state.block
#define blockDim emulator_state.block_size
#ifdef CUDA_EMULATOR_NARROW_GRID
// As CUDA's compiler knows.
static inline uint3 emulator_grid() { uint3 grid = emulator_state.grid_size; grid.x &= 0x7fffffff; return grid; }
#define gridDim emulator_grid()
#else
#define gridDim emulator_state.grid_size
#endif
#define warpSize 32
#define __syncthreads() emulator_state.barrier(emulator_state.context, __LINE__)
static inline void __threadfence() {}
static inline void __threadfence_block() {}

// ---- Memory checks: g++ calls these before each access when it compiles with -fsanitize=thread.
#ifdef CUDA_EMULATOR_CHECK
#define EMULATOR_HIDDEN extern "C" __attribute__((visibility("hidden"))) EMULATOR_UNCHECKED
#define EMULATOR_ACCESS(name, size, write) \
  EMULATOR_HIDDEN void __tsan_##name(void *p) { emulator_state.access(emulator_state.context, p, size, write); }
EMULATOR_ACCESS(read1, 1, 0) EMULATOR_ACCESS(read2, 2, 0) EMULATOR_ACCESS(read4, 4, 0) EMULATOR_ACCESS(read8, 8, 0) EMULATOR_ACCESS(read16, 16, 0)
EMULATOR_ACCESS(write1, 1, 1) EMULATOR_ACCESS(write2, 2, 1) EMULATOR_ACCESS(write4, 4, 1) EMULATOR_ACCESS(write8, 8, 1) EMULATOR_ACCESS(write16, 16, 1)
EMULATOR_ACCESS(unaligned_read2, 2, 0) EMULATOR_ACCESS(unaligned_read4, 4, 0) EMULATOR_ACCESS(unaligned_read8, 8, 0) EMULATOR_ACCESS(unaligned_read16, 16, 0)
EMULATOR_ACCESS(unaligned_write2, 2, 1) EMULATOR_ACCESS(unaligned_write4, 4, 1) EMULATOR_ACCESS(unaligned_write8, 8, 1) EMULATOR_ACCESS(unaligned_write16, 16, 1)
EMULATOR_HIDDEN void __tsan_read_range(void *p, unsigned long n) { emulator_state.access(emulator_state.context, p, n, 0); }
EMULATOR_HIDDEN void __tsan_write_range(void *p, unsigned long n) { emulator_state.access(emulator_state.context, p, n, 1); }
EMULATOR_HIDDEN void __tsan_func_entry(void *) {}
EMULATOR_HIDDEN void __tsan_func_exit() {}
EMULATOR_HIDDEN void __tsan_init() {}
#endif

// ---- Types.
template <class A, class B> struct EmulatorSame { static const bool value = false; };
template <class A> struct EmulatorSame<A, A> { static const bool value = true; };

// ---- Bits.
template <class To, class From> static inline To emulator_bits(From x) { static_assert(sizeof(To) == sizeof(From), ""); To r; __builtin_memcpy(&r, &x, sizeof r); return r; }
static inline unsigned __float_as_uint(float x) { return emulator_bits<unsigned>(x); }
static inline int __float_as_int(float x) { return emulator_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return emulator_bits<float>(x); }
static inline float __int_as_float(int x) { return emulator_bits<float>(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline unsigned __brev(unsigned x) { unsigned r = 0; for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i); return r; }
static inline unsigned long long __brevll(unsigned long long x) { return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32)); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
static inline int __mulhi(int a, int b) { return (long long)a * b >> 32; }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
static inline long long __mul64hi(long long a, long long b) { return (__int128)a * b >> 64; }

// ---- Functions of float and double.
extern "C" {
#define EMULATOR_LIBM(n) double n(double); float n##f(float);
EMULATOR_LIBM(exp) EMULATOR_LIBM(exp2) EMULATOR_LIBM(expm1) EMULATOR_LIBM(log) EMULATOR_LIBM(log2) EMULATOR_LIBM(log1p) EMULATOR_LIBM(erf)
EMULATOR_LIBM(sin) EMULATOR_LIBM(cos) EMULATOR_LIBM(tan) EMULATOR_LIBM(asin) EMULATOR_LIBM(acos) EMULATOR_LIBM(atan)
EMULATOR_LIBM(sinh) EMULATOR_LIBM(cosh) EMULATOR_LIBM(tanh) EMULATOR_LIBM(asinh) EMULATOR_LIBM(acosh) EMULATOR_LIBM(atanh)
EMULATOR_LIBM(sqrt) EMULATOR_LIBM(floor) EMULATOR_LIBM(ceil) EMULATOR_LIBM(trunc) EMULATOR_LIBM(rint) EMULATOR_LIBM(round) EMULATOR_LIBM(fabs)
#define EMULATOR_LIBM2(n) double n(double, double); float n##f(float, float);
EMULATOR_LIBM2(pow) EMULATOR_LIBM2(fmod) EMULATOR_LIBM2(atan2) EMULATOR_LIBM2(hypot) EMULATOR_LIBM2(copysign)
double fma(double, double, double); float fmaf(float, float, float);
int abs(int);
}
#define EMULATOR_FLOAT(n) static inline float n(float x) { return n##f(x); }
EMULATOR_FLOAT(exp) EMULATOR_FLOAT(exp2) EMULATOR_FLOAT(expm1) EMULATOR_FLOAT(log) EMULATOR_FLOAT(log2) EMULATOR_FLOAT(log1p) EMULATOR_FLOAT(erf)
EMULATOR_FLOAT(sin) EMULATOR_FLOAT(cos) EMULATOR_FLOAT(tan) EMULATOR_FLOAT(asin) EMULATOR_FLOAT(acos) EMULATOR_FLOAT(atan)
EMULATOR_FLOAT(sinh) EMULATOR_FLOAT(cosh) EMULATOR_FLOAT(tanh) EMULATOR_FLOAT(asinh) EMULATOR_FLOAT(acosh) EMULATOR_FLOAT(atanh)
#ifdef CUDA_EMULATOR_RECIPROCALS
static inline float sqrt(float x) { return 1.0f / (1.0f / sqrtf(x)); }
template <class A, class B> static inline auto emulator_quotient(A a, B b) -> decltype(a / b) { return a / b; }
static inline float emulator_quotient(float a, float b) { return a * (1.0f / b); }
#else
EMULATOR_FLOAT(sqrt)
#endif
EMULATOR_FLOAT(floor) EMULATOR_FLOAT(ceil) EMULATOR_FLOAT(trunc) EMULATOR_FLOAT(rint) EMULATOR_FLOAT(round) EMULATOR_FLOAT(fabs)
#define EMULATOR_FLOAT2(n) static inline float n(float x, float y) { return n##f(x, y); }
EMULATOR_FLOAT2(pow) EMULATOR_FLOAT2(fmod) EMULATOR_FLOAT2(atan2) EMULATOR_FLOAT2(hypot) EMULATOR_FLOAT2(copysign)
#ifdef CUDA_EMULATOR_FMA_IS_A_SUM
// Contracted again, with a sum that follows where it adds -0.
static inline float fma(float a, float b, float c) { return a * b + c; }
#else
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
static inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
static inline bool isnan(float x) { return x != x; }
static inline bool isnan(double x) { return x != x; }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
// As on the device: of a NaN and a number the number, and -0 below +0.
template <class T> static inline T emulator_max(T a, T b) { return a > b ? a : b > a ? b : a == b ? (__builtin_signbit(a) ? b : a) : a == a ? a : b; }
template <class T> static inline T emulator_min(T a, T b) { return a < b ? a : b < a ? b : a == b ? (__builtin_signbit(a) ? a : b) : a == a ? a : b; }
template <class T> static inline T max(T a, T b) { return a > b ? a : b; }
template <class T> static inline T min(T a, T b) { return a < b ? a : b; }
#define EMULATOR_EXTREME(n, of, T) static inline T n(T a, T b) { return of(a, b); }
EMULATOR_EXTREME(max, emulator_max, float) EMULATOR_EXTREME(min, emulator_min, float) EMULATOR_EXTREME(max, emulator_max, double) EMULATOR_EXTREME(min, emulator_min, double)
EMULATOR_EXTREME(fmaxf, emulator_max, float) EMULATOR_EXTREME(fminf, emulator_min, float) EMULATOR_EXTREME(fmax, emulator_max, double) EMULATOR_EXTREME(fmin, emulator_min, double)

// ---- Rounding to 16 bits, once. A value is first rounded to odd in a wider type: rounding that gives what rounding the value gives.
static inline float emulator_odd(double x) {
  float f = (float)x; double back = f;
  if (back == x || x != x || (emulator_bits<unsigned>(f) & 1)) return f;
  unsigned u = emulator_bits<unsigned>(f);
  bool up = x < 0 ? back > x : back < x; // Away from zero, where rounding went towards it.
  return emulator_bits<float>(up ? u + 1 : u - 1);
}
// a + b rounded to odd: the rest of the sum (Knuth's TwoSum) sets the last bit.
static inline double emulator_odd_sum(double a, double b) {
  double s = a + b, v = s - a, rest = (a - (s - v)) + (b - v);
  unsigned long u = emulator_bits<unsigned long>(s);
  if (rest == 0 || rest != rest || (u & 1)) return s;
  return emulator_bits<double>((rest > 0) == (s > 0) ? u + 1 : u - 1);
}
template <class T> static inline float emulator_odd_integer(T x) {
  bool negative = x < 0; unsigned long u = negative ? 0ul - (unsigned long)x : (unsigned long)x;
  int drop = u >> 24 ? 40 - __builtin_clzl(u) : 0;
  unsigned long kept = drop ? u >> drop | ((u & ((1ul << drop) - 1)) != 0) : u;
  float f = (float)kept; for (int i = 0; i < drop; i++) f *= 2.0f;
  return negative ? -f : f;
}
// float -> f16 and bf16 to nearest, ties to even; a NaN gives 0x7fff, as __float2half_rn and __float2bfloat16_rn do.
static inline unsigned short emulator_to_f16(float f) {
  unsigned b = emulator_bits<unsigned>(f), sign = b >> 16 & 0x8000, a = b & 0x7fffffff;
  if (a > 0x7f800000) return 0x7fff;
  if (a >= 0x47800000) return sign | 0x7c00; // 2^16 and more; the step below rounds 65520 to infinity.
  if (a < 0x38800000) return sign | (unsigned short)(emulator_bits<unsigned>(emulator_bits<float>(a) + 0.5f) - 0x3f000000); // Subnormal: 0.5's last bit is 2^-24.
  return sign | (unsigned short)((a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
}
static inline float emulator_from_f16(unsigned short h) {
  unsigned sign = (unsigned)(h & 0x8000) << 16, a = h & 0x7fff;
  if (a > 0x7c00) return emulator_bits<float>(0x7fffffffu);
  if (a == 0x7c00) return emulator_bits<float>(sign | 0x7f800000);
  if (a < 0x400) { float f = (float)a * 5.9604644775390625e-8f; return sign ? -f : f; }
  return emulator_bits<float>(sign | ((a << 13) + 0x38000000));
}
static inline unsigned short emulator_to_bf16(float f) {
  unsigned b = emulator_bits<unsigned>(f);
  return (b & 0x7fffffff) > 0x7f800000 ? 0x7fff : (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
static inline float emulator_from_bf16(unsigned short h) { return emulator_bits<float>((unsigned)h << 16); }

#define EMULATOR_HALF_TYPE(H, to, from) \
  struct H { \
    unsigned short bits; \
    H() {} H(float f) : bits(to(f)) {} H(double d) : bits(to(emulator_odd(d))) {} H(bool b) : bits(to(b)) {} \
    H(signed char i) : bits(to(i)) {} H(unsigned char i) : bits(to(i)) {} H(short i) : bits(to(i)) {} H(unsigned short i) : bits(to(i)) {} \
    H(int i) : bits(to(emulator_odd_integer(i))) {} H(unsigned i) : bits(to(emulator_odd_integer(i))) {} \
    H(long i) : bits(to(emulator_odd_integer(i))) {} H(unsigned long i) : bits(to(emulator_odd_integer(i))) {} \
    H(long long i) : bits(to(emulator_odd_integer(i))) {} H(unsigned long long i) : bits(to(emulator_odd_integer(i))) {} \
    operator float() const { return from(bits); } \
  }; \
  static inline H operator+(H a, H b) { return H((float)a + (float)b); } static inline H operator-(H a, H b) { return H((float)a - (float)b); } \
  static inline H operator*(H a, H b) { return H((float)a * (float)b); } static inline H operator/(H a, H b) { return H((float)a / (float)b); } \
  static inline H operator-(H a) { a.bits ^= 0x8000; return a; } \
  static inline bool operator<(H a, H b) { return (float)a < (float)b; } static inline bool operator>(H a, H b) { return (float)a > (float)b; } \
  static inline bool operator<=(H a, H b) { return (float)a <= (float)b; } static inline bool operator>=(H a, H b) { return (float)a >= (float)b; } \
  static inline bool operator==(H a, H b) { return (float)a == (float)b; } static inline bool operator!=(H a, H b) { return (float)a != (float)b; } \
  static inline H __hfma(H a, H b, H c) { return H(emulator_odd_sum((double)(float)a * (double)(float)b, (double)(float)c)); } \
  static inline bool __hisnan(H a) { return (float)a != (float)a; } static inline bool __hisinf(H a) { return __builtin_isinf((float)a); } \
  static inline H __habs(H a) { a.bits &= 0x7fff; return a; } \
  static inline H __hmax(H a, H b) { return H(emulator_max((float)a, (float)b)); } static inline H __hmin(H a, H b) { return H(emulator_min((float)a, (float)b)); } \
  static inline H __hmax_nan(H a, H b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); } \
  static inline H __hmin_nan(H a, H b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); } \
  static inline H hexp(H a) { return H(expf(a)); } static inline H hlog(H a) { return H(logf(a)); } static inline H hsin(H a) { return H(sinf(a)); } \
  static inline H hcos(H a) { return H(cosf(a)); } static inline H htanh(H a) { return H(tanhf(a)); } static inline H hsqrt(H a) { return H(sqrtf(a)); } \
  static inline H hrsqrt(H a) { return H(rsqrtf(a)); } static inline H hceil(H a) { return H(ceilf(a)); } static inline H hfloor(H a) { return H(floorf(a)); } \
  static inline H htrunc(H a) { return H(truncf(a)); } static inline H hrint(H a) { return H(rintf(a)); }
EMULATOR_HALF_TYPE(__half, emulator_to_f16, emulator_from_f16)
EMULATOR_HALF_TYPE(__nv_bfloat16, emulator_to_bf16, emulator_from_bf16)
typedef __half half;

// ---- Matrix fragments of 16 x 16 x 16 halves, or 16 x 16 x 8 of TF32, summed in f32 as Hopper's tensor cores do, or as it is planted. What a warp has together, its
// first thread has here; kernels of a block with one dimension.
static inline bool emulator_is_first() { return emulator_state.thread.x % warpSize == 0; }
extern "C" { double ldexp(double, int); }
#ifndef CUDA_EMULATOR_TENSOR_TERMS
#define CUDA_EMULATOR_TENSOR_TERMS 16
#define CUDA_EMULATOR_TENSOR_BITS 25
#endif
static inline int emulator_exponent(float x, int least) { int e = (int)(emulator_bits<unsigned>(x) >> 23 & 0xff) - 127; return e < least ? least : e; }
// Exact products and a sum: each is cut to so many places below the largest exponent, which is -133 at least with 25, they are added, and cut to
// an f32.
template <int count> static inline float emulator_sum_of_products(const float *a, const float *b, float c, int least) {
  double products[count + 1], all = 0; int exponents[count + 1], largest = -1000;
  for (int i = 0; i <= count; i++) {
    products[i] = i < count ? (double)a[i] * b[i] : c; all += products[i];
    exponents[i] = i < count ? emulator_exponent(a[i], least) + emulator_exponent(b[i], least) : emulator_exponent(c, -126);
    if (products[i] != 0 && exponents[i] > largest) largest = exponents[i];
  }
  if (all != all) return emulator_bits<float>(0x7fffffffu);
  if (__builtin_isinf(all)) return (float)all;
  if (largest == -1000) return 0.0f;
  const int bits = CUDA_EMULATOR_TENSOR_BITS;
  if (largest < -108 - bits) largest = -108 - bits;
  long sum = 0; double scale = ldexp(1.0, bits - largest);
  for (double product : products) sum += (long)(product * scale);
  double exact = ldexp((double)sum, largest - bits); float nearest = (float)exact;
  bool beyond = exact < 0 ? nearest < exact : nearest > exact;
  return beyond && __builtin_fabs(exact) < 0x1p128 ? emulator_bits<float>(emulator_bits<unsigned>(nearest) - 1) : nearest;
}
namespace nvcuda { namespace wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
namespace precision { struct tf32; }
enum layout_t { mem_row_major, mem_col_major };
// As `cvt.rna.tf32.f32`: to 10 places, to nearest, ties away from zero.
static inline float __float_to_tf32(float x) {
  unsigned b = emulator_bits<unsigned>(x), a = b & 0x7fffffff;
  return emulator_bits<float>(a > 0x7f800000 ? 0x7fffffffu : a == 0x7f800000 ? b : (b + 0x1000) & 0xffffe000u);
}
// What a fragment's elements are in memory, how they are multiplied, how many steps it has, and how many of them an addition takes: CUDA's compiler
// makes 8 steps of TF32 two instructions of 4 (HMMA.1684), and 16 of halves one.
template <class T> struct emulator_factor;
template <> struct emulator_factor<__half> { typedef __half stored; static const int least = -14, steps = 16, terms = CUDA_EMULATOR_TENSOR_TERMS; static float of(__half x) { return x; } };
template <> struct emulator_factor<__nv_bfloat16> { typedef __nv_bfloat16 stored; static const int least = -126, steps = 16, terms = CUDA_EMULATOR_TENSOR_TERMS; static float of(__nv_bfloat16 x) { return x; } };
// Of a number that is none of TF32 the device reads the upper digits.
template <> struct emulator_factor<precision::tf32> { typedef float stored; static const int least = -126, steps = 8, terms = 4; static float of(float x) { return emulator_bits<float>(emulator_bits<unsigned>(x) & 0xffffe000u); } };
template <class Use, int m, int n, int k, class T, class Layout = void> struct fragment { static_assert(sizeof(T) == 0, "fragments of 16 x 16 x 16 halves and of 16 x 16 x 8 of TF32 are emulated"); };
// Rows of A, columns of B, and rows of the sum, one after the other.
template <class T, int k, class Layout> struct fragment<matrix_a, 16, 16, k, T, Layout> { static_assert(k == emulator_factor<T>::steps, ""); float x[16][k]; };
template <class T, int k, class Layout> struct fragment<matrix_b, 16, 16, k, T, Layout> { static_assert(k == emulator_factor<T>::steps, ""); float x[16][k]; };
template <int k> struct fragment<accumulator, 16, 16, k, float, void> { float x[16][16]; };
// As the device wants them: 256 bits, and rows that begin at multiples of 128 bits.
extern "C" int dprintf(int, const char *, ...);
static inline void emulator_aligned(const void *p, unsigned bytes) {
  if ((unsigned long)p % 32 == 0 && bytes % 16 == 0) return;
  dprintf(2, "cuda-emulator: a fragment at %p, whose lines are %u bytes apart: a device wants multiples of 32 and 16 bytes\n", p, bytes);
  __builtin_trap();
}
template <class T, int k, class Layout> static inline void load_matrix_sync(fragment<matrix_a, 16, 16, k, T, Layout> &f, const typename emulator_factor<T>::stored *p, unsigned stride) {
  if (!emulator_is_first()) return;
  emulator_aligned(p, stride * sizeof *p);
  for (int i = 0; i < 16; i++) for (int j = 0; j < k; j++) f.x[i][j] = emulator_factor<T>::of(EmulatorSame<Layout, row_major>::value ? p[i * stride + j] : p[j * stride + i]);
}
template <class T, int k, class Layout> static inline void load_matrix_sync(fragment<matrix_b, 16, 16, k, T, Layout> &f, const typename emulator_factor<T>::stored *p, unsigned stride) {
  if (!emulator_is_first()) return;
  emulator_aligned(p, stride * sizeof *p);
  for (int i = 0; i < k; i++) for (int j = 0; j < 16; j++) f.x[j][i] = emulator_factor<T>::of(EmulatorSame<Layout, row_major>::value ? p[i * stride + j] : p[j * stride + i]);
}
template <int k> static inline void fill_fragment(fragment<accumulator, 16, 16, k, float> &f, float value) {
  if (emulator_is_first()) for (auto &row : f.x) for (float &x : row) x = value;
}
template <class T, int k, class A, class B> static inline void mma_sync(fragment<accumulator, 16, 16, k, float> &d, const fragment<matrix_a, 16, 16, k, T, A> &a, const fragment<matrix_b, 16, 16, k, T, B> &b, const fragment<accumulator, 16, 16, k, float> &c) {
  if (!emulator_is_first()) return;
  const int terms = emulator_factor<T>::terms;
  for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) {
    float sum = c.x[i][j];
    for (int step = 0; step < k; step += terms) sum = emulator_sum_of_products<terms>(a.x[i] + step, b.x[j] + step, sum, emulator_factor<T>::least);
    d.x[i][j] = sum;
  }
}
template <int k> static inline void store_matrix_sync(float *p, const fragment<accumulator, 16, 16, k, float> &f, unsigned stride, layout_t layout) {
  if (!emulator_is_first()) return;
  emulator_aligned(p, stride * sizeof *p);
  for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) (layout == mem_row_major ? p[i * stride + j] : p[j * stride + i]) = f.x[i][j];
}
} }

// ---- Pairs of halves, one after the other.
#define EMULATOR_PAIR1(P, n, of) static inline P n(P a) { return P(of(a.x), of(a.y)); }
#define EMULATOR_PAIR2(P, n, of) static inline P n(P a, P b) { return P(of(a.x, b.x), of(a.y, b.y)); }
#define EMULATOR_PAIR_OPERATOR(P, o) static inline P operator o(P a, P b) { return P(a.x o b.x, a.y o b.y); }
#define EMULATOR_PAIR_TYPE(P, H) \
  struct alignas(4) P { H x, y; P() {} P(H a, H b) : x(a), y(b) {} }; \
  EMULATOR_PAIR_OPERATOR(P, +) EMULATOR_PAIR_OPERATOR(P, -) EMULATOR_PAIR_OPERATOR(P, *) EMULATOR_PAIR_OPERATOR(P, /) \
  EMULATOR_PAIR1(P, operator-, -) EMULATOR_PAIR1(P, __habs2, __habs) \
  EMULATOR_PAIR1(P, h2exp, hexp) EMULATOR_PAIR1(P, h2log, hlog) EMULATOR_PAIR1(P, h2sin, hsin) EMULATOR_PAIR1(P, h2cos, hcos) \
  EMULATOR_PAIR1(P, h2tanh, htanh) EMULATOR_PAIR1(P, h2sqrt, hsqrt) EMULATOR_PAIR1(P, h2rsqrt, hrsqrt) EMULATOR_PAIR1(P, h2ceil, hceil) \
  EMULATOR_PAIR1(P, h2floor, hfloor) EMULATOR_PAIR1(P, h2trunc, htrunc) EMULATOR_PAIR1(P, h2rint, hrint) \
  EMULATOR_PAIR2(P, __hmax2, __hmax) EMULATOR_PAIR2(P, __hmin2, __hmin) EMULATOR_PAIR2(P, __hmax2_nan, __hmax_nan) EMULATOR_PAIR2(P, __hmin2_nan, __hmin_nan) \
  static inline P __hfma2(P a, P b, P c) { return P(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
EMULATOR_PAIR_TYPE(__half2, __half)
EMULATOR_PAIR_TYPE(__nv_bfloat162, __nv_bfloat16)

// ---- Float to integer, as the device does it: towards zero, beyond the range to its end, and a NaN to 0. To fewer than 32 bits
// NVRTC converts to 32 (`cvt.rzi.s32.f32`) and takes the low ones; the conversions of halves end at the narrow range.
template <class T> static inline T emulator_saturate(double x) {
  const T highest = T(-1) > T(0) ? T(~T(0)) : T(~(1ull << (sizeof(T) * 8 - 1)));
  const T lowest = T(-1) > T(0) ? T(0) : T(1ull << (sizeof(T) * 8 - 1));
  return x != x ? T(0) : x <= (double)lowest ? lowest : x >= (double)highest ? highest : (T)x;
}
template <class T, bool narrow, bool has_sign> struct EmulatorWide { typedef T type; };
template <class T> struct EmulatorWide<T, true, true> { typedef int type; };
template <class T> struct EmulatorWide<T, true, false> { typedef unsigned type; };
template <class T, class X> static inline T emulator_convert(X x) {
  typedef typename EmulatorWide<T, (sizeof(T) < 4), (T(-1) < T(0))>::type Wide;
  if constexpr (EmulatorSame<X, float>::value || EmulatorSame<X, double>::value) return (T)emulator_saturate<Wide>(x);
  else if constexpr (EmulatorSame<X, __half>::value || EmulatorSame<X, __nv_bfloat16>::value) return emulator_saturate<T>((float)x);
  else return (T)x;
}
// CubeCL writes a conversion as `type(value)`.
#define int8_t(...) emulator_convert<int8_t>(__VA_ARGS__)
#define uint8_t(...) emulator_convert<uint8_t>(__VA_ARGS__)
#define int16_t(...) emulator_convert<int16_t>(__VA_ARGS__)
#define int32_t(...) emulator_convert<int32_t>(__VA_ARGS__)
#define int64_t(...) emulator_convert<int64_t>(__VA_ARGS__)
#define uint16_t(...) emulator_convert<uint16_t>(__VA_ARGS__)
#define uint32_t(...) emulator_convert<uint32_t>(__VA_ARGS__)
#define uint64_t(...) emulator_convert<uint64_t>(__VA_ARGS__)

// ---- A kernel called by its array of argument addresses, and what its parameters are.
template <class T> struct EmulatorBare { typedef T type; };
template <class T> struct EmulatorBare<const T> { typedef T type; };
template <class T> struct EmulatorBare<T &> { typedef typename EmulatorBare<T>::type type; };
template <class T> struct EmulatorPointee { static const unsigned long size = 0, alignment = 1; };
template <class T> struct EmulatorPointee<T *> { static const unsigned long size = sizeof(T), alignment = alignof(T); };
template <unsigned long... I> struct EmulatorIndices {};
template <unsigned long N, unsigned long... I> struct EmulatorMake : EmulatorMake<N - 1, N - 1, I...> {};
template <unsigned long... I> struct EmulatorMake<0, I...> { typedef EmulatorIndices<I...> type; };
template <class... A, unsigned long... I> EMULATOR_UNCHECKED static inline void emulator_apply(void (*f)(A...), void **a, EmulatorIndices<I...>) { f(*(typename EmulatorBare<A>::type *)a[I]...); }
template <class... A> EMULATOR_UNCHECKED static inline void emulator_call(void (*f)(A...), void **a) { emulator_apply(f, a, typename EmulatorMake<sizeof...(A)>::type()); }
// The size and the alignment of what each pointer parameter points to, 0 and 1 for other parameters; and the size of each parameter.
template <class... A> EMULATOR_UNCHECKED static inline void emulator_pointees(void (*)(A...), unsigned long *out) { ((*out++ = EmulatorPointee<A>::size, *out++ = EmulatorPointee<A>::alignment, *out++ = sizeof(typename EmulatorBare<A>::type)), ...); }
// CubeCL's launch information, the last parameter: the lengths of the buffers in elements, in the order of the parameters.
template <class T> EMULATOR_UNCHECKED static inline auto emulator_length(const T &info, unsigned long i, int) -> decltype((unsigned long)info.static_meta[0]) { return i < sizeof info.static_meta / sizeof info.static_meta[0] ? (unsigned long)info.static_meta[i] : ~0ul; }
template <class T> EMULATOR_UNCHECKED static inline unsigned long emulator_length(const T &, unsigned long, long) { return ~0ul; }
template <class... A> struct EmulatorLast { typedef int type; };
template <class A> struct EmulatorLast<A> { typedef typename EmulatorBare<A>::type type; };
template <class A, class... B> struct EmulatorLast<A, B...> : EmulatorLast<B...> {};
template <class... A> EMULATOR_UNCHECKED static inline unsigned long emulator_length_of(void (*)(A...), void **a, unsigned long i) { typedef typename EmulatorLast<A...>::type Last; return emulator_length(*(Last *)a[sizeof...(A) - 1], i, 0); }
#define EMULATOR_KERNEL(name) \
  EMULATOR_EXPORT EMULATOR_UNCHECKED void emulator_run_##name(void **a) { emulator_call(name, a); } \
  EMULATOR_EXPORT EMULATOR_UNCHECKED void emulator_pointees_##name(unsigned long *out) { emulator_pointees(name, out); } \
  EMULATOR_EXPORT EMULATOR_UNCHECKED unsigned long emulator_length_##name(void **a, unsigned long i) { return emulator_length_of(name, a, i); }
