#include "muster/parallel/inference/joined_batch.h"

#include <algorithm>
#include <cstring>

#include "muster/core/base/error.h"
#include "muster/parallel/inference/call_queue.h"

namespace muster {
namespace {

constexpr std::size_t kMostSizes = 6;

std::size_t rowBytes(const Tensor& tensor) {
  const auto sizes = tensor.shape().sizes().subspan(1);
  std::size_t bytes = sizeOf(tensor.dtype());
  for (const auto size : sizes) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

std::byte* row(const Tensor& tensor, std::int64_t index) {
  return static_cast<std::byte*>(tensor.raw()) + static_cast<std::size_t>(index) * rowBytes(tensor);
}

Shape withRows(const Shape& shape, std::int64_t rows) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes.front() = rows;
  return Shape(sizes);
}

}  // namespace

std::vector<std::int64_t> paddedSizes(std::int64_t limit) {
  std::vector<std::int64_t> sizes{1};
  for (auto size = limit; size > 1 && sizes.size() < kMostSizes; size /= 2) sizes.push_back(size);
  std::ranges::sort(sizes);
  return sizes;
}

JoinedBatch::JoinedBatch(std::int64_t limit)
    : sizes_(limit > 0 ? paddedSizes(limit) : std::vector<std::int64_t>{}) {}

void JoinedBatch::join(std::span<const Part> parts) {
  std::int64_t examples = 0;
  for (const auto& part : parts) examples += part.end - part.begin;
  const auto most = sizes_.empty() ? examples : sizes_.back();
  pieces_.clear();
  for (std::int64_t begin = 0; begin < examples; begin += most) {
    const auto end = std::min(begin + most, examples);
    const auto size = sizes_.empty() ? examples : *std::ranges::lower_bound(sizes_, end - begin);
    pieces_.push_back({begin, end, size});
  }
  if (!joinable(batch_, *parts.front().batch)) batch_ = Batch{};
  copyRows(&Batch::features, parts);
  copyRows(&Batch::masks, parts);
}

void JoinedBatch::copyRows(std::vector<NamedTensor> Batch::*tensors, std::span<const Part> parts) {
  const auto end = pieces_.back().end;
  const auto padded = pieces_.back().begin + pieces_.back().size;
  for (std::size_t t = 0; t < (parts.front().batch->*tensors).size(); ++t) {
    const auto& [name, like, source] = (parts.front().batch->*tensors)[t];
    const Tensor into = Batch::ensure(batch_.*tensors, name, withRows(like.shape(), padded), like.dtype());
    std::int64_t at = 0;
    for (const auto& [batch, first, last] : parts) {
      const Tensor& from = (batch->*tensors)[t].value;
      std::memcpy(row(into, at), row(from, first), static_cast<std::size_t>(last - first) * rowBytes(into));
      at += last - first;
    }
    std::memset(row(into, end), 0, static_cast<std::size_t>(padded - end) * rowBytes(into));
  }
}

void JoinedBatch::compute(Model& model) {
  if (outputs_.size() < pieces_.size()) outputs_.resize(pieces_.size());
  piece_ = batch_;
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const auto& [begin, end, size] = pieces_[p];
    for (const auto tensors : {&Batch::features, &Batch::masks})
      for (std::size_t t = 0; t < (batch_.*tensors).size(); ++t)
        (piece_.*tensors)[t].value = (batch_.*tensors)[t].value.rows(begin, begin + size);
    model.output(piece_, outputs_[p]);
    const Shape& shape = outputs_[p].shape();
    if (shape.empty() || shape[0] != size)
      throw InvalidArgument(fmt::format("output: the model's output {} has not a row for each of {} examples",
                                        shape.toString(), size));
  }
}

Tensor JoinedBatch::output(std::int64_t begin, std::int64_t end) const {
  Tensor rows = Tensor::empty(withRows(outputs_.front().shape(), end - begin), outputs_.front().dtype());
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const auto first = std::max(begin, pieces_[p].begin), last = std::min(end, pieces_[p].end);
    if (first < last)
      std::memcpy(row(rows, first - begin), row(outputs_[p], first - pieces_[p].begin),
                  static_cast<std::size_t>(last - first) * rowBytes(rows));
  }
  return rows;
}

}  // namespace muster
