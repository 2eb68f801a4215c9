#include "muster/parallel/collective/all_reduce.h"

#include "muster/core/base/error.h"
#include "muster/core/ops/accumulate.h"

namespace muster {
namespace {

void check(std::span<const Tensor> tensors) {
  require(!tensors.empty(), "allReduce: there are no tensors");
  const Tensor& first = tensors[0];
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (tensor.shape() != first.shape() || tensor.dtype() != first.dtype() ||
        tensor.layout() != first.layout())
      throw InvalidArgument(
          fmt::format("allReduce: tensor {} is {}, tensor 0 is {}", i, tensor.toString(), first.toString()));
    for (std::size_t j = 0; j < i; ++j)
      require(!shareMemory(tensors[j], tensor),
              "allReduce: tensors {} and {} share memory; each device needs memory of its own, as copyTo "
              "gives it",
              j, i);
  }
}

}  // namespace

void allReduce(std::span<const Tensor> tensors, Context& context) {
  check(tensors);
  Tensor first = tensors[0];
  sum(tensors, first, context);
  for (Tensor other : tensors.subspan(1)) copy(first, other, context);
}

}  // namespace muster
