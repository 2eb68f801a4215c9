#include "muster/core/ops/dropout.h"

#include <cmath>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

struct Mask {
  std::uint32_t threshold;  // an element whose random word is smaller becomes zero
  float scale;              // of the remaining elements
};

constexpr int kIndices = 16;

/// RandomStream::words of `kIndices` indices from `first` on, one after another.
[[gnu::always_inline]] inline void wordsFrom(std::uint64_t first, std::uint64_t epoch, std::uint32_t key0,
                                             std::uint32_t key1, std::uint32_t* words) {
  std::uint32_t a[kIndices], b[kIndices], c[kIndices], d[kIndices];
  // The compiler does not vectorise these loops if it unrolls them.
#pragma GCC unroll 1
  for (int i = 0; i < kIndices; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    a[i] = static_cast<std::uint32_t>(index);
    b[i] = static_cast<std::uint32_t>(index >> 32);
    c[i] = static_cast<std::uint32_t>(epoch);
    d[i] = static_cast<std::uint32_t>(epoch >> 32);
  }
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 1
    for (int i = 0; i < kIndices; ++i) {
      const std::uint64_t left = std::uint64_t{kPhiloxFactors[0]} * a[i];
      const std::uint64_t right = std::uint64_t{kPhiloxFactors[1]} * c[i];
      a[i] = static_cast<std::uint32_t>(right >> 32) ^ b[i] ^ key0;
      b[i] = static_cast<std::uint32_t>(right);
      c[i] = static_cast<std::uint32_t>(left >> 32) ^ d[i] ^ key1;
      d[i] = static_cast<std::uint32_t>(left);
    }
    key0 += kPhiloxSteps[0];
    key1 += kPhiloxSteps[1];
  }
#pragma GCC unroll 1
  for (int i = 0; i < kIndices; ++i) {
    words[4 * i] = a[i];
    words[4 * i + 1] = b[i];
    words[4 * i + 2] = c[i];
    words[4 * i + 3] = d[i];
  }
}

/// Processes a row in groups of 4 * kIndices elements. @return the number of elements processed.
[[gnu::always_inline]] inline std::int64_t dropGroups(const float* x, float* y, std::int64_t features,
                                                      Mask mask, std::uint64_t index, std::uint64_t epoch,
                                                      std::uint32_t key0, std::uint32_t key1) {
  constexpr std::int64_t kGroup = 4 * kIndices;
  std::int64_t e = 0;
  for (; e + kGroup <= features; e += kGroup, index += kIndices) {
    std::uint32_t words[kGroup];
    wordsFrom(index, epoch, key0, key1, words);
    for (std::int64_t i = 0; i < kGroup; ++i)
      y[e + i] = words[i] < mask.threshold ? 0.0f : x[e + i] * mask.scale;
  }
  return e;
}

/// Processes one row; each index of the random stream gives numbers for four elements.
void dropRow(const float* x, float* y, std::int64_t features, Mask mask, const RandomStream& random,
             std::uint64_t index) {
  const std::int64_t done =
      dispatch<dropGroups>(x, y, features, mask, index, random.epoch(), random.key()[0], random.key()[1]);
  index += static_cast<std::uint64_t>(done / 4);
  for (std::int64_t e = done; e < features; e += 4, ++index) {
    const auto words = random.words(index);
    const std::int64_t count = std::min<std::int64_t>(4, features - e);
    for (std::int64_t i = 0; i < count; ++i)
      y[e + i] = words[static_cast<std::size_t>(i)] < mask.threshold ? 0.0f : x[e + i] * mask.scale;
  }
}

}  // namespace

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context) {
  if (rate == 0) return copy(x, y);
  const std::int64_t features = x.shape().dropFirst().elements();
  const std::int64_t indices = (features + 3) / 4;
  const Mask mask{.threshold = static_cast<std::uint32_t>(std::floor(rate * 0x1p32)),
                  .scale = static_cast<float>(1 / (1 - rate))};
  const float* from = x.data<float>();
  float* to = y.data<float>();
  parallelFor(context, x.shape()[0], 8, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      dropRow(from + n * features, to + n * features, features, mask, random,
              static_cast<std::uint64_t>((firstExample + n) * indices));
  });
}

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context) {
  const auto* const at = position.data<std::int64_t>();
  cpu::dropout(x, y, rate, random.inEpoch(at[0]), at[1], context);
}

}  // namespace muster::cpu
