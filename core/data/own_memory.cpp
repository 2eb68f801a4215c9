#include "muster/core/data/own_memory.h"

namespace muster {
namespace {

void ownMemory(Tensor& value) {
  const bool plain = value.defined() && value.device().isCpu() && value.layout() == Layout::RowMajor;
  if (!plain || value.elements() == 0) return;
  const Shape shape = value.shape();
  const DType dtype = value.dtype();
  Tensor before = value;
  const Tensor there = Tensor::view(value.raw(), shape, dtype);
  value.resize({0}, dtype);  // leaves memory that it does not own from the first element on
  if (value.raw() == there.raw()) before = {};
  value.resize(shape, dtype);  // grows in place only if no other tensor shares the memory
  if (value.raw() != there.raw()) copy(there, value);
}

}  // namespace

void ownMemory(Batch& batch) {
  for (auto* const tensors : {&batch.features, &batch.labels, &batch.masks})
    for (auto& tensor : *tensors) ownMemory(tensor.value);
}

}  // namespace muster
