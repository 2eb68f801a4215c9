#include "muster/core/ops/dropout.h"

#include <cmath>

#include "muster/core/backend/cpu/dropout_kernels.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

drop::Rows fastestRows() {
#if defined(__x86_64__)
  const InstructionSet set = instructionSet();
  if (set == InstructionSet::Avx512) return drop::avx512Rows;
  if (set == InstructionSet::Avx2) return drop::avx2Rows;
#endif
  return drop::baselineRows;
}

}  // namespace

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, std::int64_t firstExample,
             Context& context) {
  if (rate == 0) return copy(x, y);
  const std::int64_t features = x.shape().dropFirst().elements();
  const std::int64_t indices = (features + 3) / 4;
  const drop::Rule rule{.epoch = random.epoch(),
                        .key = {random.key()[0], random.key()[1]},
                        .factors = {kPhiloxFactors[0], kPhiloxFactors[1]},
                        .steps = {kPhiloxSteps[0], kPhiloxSteps[1]},
                        .threshold = static_cast<std::uint32_t>(std::floor(rate * 0x1p32)),
                        .scale = static_cast<float>(1 / (1 - rate))};
  const drop::Rows dropRows = fastestRows();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  parallelFor(context, x.shape()[0], 8, [=](std::int64_t begin, std::int64_t end) {
    dropRows(rule, static_cast<std::uint64_t>((firstExample + begin) * indices), from + begin * features,
             to + begin * features, end - begin, features);
  });
}

void dropout(const Tensor& x, Tensor& y, double rate, const RandomStream& random, const Tensor& position,
             Context& context) {
  const auto* const at = position.data<std::int64_t>();
  cpu::dropout(x, y, rate, random.inEpoch(at[0]), at[1], context);
}

}  // namespace muster::cpu
