#include "muster/parallel/split_and_load.h"

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/parallel/data_parallel/split.h"

namespace muster {
namespace {

/// Which rows each device gets, [device].
std::vector<Part> split(std::int64_t rows, std::span<const Device> devices, bool evenSplit) {
  const auto count = static_cast<std::int64_t>(devices.size());
  require(count > 0, "splitAndLoad: there are no devices");
  require(rows > 0, "splitAndLoad: there are no rows to split");
  if (rows % count != 0 && evenSplit)
    throw InvalidArgument(
        fmt::format("splitAndLoad: {} {} not divide by {}; evenSplit = false allows parts that differ by "
                    "one",
                    plural(rows, "row"), rows == 1 ? "does" : "do", plural(count, "device")));
  return splitEvenly(rows, devices.size());
}

Tensor load(const Tensor& tensor, Part rows, Device device) {
  const Tensor piece = tensor.rows(rows.begin, rows.begin + rows.size);
  return piece.device() == device ? piece : copyTo(piece, device);
}

void requireRows(const std::vector<NamedTensor>& tensors, std::int64_t rows) {
  for (const auto& [name, value, source] : tensors)
    if (!value.defined() || value.shape().rank() == 0 || value.shape()[0] != rows)
      throw InvalidArgument(fmt::format("splitAndLoad: the batch has {}, but its tensor \"{}\" is {}",
                                        plural(rows, "example"), name, value.toString()));
}

std::vector<NamedTensor> load(const std::vector<NamedTensor>& tensors, Part rows, Device device) {
  std::vector<NamedTensor> pieces;
  // Row indices into a resident data set are read on the CPU.
  for (const auto& [name, value, source] : tensors)
    pieces.push_back({name, load(value, rows, source ? Device::cpu() : device), source});
  return pieces;
}

}  // namespace

std::vector<Tensor> splitAndLoad(const Tensor& tensor, std::span<const Device> devices, bool evenSplit) {
  require(tensor.defined() && tensor.shape().rank() > 0, "splitAndLoad: {} has no rows", tensor.toString());
  const auto parts = split(tensor.shape()[0], devices, evenSplit);
  std::vector<Tensor> pieces;
  for (std::size_t d = 0; d < parts.size(); ++d) pieces.push_back(load(tensor, parts[d], devices[d]));
  return pieces;
}

std::vector<Batch> splitAndLoad(const Batch& batch, std::span<const Device> devices, bool evenSplit) {
  const auto parts = split(batch.examples(), devices, evenSplit);
  for (const auto* tensors : {&batch.features, &batch.labels, &batch.masks})
    requireRows(*tensors, batch.examples());
  std::vector<Batch> pieces;
  for (std::size_t d = 0; d < parts.size(); ++d) {
    Batch piece{.features = load(batch.features, parts[d], devices[d]),
                .labels = load(batch.labels, parts[d], devices[d]),
                .masks = load(batch.masks, parts[d], devices[d]),
                .stamp = batch.stamp};
    piece.stamp.firstExample += parts[d].begin;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace muster
