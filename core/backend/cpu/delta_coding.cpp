#include "muster/core/ops/delta_coding.h"

#include <algorithm>
#include <array>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/ops/delta_coding_rules.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kGrain = 64 * coding::kChunk;  // least elements a thread

/// @param rule  `float rule(float move, float largest)`, the largest magnitude of the chunk.
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

template <typename T>
void codeLargest(const coding::Move<T>& move, std::int64_t begin, std::int64_t end, std::int64_t largest) {
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
    move.send(i, v, tied || threshold.above(m) ? v : 0);
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
      return codeLargest(move, begin, end, coding.largest);
  }
}

}  // namespace

void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context) {
  const auto run = [&]<typename T>(T*) {
    const coding::Move<T> move{values.data<T>(), sent.data<T>(), residual.data<T>(), coding.remember};
    code(coding, move, begin, end, context);
  };
  values.dtype() == DType::Float64 ? run(static_cast<double*>(nullptr)) : run(static_cast<float*>(nullptr));
}

}  // namespace muster::cpu
