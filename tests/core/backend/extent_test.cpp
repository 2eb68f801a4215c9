#include "muster/core/backend/extent.h"

#include "tests/support/arrays.h"
#include "tests/support/test.h"

namespace muster {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

/// The smallest and the largest numbers of 32 bits, those about powers of two, and others of every magnitude.
std::vector<std::int64_t> edges(std::mt19937_64& random) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = 0; n <= 300; ++n) {
    numbers.push_back(n);
    numbers.push_back(kMost - n);
  }
  for (int bits = 9; bits < 31; ++bits)
    for (std::int64_t about = -2; about <= 2; ++about) numbers.push_back((std::int64_t{1} << bits) + about);
  for (int i = 0; i < 300; ++i)
    numbers.push_back(static_cast<std::int64_t>(random() >> 33) >> (random() % 31));
  return numbers;
}

TEST_CASE("an extent divides like an integer division, around every multiple tried") {
  std::mt19937_64 random(test::freshSeed());
  const auto numbers = edges(random);
  std::int64_t wrong = 0;
  for (const std::int64_t size : numbers) {
    if (size == 0) continue;
    const Extent extent(size);
    const auto check = [&](std::int64_t n) {
      if (n < 0 || n > kMost) return;
      const auto narrow = static_cast<std::int32_t>(n);
      const bool right = narrow / extent == n / size && narrow % extent == n % size &&
                         n / extent == n / size && n % extent == n % size;
      if (!right && ++wrong < 5) FAIL_CHECK(n << " / " << size << " gives " << narrow / extent);
    };
    for (const std::int64_t n : numbers) {
      check(n);
      // The quotient changes between these two indices.
      const std::int64_t multiple = n / size * size;
      check(multiple);
      check(multiple - 1);
      check(multiple + size - 1);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("every index of a small tensor is divided correctly by every smaller size") {
  std::int64_t wrong = 0;
  for (std::int32_t size = 1; size <= 1500; ++size) {
    const Extent extent(size);
    for (std::int32_t n = 0; n <= 3000; ++n) wrong += n / extent != n / size || n % extent != n % size;
  }
  CHECK(wrong == 0);
}

TEST_CASE("an extent beyond 32 bits divides 64-bit indices, and multiplies in its factor's width") {
  const std::int64_t size = (std::int64_t{5} << 40) + 3;
  const Extent extent(size);
  CHECK((7 * size + 11) / extent == 7);
  CHECK((7 * size + 11) % extent == 11);
  CHECK(std::int64_t{3} * extent == 3 * size);
  CHECK(std::int32_t{3} * Extent(17) == 51);
  CHECK(Extent(17).as<std::int32_t>() == 17);
}

TEST_CASE("an extent of size 0 can be constructed") {
  const Extent extent(0);
  CHECK(std::int32_t{5} * extent == 0);
  CHECK(std::int32_t{5} / extent == 5);
  CHECK(std::int64_t{5} * extent == 0);
  CHECK(std::int64_t{5} / extent == 5);
}

}  // namespace
}  // namespace muster
