"""Coefficients of kernels/src/function/constants.rs, module `exponential`.

Each polynomial is fitted in the weighted maximum norm. Lawson's method (least squares, repeatedly reweighted with the
error) gives the free coefficients; the lowest is then rounded to f32 and fixed, the rest is fitted again, and so on.
The tables of powf are fitted with the Remez exchange in 60 digits and rounded to 32-bit fixed point.

    python3 exponential.py [name ...]
"""
import struct
import sys
from math import cos, pi
from mpmath import mp, mpf, lu_solve, matrix, expm1, log, log1p, tanh, sinh, cosh, sqrt

mp.dps = 60


def single(value):
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]


def least_squares(rows, right):
    """Householder QR in f64; rows is a list of columns, changed in place."""
    columns = [list(c) for c in rows]
    right = list(right)
    n, m = len(columns), len(right)
    for j in range(n):
        column = columns[j]
        norm = sum(v * v for v in column[j:]) ** 0.5
        alpha = -norm if column[j] > 0 else norm
        v = column[j:]
        v[0] -= alpha
        vv = sum(a * a for a in v)
        for k in range(j, n):
            other = columns[k]
            d = 2 * sum(a * b for a, b in zip(v, other[j:])) / vv
            for i in range(j, m):
                other[i] -= d * v[i - j]
        d = 2 * sum(a * b for a, b in zip(v, right[j:])) / vv
        for i in range(j, m):
            right[i] -= d * v[i - j]
    result = [0.0] * n
    for j in reversed(range(n)):
        result[j] = (right[j] - sum(columns[k][j] * result[k] for k in range(j + 1, n))) / columns[j][j]
    return result


def lawson(points, target, weight, first, degree, iterations=60):
    """Coefficients of x^first .. x^degree with the least maximum of weight * |error|."""
    m = len(points)
    scale = max(abs(x) for x in points)
    # The terms, scaled, and the target times the weight of the norm.
    terms = [[w * (x / scale) ** i for x, w in zip(points, weight)] for i in range(first, degree + 1)]
    right = [t * w for t, w in zip(target, weight)]
    lam = [1.0 / m] * m
    best = (float("inf"), None)
    for _ in range(iterations):
        root = [l ** 0.5 for l in lam]
        c = least_squares([[a * b for a, b in zip(t, root)] for t in terms], [a * b for a, b in zip(right, root)])
        errors = [abs(sum(ci * t[j] for ci, t in zip(c, terms)) - right[j]) for j in range(m)]
        worst = max(errors)
        if worst < best[0]:
            best = (worst, c)
        total = sum(l * e for l, e in zip(lam, errors))
        if total == 0:
            break
        lam = [max(l * e / total, 1e-30) for l, e in zip(lam, errors)]
    worst, c = best
    return worst, [ci / scale ** i for ci, i in zip(c, range(first, degree + 1))]


def fit(name, low, high, degree, function, weight, fixed=(), count=160):
    """function, weight: of an mpf. fixed: the first coefficients where they are given."""
    points = [(low + high) / 2 + (high - low) / 2 * cos(pi * (i + 0.5) / count) for i in range(count)]
    points = [x for x in points if abs(x) > 1e-6]
    exact = [function(mpf(x)) for x in points]
    weights = [float(weight(mpf(x))) for x in points]
    done = [single(c) for c in fixed]
    worst = 0
    free = None
    while len(done) <= degree:
        rest = [float(e - sum(mpf(c) * mpf(x) ** i for i, c in enumerate(done))) for e, x in zip(exact, points)]
        worst, c = lawson(points, rest, weights, len(done), degree)
        free = free or worst
        done.append(single(c[0]))
    final = max(abs(float(e - sum(mpf(c) * mpf(x) ** i for i, c in enumerate(done)))) * w
                for e, x, w in zip(exact, points, weights))
    print(f"{name}: degree {degree} on [{low:.4f}, {high:.4f}], error {free:.3g} free, {final:.3g} in f32")
    for i, c in enumerate(done):
        print(f"    {c:.9g}, // 0x{struct.unpack('<I', struct.pack('<f', c))[0]:08x}")
    sys.stdout.flush()
    return done


def remez(low, high, degree, function, weight, count=1500):
    """The exchange in mpmath's arithmetic; returns the error and the coefficients."""
    points = [(mpf(low) + high) / 2 - (mpf(high) - low) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    target = [function(x) for x in points]
    weights = [weight(x) for x in points]
    n = degree + 1
    chosen = [round(i * (count - 1) / n) for i in range(n + 1)]
    for _ in range(20):
        a = matrix(n + 1, n + 1)
        b = matrix(n + 1, 1)
        for r, i in enumerate(chosen):
            for c in range(n):
                a[r, c] = points[i] ** c
            a[r, n] = (-1) ** r / weights[i]
            b[r] = target[i]
        x = lu_solve(a, b)
        level = abs(x[n])
        errors = []
        for p, t, w in zip(points, target, weights):
            y = mpf(0)
            for c in reversed(range(n)):
                y = y * p + x[c]
            errors.append((y - t) * w)
        worst = max(abs(e) for e in errors)
        if worst < level * mpf("1.0001"):
            break
        segments = []
        for i, e in enumerate(errors):
            if segments and (errors[segments[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[segments[-1]]):
                    segments[-1] = i
            else:
                segments.append(i)
        while len(segments) > n + 1:
            segments.pop(0 if abs(errors[segments[0]]) < abs(errors[segments[-1]]) else -1)
        if len(segments) < n + 1:
            break
        chosen = segments
    return worst, [x[i] for i in range(n)]


LN2 = log(mpf(2))
LOG2E = 1 / LN2
half = float(LN2) / 2


def ulp_of_exp(r):
    """The weight for a result near e^r in [0.7, 1.42): below 1 the unit is half as large."""
    return (mpf(2) if r < 0 else mpf(1)) * mpf(2) ** 23


def ulp(value):
    """The unit of the last place of an f32 result."""
    return mpf(2) ** (mp.floor(log(abs(value)) / LN2) - 23)


def fit_exp():
    fit("exp: (e^r - 1 - r) / r^2", -half * 1.0001, half * 1.0001, 4, lambda r: (expm1(r) - r) / r ** 2,
        lambda r: r ** 2 * ulp_of_exp(r))


def fit_expm1():
    fit("expm1: (e^r - 1 - r) / r^2", -0.289, 0.4065, 5, lambda r: (expm1(r) - r) / r ** 2,
        lambda r: r ** 2 / ulp(expm1(r)))


def fit_log():
    fit("log: (log(1 + f) - f) / f^2", -0.25, 0.5, 8,
        lambda f: (log1p(f) - f) / f ** 2, lambda f: f ** 2 / ulp(log1p(f)))


def fit_log_centered():
    fit("log2, log10: (log(1 + f) - f) / f^2", float(sqrt(mpf(0.5))) - 1, float(sqrt(mpf(2))) - 1, 8,
        lambda f: (log1p(f) - f) / f ** 2, lambda f: f ** 2 / ulp(log1p(f)))


def fit_tanh():
    fit("tanh: (tanh(x) / x - 1) / x^2 in x^2", 1e-5, 0.625 ** 2, 4,
        lambda u: (tanh(sqrt(u)) / sqrt(u) - 1) / u, lambda u: u * sqrt(u) / ulp(tanh(sqrt(u))))


def fit_hyperbolic():
    top = 0.52
    fit("sinh: (sinh(r) / r - 1) / r^2 in r^2", 1e-6, top * top, 2,
        lambda u: (sinh(sqrt(u)) / sqrt(u) - 1) / u, lambda u: u * 2 ** 23)
    fit("cosh: (cosh(r) - 1) / r^2 in r^2", 1e-6, top * top, 2,
        lambda u: (cosh(sqrt(u)) - 1) / u, lambda u: u / cosh(sqrt(u)) * 2 ** 23)


def fit_exp2():
    fit("exp2: (2^r - 1) / r - 1/2", -0.5, 0.5, 5, lambda r: expm1(r * LN2) / r - 0.5,
        lambda r: abs(r) * ulp_of_exp(r))


def fit_inverse():
    fit("asinh: (asinh(x) / x - 1) / x^2 in x^2", 1e-5, 0.2501, 4,
        lambda u: (mp.asinh(sqrt(u)) / sqrt(u) - 1) / u, lambda u: u * sqrt(u) / ulp(mp.asinh(sqrt(u))))
    fit("atanh: (atanh(x) / x - 1) / x^2 in x^2", 1e-5, 0.2501, 5,
        lambda u: (mp.atanh(sqrt(u)) / sqrt(u) - 1) / u, lambda u: u * sqrt(u) / ulp(mp.atanh(sqrt(u))))
    fit("acosh: (acosh(1 + t) / sqrt(2 t) - 1) / t", 1e-5, 0.5001, 4,
        lambda t: (mp.acosh(1 + t) / sqrt(2 * t) - 1) / t, lambda t: t * sqrt(2 * t) / ulp(mp.acosh(1 + t)))


def fit_pow():
    # log2(1 + f) = f (log2(e) - f H(f)), H as a polynomial in t = f + 0.296875 >= 0; alternating signs.
    offset = mpf("0.296875")
    def h(t):
        f = t - offset
        if abs(f) < mpf(10) ** -12:
            return LOG2E * (mpf(1) / 2 - f / 3 + f * f / 4)
        return (LOG2E - log1p(f) * LOG2E / f) / f
    low, high = offset + sqrt(mpf(0.5)) - 1, offset + sqrt(mpf(2)) - 1
    # Relative to log2: f^2 dH against f (log2(1 + f) / f).
    def weight(t):
        f = t - offset
        return abs(f) / (log1p(f) * LOG2E / f) if abs(f) > 1e-9 else mpf(10) ** -12
    worst, c = remez(low, high, 11, h, weight)
    print(f"powf: H, degree 11, error 2^{float(log(worst) / LN2):.2f} of log2")
    # In units of 2^-32, from degree 4 on of 2^-31. The upper half of a product is rounded down: by one unit on the
    # average where it is shifted left, in degree 3.
    scaled = [int(mp.nint(abs(v) * mpf(2) ** (32 if i < 4 else 31))) - (i == 3) for i, v in enumerate(c)]
    print("    " + ", ".join(f"0x{v:08x}" for v in scaled))
    worst, c = remez(mpf(0), mpf(1), 6, lambda z: expm1(z * LN2) / z if z > 0 else LN2, lambda z: max(z, mpf(10) ** -9))
    print(f"powf: (2^z - 1) / z, degree 6, error 2^{float(log(worst) / LN2):.2f}")
    print("    " + ", ".join(f"0x{int(mp.nint(v * mpf(2) ** 32)):08x}" for v in c))
    print("log2(e) / 2 in 64 bits", hex(int(mp.nint(LOG2E / 2 * mpf(2) ** 64))))


def fit_constants():
    for name, v, bits in (("ln2", LN2, 15), ("log10(2)", LN2 / log(mpf(10)), 15), ("log2(e)", LOG2E, 12),
                          ("log10(e)", 1 / log(mpf(10)), 12)):
        e = int(mp.floor(log(v) / LN2)) + 1
        high = mp.nint(v * mpf(2) ** (bits - e)) / mpf(2) ** (bits - e)
        for s in (0, -23):
            print(name, bits, "scaled by 2^", s, float(high * mpf(2) ** s), f"{single((v - high) * mpf(2) ** s):.9g}")


if __name__ == "__main__":
    everything = {k[4:]: v for k, v in list(globals().items()) if k.startswith("fit_")}
    for name in sys.argv[1:] or everything:
        everything[name]()
