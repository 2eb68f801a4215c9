"""Writes the small pictures of this folder, and expected.txt, the values that Pillow reads from them.

    python3 make.py

Each line of expected.txt: file, colour (L or RGB), height, width, and the bytes [C, H, W] in hexadecimal; a size other
than the file's own is by Pillow's BILINEAR. Transparency is laid over black. Pillow writes no interlaced PNG, none with
gAMA, and none in colour with 16 bits, so `png` here does.
"""

import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 9, 14


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels, bits, colour, extra=b"", interlaced=False):
    """A PNG of pixels [H, W, C], with the lowest `bits` of each value."""
    height, width = pixels.shape[:2]
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    rows = b""
    for y, x, dy, dx in passes if interlaced else [(0, 0, 1, 1)]:
        part = pixels[y::dy, x::dx]
        if part.size:
            for row in part:
                rows += b"\0" + row.astype(">u2" if bits == 16 else ">u1").tobytes()
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows, 9))
            + chunk(b"IEND", b""))


def save(image, **options):
    stream = io.BytesIO()
    image.save(stream, **options)
    return stream.getvalue()


def pictures():
    rng = np.random.default_rng(7)
    rgb = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    rgb[0, 0] = (255, 0, 0)
    alpha = rng.integers(0, 256, (HEIGHT, WIDTH, 1), dtype=np.uint8)
    alpha[0, 0] = 128
    grey = rng.integers(0, 256, (HEIGHT, WIDTH, 1), dtype=np.uint8)
    smooth = Image.fromarray(rgb).resize((WIDTH, HEIGHT)).resize((WIDTH * 2, HEIGHT * 2), Image.BICUBIC)
    palette = Image.fromarray(rgb).quantize(16)
    yield "rgb.png", png(rgb, 8, 2)
    yield "rgb16.png", png(rgb.astype(np.uint16) * 257, 16, 2)
    yield "rgba.png", png(np.concatenate([rgb, alpha], 2), 8, 6)
    yield "grey.png", png(grey, 8, 0)
    yield "grey_alpha.png", png(np.concatenate([grey, alpha], 2), 8, 4)
    yield "gamma.png", png(rgb, 8, 2, extra=chunk(b"gAMA", struct.pack(">I", 100000)))
    yield "gamma_grey.png", png(grey, 8, 0, extra=chunk(b"gAMA", struct.pack(">I", 45455)))
    yield "interlaced.png", png(rgb, 8, 2, interlaced=True)
    yield "palette.png", save(palette, format="png")
    yield "palette_transparent.png", save(palette, format="png", transparency=3)
    yield "black_white.png", save(Image.fromarray(grey[:, :, 0] > 99), format="png")
    yield "rgb.jpg", save(smooth, format="jpeg", quality=90)
    yield "progressive.jpg", save(smooth, format="jpeg", quality=80, progressive=True)
    yield "grey.jpg", save(smooth.convert("L"), format="jpeg", quality=90)
    yield "cmyk.jpg", save(smooth.convert("CMYK"), format="jpeg", quality=90)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        yield f"oriented{orientation}.jpg", save(smooth, format="jpeg", quality=50, exif=exif)
    exif = Image.Exif()
    exif[0x0112] = 6
    yield "oriented6.png", save(Image.fromarray(rgb), format="png", exif=exif)


def expected(path, size=None, mode="RGB"):
    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode in ("LA", "RGBA", "P"):
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image)
    if image.mode != mode:
        image = image.convert("RGB").convert(mode)
    if size:
        image = image.resize((size[1], size[0]), Image.BILINEAR)
    values = np.asarray(image)
    planes = values[None] if mode == "L" else values.transpose(2, 0, 1)
    return f"{path.name} {mode} {planes.shape[1]} {planes.shape[2]} {planes.astype(np.uint8).tobytes().hex()}\n"


lines = ""
for name, data in pictures():
    (HERE / name).write_bytes(data)
    lines += expected(HERE / name, mode="L")
    if not name.startswith("oriented"):
        lines += expected(HERE / name)
for name in ("rgb.png", "rgb.jpg", "grey.png"):
    for size in ((4, 5), (9, 3), (20, 31), (1, 1)):
        lines += expected(HERE / name, size) + expected(HERE / name, size, "L")
(HERE / "expected.txt").write_text(lines)
