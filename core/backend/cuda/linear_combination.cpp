#include "muster/core/ops/linear_combination.h"

#include "muster/core/backend/cuda/kernels/linear_combination.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"

namespace muster::cuda {
namespace {

static_assert(kMostBlocks * sizeof(double) <= kScratchBytes);

bool isDouble(const Tensor& tensor) {
  return tensor.dtype() == DType::Float64;
}

RealValues valuesOf(const Tensor& tensor) {
  return tensor.defined() ? RealValues{tensor.raw(), isDouble(tensor)} : RealValues{};
}

}  // namespace

void linearCombination(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
                       Context& context) {
  TermTable table{};
  for (const Term& term : terms) {
    if (term.factor == 0) continue;
    require(table.count < TermTable::kMost, "linearCombination: on a GPU there can be {} terms, got {}",
            TermTable::kMost, terms.size());
    table.at[table.count] = term.values.raw();
    table.factor[table.count] = term.factor;
    table.isDouble[table.count++] = isDouble(term.values);
  }
  if (begin < end)
    MUSTER_CUDA_CHECK(
        launchLinearCombination(table, out.raw(), isDouble(out), begin, end, stateOf(context).stream()));
}

double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context& context) {
  if (begin == end) return 0;
  State& state = stateOf(context);
  auto* const result = reinterpret_cast<double*>(state.deviceResult());
  MUSTER_CUDA_CHECK(launchInnerProduct(valuesOf(a), valuesOf(b), valuesOf(origin), begin, end, result,
                                       state.partialSums(), state.stream()));
  return *reinterpret_cast<const double*>(state.readResult(sizeof(double)));
}

}  // namespace muster::cuda
