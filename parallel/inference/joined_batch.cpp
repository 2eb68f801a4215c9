#include "muster/parallel/inference/joined_batch.h"

#include <array>
#include <cstring>
#include <memory>
#include <set>

#include "muster/parallel/inference/call_queue.h"

namespace muster {
namespace {

constexpr std::size_t kMostSizes = 8;  // programs that a network keeps
/// Sizes in sixteenths of the limit, the most useful first. The last ones are used for limits below 17, for
/// which some of the others are equal.
constexpr std::array<std::int64_t, 16> kSixteenths{16, 8, 4, 2, 1, 14, 6, 12, 10, 15, 13, 11, 9, 7, 5, 3};

Shape withRows(const Shape& shape, std::int64_t rows) {
  return shape.dropFirst().prepend(rows);
}

/// Copies rows [begin, end) to the rows of `into` from `at` on.
void copyRowsTo(const Tensor& into, std::int64_t at, const Tensor& from, std::int64_t begin,
                std::int64_t end) {
  const Tensor rows = from.rows(begin, end);
  std::memcpy(into.rows(at, at + end - begin).raw(), rows.raw(), rows.bytes());
}

}  // namespace

std::vector<std::int64_t> paddedSizes(std::int64_t limit) {
  if (limit == 0) return {};
  std::set<std::int64_t> sizes{1};
  for (const auto part : kSixteenths)
    if (sizes.size() < kMostSizes) sizes.insert((limit * part + 15) / 16);
  return {sizes.begin(), sizes.end()};
}

JoinedBatch::JoinedBatch(std::int64_t limit, bool twoPieces)
    : sizes_(paddedSizes(limit)), twoPieces_(twoPieces) {}

std::int64_t JoinedBatch::firstOfTwo(std::int64_t examples) const {
  const auto one = sizeFor(examples);
  if (!twoPieces_ || one == examples) return 0;
  const auto first = *std::prev(std::ranges::lower_bound(sizes_, examples));
  const auto two = first + sizeFor(examples - first);
  return 8 * two < 7 * one ? first : 0;
}

void JoinedBatch::divide(std::int64_t examples) {
  pieces_.clear();
  std::int64_t begin = 0;
  const auto add = [&](std::int64_t size) {
    const auto end = std::min(begin + size, examples);
    pieces_.push_back({begin, end, size});
    begin = end;
  };
  if (!sizes_.empty())
    while (examples - begin > sizes_.back()) add(sizes_.back());
  if (const auto first = firstOfTwo(examples - begin)) add(first);
  add(sizeFor(examples - begin));
}

void JoinedBatch::join(std::span<const Part> parts) {
  std::int64_t examples = 0;
  for (const auto& part : parts) examples += part.end - part.begin;
  divide(examples);
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
      copyRowsTo(into, at, (batch->*tensors)[t].value, first, last);
      at += last - first;
    }
    const Tensor padding = into.rows(end, padded);
    std::memset(padding.raw(), 0, padding.bytes());
  }
}

void JoinedBatch::compute(Model& model) {
  outputs_.assign(pieces_.size(), {});
  piece_ = batch_;
  // A batch whose memory others share could not grow again within it.
  const std::unique_ptr<Batch, void (*)(Batch*)> released(&piece_, [](Batch* batch) { batch->release(); });
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
  for (std::size_t p = 0; p < pieces_.size(); ++p)
    if (begin >= pieces_[p].begin && end <= pieces_[p].end)
      return outputs_[p].rows(begin - pieces_[p].begin, end - pieces_[p].begin);
  Tensor rows = Tensor::empty(withRows(outputs_.front().shape(), end - begin), outputs_.front().dtype());
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const auto first = std::max(begin, pieces_[p].begin), last = std::min(end, pieces_[p].end);
    if (first < last)
      copyRowsTo(rows, first - begin, outputs_[p], first - pieces_[p].begin, last - pieces_[p].begin);
  }
  return rows;
}

}  // namespace muster
