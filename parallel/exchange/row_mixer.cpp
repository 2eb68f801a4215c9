#include "muster/parallel/exchange/row_mixer.h"

#include <numeric>

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

// Kinds of slots in the scratch memory, one per worker: copies of replicas, results, and inputs of
// weightedMoments, which overwrites them.
constexpr std::size_t kKinds = 3;

// Room for the shares of a row. Longer rows allocate once: with a thousand workers, each with such a list,
// room for all shares would take a hundred megabytes.
constexpr std::size_t kUsualShares = 40;

}  // namespace

RowMixer::RowMixer(std::size_t workers) : copied_(workers) {
  const std::size_t most = std::min(workers, kUsualShares);
  terms_.reserve(most);
  replicas_.reserve(most);
  weights_.reserve(most);
}

std::size_t RowMixer::bytesFor(std::size_t workers, std::int64_t elements) {
  return kKinds * workers * 2 * static_cast<std::size_t>(elements) * sizeof(double);
}

std::int64_t RowMixer::elementsAtATime(const SharedBlock& block, std::size_t bytes) {
  const auto parts = static_cast<std::size_t>(block.parts()), kinds = kKinds - 2 + parts;
  return static_cast<std::int64_t>(
      bytes / (kinds * block.replicas.size() * parts * sizeOf(block.replicas.front().dtype())));
}

void RowMixer::begin(const SharedBlock& block, Slice slice, const Tensor& scratch, Context& context) {
  block_ = &block;
  slice_ = slice;
  scratch_ = scratch;
  context_ = &context;
}

Tensor RowMixer::slot(std::size_t index) const {
  const std::int64_t length = block_->parts() * slice_.length();
  return viewAt(scratch_, static_cast<std::int64_t>(index) * length, length,
                block_->replicas.front().dtype());
}

Tensor RowMixer::inBlock(const Tensor& block, int p) const {
  return part(block, inPart(slice_, p, block_->elementsOfPart()));
}

Tensor RowMixer::inSlot(const Tensor& slot, int p) const {
  return part(slot, inPart({0, slice_.length()}, p, slice_.length()));
}

Tensor RowMixer::source(std::size_t worker) const {
  return copied_[worker] ? slot(worker) : part(block_->replicas[worker], slice_);
}

void RowMixer::read(std::size_t worker) {
  copied_[worker] = ofMoments() ? 1 : 0;
  if (ofMoments()) fetch(block_->replicas[worker], slot(worker));
}

void RowMixer::fetch(const Tensor& block, const Tensor& to) const {
  for (int p = 0; p < block_->parts(); ++p) {
    Tensor target = inSlot(to, p);
    copy(inBlock(block, p), target, *context_);
  }
}

Tensor RowMixer::inbox(std::size_t worker, int p) {
  copied_[worker] = 1;
  return inSlot(slot(worker), p);
}

void RowMixer::addMoments(std::size_t worker, double weight) {
  Tensor joined = slot(2 * copied_.size() + replicas_.size());
  copy(source(worker), joined, *context_);
  replicas_.push_back(joined);
  weights_.push_back(weight);
}

void RowMixer::form(std::span<const MixingShare> row, const Tensor& to) {
  terms_.clear();
  replicas_.clear();
  weights_.clear();
  if (!ofMoments()) {
    for (const auto& [worker, factor] : row) terms_.push_back({factor, source(worker)});
    return atElement(slice_.begin, "mix",
                     [&] { linearCombination(terms_, to, 0, slice_.length(), *context_); });
  }
  for (const auto& [worker, factor] : row) addMoments(worker, factor);
  Tensor result = to;
  weightedMoments(replicas_, weights_, result, 0, slice_.length(), *context_);
}

void RowMixer::write(const Tensor& from, const Tensor& block) const {
  for (int p = 0; p < block_->parts(); ++p) {
    Tensor to = inBlock(block, p);
    copy(inSlot(from, p), to, *context_);
  }
}

void RowMixer::merge(std::span<const double> weights, double keep, const Tensor& mergedCopy) {
  replicas_.clear();
  weights_.clear();
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t w = 0; w < weights.size(); ++w)
    if (weights[w] > 0) addMoments(w, keep > 0 ? (1 - keep) * (weights[w] / total) : weights[w]);
  if (keep > 0) {
    replicas_.push_back(slot(copied_.size()));  // free, since no row is formed yet
    weights_.push_back(keep);
    fetch(mergedCopy, replicas_.back());
  }
  Tensor none;
  weightedMoments(replicas_, weights_, none, 0, slice_.length(), *context_);
  write(replicas_.front(), mergedCopy);
}

void RowMixer::mix(const Mixing& mixing, std::span<const std::size_t> workers) {
  const std::size_t results = copied_.size();
  // Adjacent workers may share a row, which is formed once.
  const auto isFirst = [&](std::size_t i) {
    if (i == 0) return true;
    const auto row = mixing.row(workers[i]), before = mixing.row(workers[i - 1]);
    return row.data() != before.data() || row.size() != before.size();
  };
  std::size_t first = 0;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto row = mixing.row(workers[i]);
    if (!row.empty() && isFirst(i)) form(row, slot(results + i));
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (isFirst(i)) first = i;
    if (!mixing.row(workers[i]).empty()) write(slot(results + first), block_->replicas[workers[i]]);
  }
}

}  // namespace muster
