#include "muster/core/data/joining_iterator.h"

#include <algorithm>
#include <limits>
#include <span>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/own_memory.h"

namespace muster {
namespace {

using Tensors = std::vector<NamedTensor> Batch::*;

void requireAlike(const NamedTensor& first, const NamedTensor& other) {
  const bool alike = other.name == first.name && other.value.dtype() == first.value.dtype() &&
                     other.value.shape().dropFirst() == first.value.shape().dropFirst() &&
                     other.source == first.source;
  require(alike, "accumulate: batches cannot be joined: one has {} {} and another {} {}", first.name,
          first.value.toString(), other.name, other.value.toString());
}

void join(std::span<const Batch> parts, Tensors tensors, Batch& batch) {
  const auto& first = parts[0].*tensors;
  auto& joined = batch.*tensors;
  joined.resize(first.size());
  for (const auto& part : parts)
    if ((part.*tensors).size() != first.size())
      throw InvalidArgument(
          fmt::format("accumulate: batches cannot be joined: one has {} where another has {}",
                      plural(first.size(), "tensor"), (part.*tensors).size()));
  for (std::size_t t = 0; t < first.size(); ++t) {
    std::int64_t rows = 0;
    for (const auto& part : parts) {
      requireAlike(first[t], (part.*tensors)[t]);
      rows += (part.*tensors)[t].value.shape()[0];
    }
    joined[t].name = first[t].name;
    joined[t].source = first[t].source;
    joined[t].value.resize(first[t].value.shape().dropFirst().prepend(rows), first[t].value.dtype());
    std::int64_t row = 0;
    for (const auto& part : parts) {
      const Tensor& from = (part.*tensors)[t].value;
      Tensor to = joined[t].value.rows(row, row + from.shape()[0]);
      copy(from, to);
      row += from.shape()[0];
    }
  }
}

}  // namespace

JoiningIterator::JoiningIterator(DataSetIterator& data, std::int64_t count) : data_(data), count_(count) {
  require(count >= 1, "accumulate: a step takes at least 1 batch, got {}", count);
}

void JoiningIterator::reset(std::int64_t epoch) {
  ended_ = false;
  data_.reset(epoch);
}

std::int64_t JoiningIterator::skip(std::int64_t batches) {
  // Clamp first: a number read from a file may overflow the product.
  return data_.skip(std::min(batches, std::numeric_limits<std::int64_t>::max() / count_) * count_);
}

bool JoiningIterator::next(Batch& batch) {
  if (count_ == 1) {
    batch.parts.clear();
    return data_.next(batch);
  }
  std::size_t read = 0;
  while (!ended_ && static_cast<std::int64_t>(read) < count_) {
    if (read == parts_.size()) parts_.emplace_back();
    ended_ = !nextBatch(data_, parts_[read]);
    if (!ended_) ownMemory(parts_[read++]);  // it waits while the others are read
  }
  if (read == 0) return false;
  const std::span parts(parts_.data(), read);
  for (const auto tensors : {&Batch::features, &Batch::labels, &Batch::masks}) join(parts, tensors, batch);
  batch.parts.clear();
  for (const Batch& part : parts) batch.parts.push_back(part.examples());
  return true;
}

std::optional<std::int64_t> JoiningIterator::batchSize() const {
  const auto size = data_.batchSize();
  return size ? std::optional(*size * count_) : std::nullopt;
}

}  // namespace muster
