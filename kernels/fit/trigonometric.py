"""Coefficients of kernels/src/function/constants.rs, module `trigonometric`.

Weighted minimax fit by the exchange algorithm on a grid; the coefficients are rounded to f32 one after another, the lowest
power first, and the others are fitted again after each rounding.
Run: python3 trigonometric.py [name ...]
"""
import struct
import sys
from mpmath import mp, mpf, matrix, lu_solve, sin, cos, tan, atan, asin, erf, erfc, pi, sqrt, floor, ldexp, log, exp

mp.prec = 110


def f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def bits(x):
    return struct.unpack("I", struct.pack("f", float(x)))[0]


def exchange(f, powers, a, b, weight, points=400, rounds=30):
    """c with sum(c[i] * t**powers[i]) close to f on [a, b]: the maximum of weight * |error| is least. -> (c, maximum)"""
    a, b = mpf(a), mpf(b)
    n = len(powers)
    grid = [(a + b) / 2 - (b - a) / 2 * mp.cos(pi * i / (points - 1)) for i in range(points)]
    value = [f(t) for t in grid]
    w = [weight(t) for t in grid]
    if n == 0:
        return [], max(abs(v * u) for v, u in zip(value, w))
    rows = [[t ** p for p in powers] for t in grid]
    picked = [round(i * (points - 1) / n) for i in range(n + 1)]
    worst = None
    for _ in range(rounds):
        m = matrix(n + 1, n + 1)
        y = matrix(n + 1, 1)
        for i, g in enumerate(picked):
            for j in range(n):
                m[i, j] = rows[g][j]
            m[i, n] = (-1) ** i / w[g]
            y[i] = value[g]
        s = lu_solve(m, y)
        c = [s[j] for j in range(n)]
        e = [(sum(c[j] * r[j] for j in range(n)) - v) * u for r, v, u in zip(rows, value, w)]
        # the largest error in each run of one sign
        runs = []
        for i in range(points):
            if runs and (e[i] > 0) == (e[runs[-1]] > 0):
                if abs(e[i]) > abs(e[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:
            if abs(e[runs[0]]) < abs(e[runs[-1]]):
                runs.pop(0)
            else:
                runs.pop()
        worst = max(abs(t) for t in e)
        if len(runs) < n + 1 or runs == picked:
            break
        picked = runs
    return c, worst


def rounded(f, powers, a, b, weight):
    """As exchange, with every coefficient an f32: rounded one after another from the lowest or from the highest, the others
    fitted again after each, or all at once; the best of the three."""
    powers = list(powers)
    first, ideal = exchange(f, powers, a, b, weight)
    best = None
    for order in (powers, powers[::-1], None):
        fixed = {}
        if order is None:
            fixed = {p: f32(c) for p, c in zip(powers, first)}
        else:
            for p in order:
                left = [q for q in powers if q not in fixed]
                c, _ = exchange(lambda t: f(t) - sum(v * t ** q for q, v in fixed.items()), left, a, b, weight)
                fixed[p] = f32(c[left.index(p)])
        e = exchange(lambda t: f(t) - sum(v * t ** q for q, v in fixed.items()), [], a, b, weight)[1]
        if best is None or e < best[1]:
            best = [fixed[p] for p in powers], e
    return best[0], ideal, best[1]


def polished(f, powers, a, b, weight, seed=1, tries=1500):
    """As rounded, then a random search over the neighbouring floats."""
    import random
    random.seed(seed)
    out, ideal, _ = rounded(f, powers, a, b, weight)
    points = 90
    grid = [(mpf(a) + b) / 2 - (mpf(b) - a) / 2 * mp.cos(pi * i / (points - 1)) for i in range(points)]
    target = [float(f(t) * weight(t)) for t in grid]
    rows = [[float(t ** p * weight(t)) for p in powers] for t in grid]
    def worst(c):
        return max(abs(sum(x * y for x, y in zip(c, r)) - v) for r, v in zip(rows, target))
    best = None
    for start in ([float(c) for c in out], [float(f32(c)) for c in exchange(f, powers, a, b, weight)[0]]):
        current, e = start, worst(start)
        for _ in range(tries):
            c = list(current)
            for _ in range(random.choice((1, 1, 2, 3))):
                i = random.randrange(len(c))
                c[i] = struct.unpack("f", struct.pack("I", bits(c[i]) + random.choice((-1, 1)) * random.choice((1, 1, 2, 4, 16, 64) if i > 2 else (1, 1, 2))))[0]
            n = worst(c)
            if n < e:
                current, e = c, n
        if best is None or e < best[1]:
            best = current, e
    return [mpf(c) for c in best[0]], ideal, mpf(best[1])


def nearly(f, a, b, count=400):
    """The f32 between a and b at which f is nearest to a multiple of 2^-24, and that multiple."""
    def error(v):
        return abs(v - ldexp(mp.nint(ldexp(v, 24)), -24))
    first, last = bits(a), bits(b)
    numbers = [mpf(struct.unpack("f", struct.pack("I", first + (last - first) * i // count))[0]) for i in range(count)]
    c = min(numbers, key=lambda x: error(f(x)))
    return c, ldexp(mp.nint(ldexp(f(c), 24)), -24)


def slope(f, c):
    """y -> (f(c + y) - f(c)) / y, in enough digits to subtract."""
    def h(y):
        with mp.workprec(250):
            return +((f(c + y) - f(c)) / y)
    return h


def show(name, out, ideal, e):
    print(f"{name}: minimax {mp.nstr(ideal, 4)} (2^{mp.nstr(log(ideal, 2), 4)}), rounded {mp.nstr(e, 4)} (2^{mp.nstr(log(e, 2), 4)})")
    for c in out:
        print(f"    {float(c)!r}, // {bits(c):#010x}")


QUARTER = (pi / 4 * mpf("1.0005")) ** 2
TINY = mpf(10) ** -6
# Where ranges end, a little apart from places where a weight is 0.
ARC = mpf(35) / 64
LOW = mpf(3) / 4
HIGH = mpf(11) / 8


def by_square(g, first, order):
    """t -> (g(r) - first(r)) / r^order, r = sqrt(t), in enough digits to subtract."""
    def h(t):
        with mp.workprec(250):
            r = sqrt(t)
            return +((g(r) - first(r)) / r ** order)
    return h


def main(names):
    def wanted(name):
        return not names or name in names
    if wanted("sin"):
        f = by_square(sin, lambda r: r, 3)
        show("sin", *rounded(f, range(3), TINY, QUARTER, lambda t: t / (sin(sqrt(t)) / sqrt(t))))
        f = by_square(cos, lambda r: 1 - r * r / 2, 4)
        show("cos", *rounded(f, range(3), TINY, QUARTER, lambda t: t * t))
    if wanted("tan"):
        f = by_square(tan, lambda r: r, 3)
        show("tan", *polished(f, range(4), TINY, mpf("0.3935") ** 2, lambda t: t * sqrt(t) / tan(sqrt(t)), tries=4000))
    if wanted("atan"):
        f = by_square(atan, lambda r: r, 3)
        show("atan, low", *polished(f, range(6), TINY, ARC ** 2, lambda t: t * sqrt(t) / atan(sqrt(t)), tries=4000))
        c, less = nearly(lambda m: m - atan(m), mpf("0.765"), mpf("0.775"))
        show("atan, centre and what it is less", [c, less], mpf(1), mpf(1))
        f = slope(atan, c)
        show("atan, high", *polished(lambda y: f(y) - 1, range(6), ARC - c - TINY, 1 - c + TINY / 3, abs, tries=4000))
    if wanted("asin"):
        f = by_square(asin, lambda r: r, 3)
        show("asin", *rounded(f, range(5), TINY, mpf("0.2501"), lambda t: t * sqrt(t) / asin(sqrt(t))))
    if wanted("erf"):
        f = by_square(erf, lambda r: r, 1)
        show("erf, low", *polished(f, range(8), TINY ** 2, LOW ** 2, lambda t: sqrt(t) / erf(sqrt(t)), tries=4000))
        c, value = nearly(erf, mpf("1.05"), mpf("1.07"))
        show("erf, centre and its erf", [c, value], mpf(1), mpf(1))
        show("erf, middle", *polished(slope(erf, c), range(8), LOW - c - TINY, HIGH - c + TINY / 3, abs, tries=4000))
        f = lambda y: erfc(y + HIGH) ** (mpf(1) / 4)
        show("erf, high", *polished(f, range(8), TINY, mpf("3.92") - HIGH, lambda y: 4 * f(y) ** 3, tries=4000))
    if wanted("constants"):
        h = pi / 2
        parts = []
        for place in (12, 24, 36):
            p = ldexp(floor(ldexp(h, place)), -place)
            parts.append(p)
            h -= p
        parts.append(f32(h))
        show("pi/2 in parts", parts, mpf(1), mpf(1))
        with mp.workprec(400):
            two = 2 / pi
            print("2/pi:", [hex(int(floor(ldexp(two, 32 * (i + 1)))) & 0xffffffff) for i in range(6)])
        show("2/pi, 2/sqrt(pi)", [f32(2 / pi), f32(2 / sqrt(pi))], mpf(1), mpf(1))
        for name, v in (("pi/2", pi / 2), ("pi/4", pi / 4), ("pi", pi), ("3pi/4", 3 * pi / 4)):
            short = ldexp(floor(ldexp(v, 14)), -14)
            show(name, [short, f32(v - short), f32(v)], mpf(1), mpf(1))


if __name__ == "__main__":
    main(sys.argv[1:])
