"""Prints the digits and MD5 sums that generated_digits_test.cpp holds the library's pictures against.

Draws the same pictures from their description, in Python's integers. A difference means that pictures of a seed
have changed, or that a compiler or machine draws others.
"""

import hashlib
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "core" / "base"))
from random_golden import words

SIDE, UNIT, ONE = 28, 64, 1 << 16

# digit: strokes of (control points, closed, optional)
STROKES = {
    0: [([(-31, -50), (31, -50), (31, 50), (-31, 50)], True, False)],
    1: [([(2, -50), (0, 50)], False, False), ([(2, -50), (-20, -26)], False, True),
        ([(-20, 50), (20, 50)], False, True)],
    4: [([(8, -50), (-31, 16), (-31, 16), (32, 16)], False, False), ([(13, -12), (11, 50)], False, False)],
    6: [([(20, -49), (-14, -38), (-32, 16), (-26, 54), (30, 56), (33, 0), (-6, -4), (-27, 22)], False, False)],
    7: [([(-29, -48), (30, -48), (30, -48), (8, -4), (-8, 50)], False, False), ([(-14, 3), (22, 1)], False, True)],
    9: [([(-28, -51), (27, -51), (27, 1), (-28, 1)], True, False), ([(27, -30), (27, 14), (8, 50)], False, False)],
}


def divide(a, b):
    """Towards zero, as C++ does; b is positive."""
    return a // b if a >= 0 else -(-a // b)


class Lots:
    def __init__(self, seed, name, image):
        self.seed, self.name, self.index, self.left = seed, name, 256 * image, []

    def word(self):
        if not self.left:
            self.left = words(self.seed, self.name, 0, self.index)
            self.index += 1
        return self.left.pop(0)

    def between(self, low, high):
        return low + (self.word() * (high - low + 1) >> 32)

    def around(self, most):
        first = self.between(-most, most)
        return divide(first + self.between(-most, most), 2)


def affine(lots):
    size = divide(UNIT * 20 * ONE, 100)
    width = divide(size * lots.between(70, 110), 100)
    height = divide(size * lots.between(70, 110), 100)
    slant, t = lots.between(-30, 30), lots.between(-170, 170)
    scale = 10**6 + t * t
    cosine, sine = divide((10**6 - t * t) * ONE, scale), divide(2000 * t * ONE, scale)
    shear = divide(-height * slant, 100)
    xx, xy = divide(cosine * width, ONE), divide(cosine * shear - sine * height, ONE)
    yx, yy = divide(sine * width, ONE), divide(sine * shear + cosine * height, ONE)
    dx = SIDE * UNIT // 2 + lots.around(4 * UNIT)
    dy = SIDE * UNIT // 2 + lots.around(4 * UNIT)
    return lambda x, y: (divide(xx * x + xy * y, ONE) + dx, divide(yx * x + yy * y, ONE) + dy)


def middle(a, b):
    return divide(a[0] + b[0], 2), divide(a[1] + b[1], 2)


def curves(points, closed):
    """The pieces (from, towards, to) of a quadratic B-spline."""
    n = len(points)
    if closed:
        return [(middle(points[i - 1], points[i]), points[i], middle(points[i], points[(i + 1) % n])) for i in range(n)]
    if n == 2:
        return [(points[0], middle(*points), points[1])]
    knots = [points[0]] + [middle(points[i], points[i + 1]) for i in range(1, n - 2)] + [points[-1]]
    return [(knots[i], points[i + 1], knots[i + 1]) for i in range(n - 2)]


def touched(digit, place, lots):
    """All points of the pen."""
    for points, closed, optional in STROKES[digit]:
        wanted = not optional or lots.between(0, 1) == 1
        moved, shift, last = [], None, None
        for point in points:
            if point != last:
                shift = (lots.around(12), lots.around(12))
            moved.append(place(point[0] + shift[0], point[1] + shift[1]))
            last = point
        for a, b, c in curves(moved, closed) if wanted else []:
            for i in range(33):
                j = 32 - i
                yield tuple(divide(j * j * a[k] + 2 * i * j * b[k] + i * i * c[k], 1024) for k in (0, 1))


def draw(seed, part, index):
    lots = Lots(seed, "generated digits, " + part, index)
    digit = lots.between(0, 9)
    if digit not in STROKES:
        return digit, None
    place = affine(lots)
    radius = divide(UNIT * lots.between(80, 170), 100)
    rim = divide(UNIT * 7, 10)
    inner, outer = (radius - rim) ** 2, (radius + rim) ** 2
    pen = list(touched(digit, place, lots))
    brightness, noise = lots.between(150, 255), lots.between(0, 60)
    pixels = []
    for i in range(SIDE * SIDE):
        if i % 4 == 0:
            word = lots.word()
        x, y = i % SIDE * UNIT + UNIT // 2, i // SIDE * UNIT + UNIT // 2
        nearest = min((x - px) ** 2 + (y - py) ** 2 for px, py in pen)
        depth = min(max(outer - nearest, 0), outer - inner)
        grain = divide(((word >> 8 * (i % 4) & 255) - 128) * noise, 128)
        pixels.append(min(max(divide(depth * brightness, outer - inner) + grain, 0), 255))
    return digit, bytes(pixels)


if __name__ == "__main__":
    for part in ("training", "test"):
        for index in range(16):
            digit, pixels = draw(12345, part, index)
            if pixels:
                print(f'{{{"true" if part == "training" else "false"}, {index}, {digit}, "{hashlib.md5(pixels).hexdigest()}"}},')
