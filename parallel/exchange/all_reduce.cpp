#include "muster/parallel/exchange/all_reduce.h"

#include <algorithm>
#include <vector>

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

void acrossDevices(std::span<const Tensor> tensors, Context& context) {
  std::vector<Tensor> terms;
  for (const Tensor& tensor : tensors) terms.push_back(copyTo(tensor, context.device()));
  sum(terms, terms.front(), context);
  context.synchronize();
  for (Tensor tensor : tensors) copy(terms.front(), tensor);
}

}  // namespace

void allReduce(std::span<const Tensor> tensors, Context& context) {
  check(tensors);
  const auto here = [&](const Tensor& tensor) { return tensor.device() == context.device(); };
  if (!std::ranges::all_of(tensors, here)) return acrossDevices(tensors, context);
  Tensor first = tensors[0];
  sum(tensors, first, context);
  for (Tensor other : tensors.subspan(1)) copy(first, other, context);
}

}  // namespace muster
