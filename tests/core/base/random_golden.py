"""Prints the numbers that random_test.cpp and ../data/epoch_order_test.cpp hold the library against.

Written from the papers, apart from the library: Philox4x32-10 (Salmon et al. 2011), splitmix64's finaliser
(Steele et al. 2014), FNV-1a, and the shuffle of Durstenfeld 1964.
"""

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK32, (a >> 32) ^ c[3] ^ k[1], a & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK64
    return h


def words(seed, name, epoch, index):
    key = mix(mix(seed) ^ fnv1a(name))
    counter = [index & MASK32, index >> 32, epoch & MASK32, epoch >> 32]
    return philox(counter, [key & MASK32, key >> 32])


def below(seed, name, epoch, index, bound):
    w = words(seed, name, epoch, index)
    return (((w[0] << 32) | w[1]) * bound) >> 64


def shuffled(count, seed, epoch):
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        j = below(seed, "shuffle", epoch, i, i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def hexadecimal(numbers):
    return ", ".join(f"0x{n:08x}u" for n in numbers)


if __name__ == "__main__":
    print("words(123, dropout, 2, 5)         ", hexadecimal(words(123, "dropout", 2, 5)))
    print("words(2^64-1, init, 2^33+1, 2^40+3)", hexadecimal(words(MASK64, "init", 2**33 + 1, 2**40 + 3)))
    print("below(7, shuffle, 0, 0..7, 1000)  ", [below(7, "shuffle", 0, i, 1000) for i in range(8)])
    for epoch in (0, 1, 7):
        print(f"shuffled(10, 12345, {epoch})", shuffled(10, 12345, epoch))
