#include "muster/core/ops/accumulate.h"

#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"

namespace muster::cuda {
namespace {

template <typename T>
void sumOf(std::span<const Tensor> inputs, Tensor& out, Context& context) {
  Inputs<T> table{};
  table.count = static_cast<int>(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) table.at[i] = inputs[i].data<T>();
  MUSTER_CUDA_CHECK(launchSum(table, out.data<T>(), out.storage(), stateOf(context).stream()));
}

}  // namespace

void sum(std::span<const Tensor> inputs, Tensor& out, Context& context) {
  require(inputs.size() <= kMostInputs, "sum: {} inputs are more than the {} that a GPU adds at once",
          inputs.size(), kMostInputs);
  if (inputs.size() == 1) {  // a copy, bit for bit
    if (inputs[0].raw() != out.raw()) copy(inputs[0], out, context);
    return;
  }
  out.dtype() == DType::Float64 ? sumOf<double>(inputs, out, context) : sumOf<float>(inputs, out, context);
}

}  // namespace muster::cuda
