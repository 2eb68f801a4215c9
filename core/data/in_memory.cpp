#include "muster/core/data/in_memory.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <typeinfo>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::size_t kRowsAhead = 4, kBytesAhead = 1024, kCacheLine = 64;  // what gatherRows prefetches

/// Checks that both tensors have rows, equally many. @return their number.
std::int64_t checkedRows(const Tensor& features, const Tensor& labels) {
  const auto fits = [](const Tensor& t, std::initializer_list<DType> types) {
    return t.defined() && t.shape().rank() > 0 && t.device().isCpu() && t.layout() == Layout::RowMajor &&
           std::ranges::find(types, t.dtype()) != types.end();
  };
  require(fits(features, {DType::Float32, DType::UInt8, DType::Int64}),
          "in-memory data: features must be float32, uint8 or int64 [N, ...] on the CPU, got {}",
          features.toString());
  require(fits(labels, {DType::Int64, DType::Float32}),
          "in-memory data: labels must be int64 [N, ...] or float32 [N, ...] on the CPU, got {}",
          labels.toString());
  require(features.shape()[0] == labels.shape()[0],
          "in-memory data: features and labels differ in their number of examples: {} and {}",
          features.toString(), labels.toString());
  return features.shape()[0];
}

}  // namespace

void gatherRows(const Tensor& source, std::span<const std::int64_t> rows, Tensor& target) {
  if (target.dtype() != source.dtype() ||
      target.shape() != source.shape().dropFirst().prepend(static_cast<std::int64_t>(rows.size())))
      [[unlikely]]
    throw InvalidArgument(fmt::format("gather: {} rows of {} do not make {}", rows.size(), source.toString(),
                                      target.toString()));
  const std::size_t bytes =
      static_cast<std::size_t>(source.shape().dropFirst().elements()) * sizeOf(source.dtype());
  const auto* from = static_cast<const std::byte*>(source.raw());
  auto* to = static_cast<std::byte*>(target.raw());
  for (const auto row : rows)
    if (row < 0 || row >= source.shape()[0]) [[unlikely]]
      throw InvalidArgument(fmt::format("gather: {} has no row {}", source.toString(), row));
  const auto place = [&](std::size_t i) { return from + static_cast<std::size_t>(rows[i]) * bytes; };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // Shuffled rows are seldom in the cache; the processor itself looks ahead within a long row alone.
    if (i + kRowsAhead < rows.size())
      for (std::size_t b = 0; b < std::min(bytes, kBytesAhead); b += kCacheLine)
        __builtin_prefetch(place(i + kRowsAhead) + b);
    std::memcpy(to, place(i), bytes);
    to += bytes;
  }
}

InMemoryDataSetIterator::InMemoryDataSetIterator(Tensor features, Tensor labels, std::int64_t batch,
                                                 std::optional<std::uint64_t> shuffleSeed,
                                                 MemoryPlacement placement)
    : placement_(placement), batch_(batch), order_(checkedRows(features, labels), shuffleSeed) {
  require(batch >= 1, "in-memory data: a batch needs at least 1 example, got {}", batch);
  features_ = std::make_shared<const ResidentTensor>(std::move(features));
  labels_ = std::make_shared<const ResidentTensor>(std::move(labels));
}

void InMemoryDataSetIterator::setMasks(std::vector<NamedTensor> masks) {
  for (const auto& [name, mask, source] : masks)
    require(mask.defined() && mask.dtype() == DType::Float32 && mask.device().isCpu() &&
                mask.layout() == Layout::RowMajor && mask.shape().rank() > 0 && mask.shape().rank() <= 2 &&
                mask.shape()[0] == labels_->onCpu().shape()[0],
            "in-memory data: the mask {} must be float32 [N] or [N, T] of {} examples on the CPU, got {}",
            name, labels_->onCpu().shape()[0], mask.toString());
  masks_ = std::move(masks);
}

bool InMemoryDataSetIterator::next(Batch& batch) {
  const auto rows = order_.take(batch_);
  if (rows.empty()) return false;
  fill(rows, batch);
  return true;
}

const NumberedBatches* InMemoryDataSetIterator::numbered() const {
  return typeid(*this) == typeid(InMemoryDataSetIterator) ? this : nullptr;  // else `next` may be another one
}

void InMemoryDataSetIterator::readBatch(std::int64_t number, Batch& batch) const {
  fill(order_.at(number * batch_, batch_), batch);
}

void InMemoryDataSetIterator::fill(std::span<const std::int64_t> rows, Batch& batch) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto gather = [&](const std::shared_ptr<const ResidentTensor>& data, std::vector<NamedTensor>& into,
                          std::string_view name) {
    if (placement_ == MemoryPlacement::Device) {
      std::ranges::copy(rows, Batch::ensureOnly(into, name, {count}, DType::Int64).data<std::int64_t>());
      into.front().source = data;
      return;
    }
    const Tensor& source = data->onCpu();
    gatherRows(source, rows,
               Batch::ensureOnly(into, name, source.shape().dropFirst().prepend(count), source.dtype()));
  };
  gather(features_, batch.features, "features");
  gather(labels_, batch.labels, "labels");
  std::erase_if(batch.masks, [this](const NamedTensor& mask) {
    return std::ranges::find(masks_, mask.name, &NamedTensor::name) == masks_.end();
  });
  for (const auto& [name, mask, source] : masks_)
    gatherRows(mask, rows, Batch::ensure(batch.masks, name, mask.shape().dropFirst().prepend(count)));
}

}  // namespace muster
