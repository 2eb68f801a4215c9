#include "muster/core/data/data_loader.h"

#include <cstring>

#include "muster/core/base/error.h"

namespace muster {
namespace {

void requireExample(std::int64_t index, const Tensor& features) {
  require(features.defined() && features.device().isCpu() && features.layout() == Layout::RowMajor &&
              (features.dtype() == DType::Float32 || features.dtype() == DType::UInt8),
          "data loader: the features of example {} must be float32 or uint8 on the CPU, got {}", index,
          features.toString());
}

void requireTargets(std::int64_t index, const Tensor& targets) {
  require(targets.defined() && targets.device().isCpu() && targets.layout() == Layout::RowMajor &&
              targets.dtype() == DType::Float32,
          "data loader: the label of example {} must be a class index or float32 targets on the CPU, got {}",
          index, targets.toString());
}

/// Copies one example's tensor to row `row` of the batch's tensor.
void put(const Tensor& example, std::int64_t row, Tensor& batch, std::int64_t index, std::string_view what) {
  const Shape expected = batch.shape().dropFirst();
  require(example.shape() == expected && example.dtype() == batch.dtype(),
          "data loader: the {} of example {} are {}, but those before it in the batch are {} {}", what, index,
          example.toString(), toString(batch.dtype()), expected.toString());
  if (example.bytes() == 0) return;
  auto* to = static_cast<std::byte*>(batch.raw()) + static_cast<std::size_t>(row) * example.bytes();
  std::memcpy(to, example.raw(), example.bytes());
}

/// Copies an example into a row; the first example decides the shapes of the batch.
void putExample(const Example& example, std::int64_t row, std::int64_t rows, std::int64_t index,
                Batch& batch) {
  requireExample(index, example.features);
  const Tensor* targets = std::get_if<Tensor>(&example.label);
  if (targets) requireTargets(index, *targets);
  if (row == 0) {
    Batch::ensureOnly(batch.features, "features", example.features.shape().prepend(rows),
                      example.features.dtype());
    Batch::ensureOnly(batch.labels, "labels", targets ? targets->shape().prepend(rows) : Shape{rows},
                      targets ? DType::Float32 : DType::Int64);
    batch.masks.clear();
  }
  put(example.features, row, batch.features.front().value, index, "features");
  Tensor& labels = batch.labels.front().value;
  if (targets) return put(*targets, row, labels, index, "targets");
  require(labels.dtype() == DType::Int64,
          "data loader: the label of example {} is a class, but those before it in the batch are targets",
          index);
  labels.data<std::int64_t>()[row] = std::get<std::int64_t>(example.label);
}

}  // namespace

DataLoader::DataLoader(const Dataset& dataset, std::int64_t batch, DataLoaderOptions options)
    : dataset_(dataset),
      batch_(batch),
      order_(dataset.size(), options.shuffle ? std::optional(options.seed) : std::nullopt) {
  require(batch >= 1, "data loader: a batch needs at least 1 example, got {}", batch);
  if (options.dropLast) order_.keepFull(batch);
}

bool DataLoader::next(Batch& batch) {
  const auto indices = order_.take(batch_);
  const auto rows = static_cast<std::int64_t>(indices.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto index = indices[static_cast<std::size_t>(row)];
    putExample(dataset_.get(index), row, rows, index, batch);
  }
  return rows > 0;
}

}  // namespace muster
