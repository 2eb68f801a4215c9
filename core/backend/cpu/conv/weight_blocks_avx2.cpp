#include "muster/core/backend/cpu/conv/weight_blocks.h"
#include "muster/core/backend/cpu/square.h"

namespace muster::cpu {
namespace {

struct To {
  [[gnu::always_inline]] static void one(const float& plain, float& blocked) { blocked = plain; }
  template <typename PlainAt, typename BlockedAt>
  [[gnu::always_inline]] static void square(const float* plain, PlainAt plainAt, float* blocked,
                                            BlockedAt blockedAt) {
    Square some;
    some.load(plain, plainAt);
    some.store(blocked, blockedAt);
  }
};

struct From {
  [[gnu::always_inline]] static void one(float& plain, const float& blocked) { plain = blocked; }
  template <typename PlainAt, typename BlockedAt>
  [[gnu::always_inline]] static void square(float* plain, PlainAt plainAt, const float* blocked,
                                            BlockedAt blockedAt) {
    Square some;
    some.load(blocked, blockedAt);
    some.store(plain, plainAt);
  }
};

/// One block. `plain` is its first weight, with `row` floats to the next output channel.
template <typename Way, std::int64_t Block, typename Plain, typename Blocked>
void outputsLast(std::int64_t taps, std::int64_t row, const std::int64_t* places, Plain* plain,
                 Blocked* blocked) {
  for (std::int64_t o = 0; o < Block; o += 8)
    for (std::int64_t j = 0; j < Block * taps; j += 8)
      Way::square(
          plain + o * row + j, [=](int k) { return k * row; }, blocked + o,
          [=](int k) { return places[j + k]; });
}

template <typename Way, std::int64_t Block, typename Plain, typename Blocked>
void inputsLast(std::int64_t taps, std::int64_t row, Plain* plain, Blocked* blocked) {
  for (std::int64_t o = 0; o < Block; ++o) {
    Plain* const from = plain + o * row;
    Blocked* const to = blocked + o * Block;
    std::int64_t tap = 0;
    for (; tap + 8 <= taps; tap += 8)
      for (std::int64_t i = 0; i < Block; i += 8)
        Way::square(
            from + i * taps + tap, [=](int k) { return k * taps; }, to + tap * Block * Block + i,
            [=](int k) { return k * Block * Block; });
    for (; tap < taps; ++tap)
      for (std::int64_t i = 0; i < Block; ++i) Way::one(from[i * taps + tap], to[tap * Block * Block + i]);
  }
}

template <typename Way, std::int64_t Block, typename Plain, typename Blocked>
void convert(const WeightBlocks& w, BlockRange out, BlockRange in, Plain* plain, Blocked* blocked) {
  std::int64_t places[Block * WeightBlocks::kMostTaps];  // [input channel, tap] in the block
  for (std::int64_t i = 0; i < Block; ++i)
    for (std::int64_t tap = 0; tap < w.taps; ++tap) places[i * w.taps + tap] = (tap * Block + i) * Block;
  const std::int64_t row = w.in * w.taps, elements = Block * Block * w.taps;
  for (std::int64_t o = out.begin; o < out.end; ++o)
    for (std::int64_t i = in.begin; i < in.end; ++i, blocked += elements) {
      Plain* const from = plain + o * Block * row + i * Block * w.taps;
      w.outputsLast ? outputsLast<Way, Block>(w.taps, row, places, from, blocked)
                    : inputsLast<Way, Block>(w.taps, row, from, blocked);
    }
}

}  // namespace

void toBlocksAvx2(const WeightBlocks& weights, BlockRange out, BlockRange in, const float* from, float* to) {
  weights.block == 16 ? convert<To, 16>(weights, out, in, from, to)
                      : convert<To, 8>(weights, out, in, from, to);
}

void fromBlocksAvx2(const WeightBlocks& weights, BlockRange out, BlockRange in, const float* from,
                    float* to) {
  weights.block == 16 ? convert<From, 16>(weights, out, in, to, from)
                      : convert<From, 8>(weights, out, in, to, from);
}

}  // namespace muster::cpu
