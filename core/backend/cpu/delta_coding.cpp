#include "muster/core/ops/delta_coding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/delta_coding_rules.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kGrain = 64 * coding::kChunk;  // minimum elements per thread

/// @param rule  `float rule(float move, float largest)`; `largest` is the chunk's largest magnitude.
template <typename T, typename Rule>
void codeChunks(const coding::Move<T>& move, std::int64_t begin, std::int64_t end, Context& context,
                Rule rule) {
  parallelFor(context, end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t at = begin + from; at < begin + to; at += coding::kChunk) {
      const std::int64_t chunkEnd = std::min(at + coding::kChunk, begin + to);
      std::uint32_t largest = 0;
      for (std::int64_t i = at; i < chunkEnd; ++i)
        largest = std::max(largest, coding::magnitude(static_cast<float>(move.at(i))));
      for (std::int64_t i = at; i < chunkEnd; ++i) {
        const double v = move.at(i);
        move.send(i, v, rule(static_cast<float>(v), std::bit_cast<float>(largest)));
      }
    }
  });
}

/// @param take  `void take(std::int64_t i)`, called for each element that is sent, in order.
template <typename T, typename Take>
void codeLargest(const coding::Move<T>& move, std::int64_t begin, std::int64_t end, std::int64_t largest,
                 Take take) {
  coding::Threshold threshold{.left = largest};
  const auto magnitudeAt = [&](std::int64_t i) { return coding::magnitude(static_cast<float>(move.at(i))); };
  std::array<std::int64_t, coding::kBins> counts;
  for (int digit = 0; digit < coding::kDigits; ++digit) {
    counts.fill(0);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint32_t m = magnitudeAt(i);
      if (threshold.agrees(m)) ++counts[coding::digitOf(m, digit)];
    }
    threshold.take(counts.data(), digit);
  }
  for (std::int64_t i = begin; i < end; ++i) {
    const double v = move.at(i);
    const std::uint32_t m = coding::magnitude(static_cast<float>(v));
    const bool tied = threshold.agrees(m) && threshold.left > 0;
    if (tied) --threshold.left;
    const bool taken = tied || threshold.above(m);
    move.send(i, v, taken ? v : 0);
    if (taken) take(i);
  }
}

template <typename T>
void code(const DeltaCoding& coding, const coding::Move<T>& move, std::int64_t begin, std::int64_t end,
          Context& context) {
  switch (coding.codec) {
    case DeltaCodec::Bf16:
      return codeChunks(move, begin, end, context, [](float v, float) { return coding::bf16(v); });
    case DeltaCodec::Int8:
      return codeChunks(move, begin, end, context, coding::int8);
    case DeltaCodec::E3M0:
      return codeChunks(move, begin, end, context, coding::e3m0);
    case DeltaCodec::TopK:
      return codeLargest(move, begin, end, coding.largest, [](std::int64_t) {});
  }
}

// Chunk formats: `pack` encodes moves as bytes, `unpack` decodes exactly the moves that codeChunks sends.

struct Bf16Chunk {
  static std::int64_t bytes(std::int64_t n) { return 2 * n; }
  static void pack(const float* moves, std::int64_t n, float, std::byte* to) {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto upper =
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(coding::bf16(moves[i])) >> 16);
      std::memcpy(to + 2 * i, &upper, sizeof upper);
    }
  }
  static void unpack(const std::byte* from, std::int64_t n, float* moves) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::uint16_t upper = 0;
      std::memcpy(&upper, from + 2 * i, sizeof upper);
      moves[i] = std::bit_cast<float>(std::uint32_t{upper} << 16);
    }
  }
};

struct Int8Chunk {
  static std::int64_t bytes(std::int64_t n) { return 4 + n; }
  static void pack(const float* moves, std::int64_t n, float largest, std::byte* to) {
    const float scale = largest / 127;
    std::memcpy(to, &scale, sizeof scale);
    for (std::int64_t i = 0; i < n; ++i) {
      const float level = scale == 0 ? 0 : coding::int8Level(moves[i], scale);
      to[4 + i] = static_cast<std::byte>(std::isnan(level) ? 0 : static_cast<std::int8_t>(level));
    }
  }
  static void unpack(const std::byte* from, std::int64_t n, float* moves) {
    float scale = 0;
    std::memcpy(&scale, from, sizeof scale);
    for (std::int64_t i = 0; i < n; ++i)
      moves[i] = static_cast<float>(static_cast<std::int8_t>(from[4 + i])) * scale;
  }
};

/// One byte for the largest magnitude's exponent (255 if a move is NaN), then four bits per element: the sign
/// and three bits, 0 for zero, else 7 plus the element's exponent minus the largest.
struct E3M0Chunk {
  static constexpr std::uint32_t kNaN = 255;
  static std::int64_t bytes(std::int64_t n) { return 1 + (n + 1) / 2; }
  static void pack(const float* moves, std::int64_t n, float largest, std::byte* to) {
    std::fill_n(to, bytes(n), std::byte{0});
    if (coding::magnitude(largest) > 0x7f800000u) {
      to[0] = static_cast<std::byte>(kNaN);
      return;
    }
    const std::int32_t top = coding::nearestExponent(largest);
    to[0] = static_cast<std::byte>(top);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(coding::e3m0(moves[i], largest));
      if (bits == 0) continue;
      const auto octave = static_cast<std::uint32_t>(static_cast<std::int32_t>(bits >> 23 & 0xffu) - top + 7);
      to[1 + i / 2] |= static_cast<std::byte>((bits >> 31 << 3 | octave) << (i % 2 * 4));
    }
  }
  static void unpack(const std::byte* from, std::int64_t n, float* moves) {
    const auto top = static_cast<std::uint32_t>(from[0]);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t code = static_cast<std::uint32_t>(from[1 + i / 2]) >> (i % 2 * 4) & 15;
      const std::uint32_t exponent = top + (code & 7) - 7;
      moves[i] = top == kNaN       ? std::numeric_limits<float>::quiet_NaN()
                 : (code & 7) == 0 ? 0
                                   : std::bit_cast<float>(code >> 3 << 31 | (exponent & 0xffu) << 23);
    }
  }
};

/// Calls `use(at, n, packed)` for each chunk and its bytes.
template <typename Chunk, typename Byte, typename Use>
void forChunks(std::int64_t begin, std::int64_t end, Byte* packed, Context& context, Use use) {
  parallelFor(context, end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t at = from; at < to; at += coding::kChunk)
      use(begin + at, std::min(coding::kChunk, to - at),
          packed + at / coding::kChunk * Chunk::bytes(coding::kChunk));
  });
}

template <typename Chunk, typename T>
void packChunks(const coding::Move<T>& move, std::int64_t begin, std::int64_t end, std::byte* packed,
                Context& context) {
  forChunks<Chunk>(begin, end, packed, context, [&](std::int64_t at, std::int64_t n, std::byte* to) {
    std::array<float, coding::kChunk> moves;
    std::uint32_t largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      moves[static_cast<std::size_t>(i)] = static_cast<float>(move.at(at + i));
      largest = std::max(largest, coding::magnitude(moves[static_cast<std::size_t>(i)]));
    }
    Chunk::pack(moves.data(), n, std::bit_cast<float>(largest), to);
    Chunk::unpack(to, n, moves.data());
    for (std::int64_t i = 0; i < n; ++i)
      move.send(at + i, move.at(at + i), moves[static_cast<std::size_t>(i)]);
  });
}

template <typename Chunk, typename T>
void unpackChunks(const std::byte* packed, T* sent, std::int64_t begin, std::int64_t end, Context& context) {
  forChunks<Chunk>(begin, end, packed, context, [&](std::int64_t at, std::int64_t n, const std::byte* from) {
    std::array<float, coding::kChunk> moves;
    Chunk::unpack(from, n, moves.data());
    for (std::int64_t i = 0; i < n; ++i)
      sent[at + i] = static_cast<T>(static_cast<double>(sent[at + i]) +
                                    static_cast<double>(moves[static_cast<std::size_t>(i)]));
  });
}

/// Packs the values, then their positions unless all elements are sent.
template <typename T>
void packLargest(const DeltaCoding& coding, const coding::Move<T>& move, std::int64_t begin, std::int64_t end,
                 std::byte* packed) {
  std::byte* position = packed + coding.largest * static_cast<std::int64_t>(sizeof(T));
  codeLargest(move, begin, end, coding.largest, [&](std::int64_t i) {
    std::memcpy(packed, move.sent + i, sizeof(T));
    packed += sizeof(T);
    if (coding.largest == end - begin) return;
    const auto at = static_cast<std::uint32_t>(i - begin);
    std::memcpy(position, &at, sizeof at);
    position += sizeof at;
  });
}

template <typename T>
void unpackLargest(const DeltaCoding& coding, const std::byte* packed, T* sent, std::int64_t begin,
                   std::int64_t end) {
  const std::byte* position = packed + coding.largest * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = begin; i < end; ++i) sent[i] += T{0};  // -0 becomes 0, like adding a move of 0
  for (std::int64_t k = 0; k < coding.largest; ++k, packed += sizeof(T)) {
    std::int64_t at = k;
    if (coding.largest < end - begin) {
      std::uint32_t read = 0;
      std::memcpy(&read, position + k * static_cast<std::int64_t>(sizeof read), sizeof read);
      at = read;
    }
    require(at < end - begin, "unpackDelta: position {} is not within {} elements", at, end - begin);
    std::memcpy(sent + begin + at, packed, sizeof(T));
  }
}

template <typename F>
void withType(const Tensor& like, F f) {
  like.dtype() == DType::Float64 ? f(double{}) : f(float{});
}

}  // namespace

void packDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, std::span<std::byte> packed, Context& context) {
  withType(values, [&]<typename T>(T) {
    const coding::Move<T> move{values.data<T>(), sent.data<T>(), residual.data<T>(), coding.remember};
    switch (coding.codec) {
      case DeltaCodec::Bf16:
        return packChunks<Bf16Chunk>(move, begin, end, packed.data(), context);
      case DeltaCodec::Int8:
        return packChunks<Int8Chunk>(move, begin, end, packed.data(), context);
      case DeltaCodec::E3M0:
        return packChunks<E3M0Chunk>(move, begin, end, packed.data(), context);
      case DeltaCodec::TopK:
        return packLargest(coding, move, begin, end, packed.data());
    }
  });
}

void unpackDelta(const DeltaCoding& coding, std::span<const std::byte> packed, const Tensor& sent,
                 std::int64_t begin, std::int64_t end, Context& context) {
  withType(sent, [&]<typename T>(T) {
    switch (coding.codec) {
      case DeltaCodec::Bf16:
        return unpackChunks<Bf16Chunk>(packed.data(), sent.data<T>(), begin, end, context);
      case DeltaCodec::Int8:
        return unpackChunks<Int8Chunk>(packed.data(), sent.data<T>(), begin, end, context);
      case DeltaCodec::E3M0:
        return unpackChunks<E3M0Chunk>(packed.data(), sent.data<T>(), begin, end, context);
      case DeltaCodec::TopK:
        return unpackLargest(coding, packed.data(), sent.data<T>(), begin, end);
    }
  });
}

void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context) {
  const auto run = [&]<typename T>(T*) {
    const coding::Move<T> move{values.data<T>(), sent.data<T>(), residual.data<T>(), coding.remember};
    code(coding, move, begin, end, context);
  };
  values.dtype() == DType::Float64 ? run(static_cast<double*>(nullptr)) : run(static_cast<float*>(nullptr));
}

}  // namespace muster::cpu
