"""Prints the images that image_transform_test.cpp holds the library's against.

A crop is drawn from the image padded with zeros, apart from the library, which moves rows. Random numbers are those
of ../base/random_golden.py, itself written from the papers.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "base"))
from random_golden import below, words


def crop(image, padding, seed, place, epoch, position):
    name = f"transform {place} random-crop"
    top, left = (2 * padding - below(seed, name, epoch, 2 * position + i, 2 * padding + 1) for i in (0, 1))
    height, width = len(image), len(image[0])
    padded = [[0] * (width + 2 * padding) for _ in range(height + 2 * padding)]
    for y, row in enumerate(image):
        padded[padding + y][padding:padding + width] = row
    return [row[left:left + width] for row in padded[top:top + height]]


def flip(image, probability, seed, place, epoch, position):
    w = words(seed, f"transform {place} random-flip", epoch, position)
    uniform = (((w[0] << 32) | w[1]) >> 11) * 2.0**-53
    return [row[::-1] for row in image] if uniform < probability else image


if __name__ == "__main__":
    picture = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    for epoch in (0, 3):
        for position in range(4):
            image = crop(picture, 2, 7, 0, epoch, position)
            image = flip(image, 0.5, 7, 1, epoch, position)
            print("{" + ", ".join(str(x) for row in image for x in row) + "},  // epoch", epoch, "position", position)
