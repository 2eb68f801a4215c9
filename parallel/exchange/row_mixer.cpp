#include "muster/parallel/exchange/row_mixer.h"

#include <numeric>

#include "muster/core/base/error.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {
namespace {

// Slots of the scratch memory, one a worker each: copies of replicas, then results, then what is joined to
// moments, which their operation overwrites.
constexpr std::size_t kKinds = 3;

bool isMoments(const SharedBlock& block) {
  return block.rule == MergeRule::Moments;
}

}  // namespace

RowMixer::RowMixer(std::size_t workers) : sources_(workers) {
  terms_.reserve(workers);
  replicas_.reserve(workers);
  weights_.reserve(workers);
  merged_.reserve(workers);
}

std::size_t RowMixer::bytesFor(std::size_t workers, std::int64_t elements) {
  return kKinds * workers * 2 * static_cast<std::size_t>(elements) * sizeof(double);
}

std::int64_t RowMixer::elementsAtATime(const SharedBlock& block, std::size_t bytes) {
  const std::size_t parts = isMoments(block) ? 2 : 1, workers = block.replicas.size();
  const std::size_t kinds = isMoments(block) ? kKinds : kKinds - 1;
  return static_cast<std::int64_t>(bytes /
                                   (kinds * workers * parts * sizeOf(block.replicas.front().dtype())));
}

void RowMixer::begin(const SharedBlock& block, Slice slice, const Tensor& scratch, Context& context) {
  block_ = &block;
  moments_ = isMoments(block);
  slice_ = slice;
  scratch_ = scratch;
  context_ = &context;
}

Tensor RowMixer::slot(std::size_t index) const {
  const std::int64_t length = parts() * slice_.length();
  return viewAt(scratch_, static_cast<std::int64_t>(index) * length, length,
                block_->replicas.front().dtype());
}

void RowMixer::read(std::size_t worker) {
  const Tensor& replica = block_->replicas[worker];
  if (!moments_) {
    sources_[worker] = part(replica, slice_);
    return;
  }
  for (int p = 0; p < 2; ++p) {
    Tensor to = inbox(worker, p);
    copy(part(replica, inPart(slice_, p, replica.elements() / 2)), to, *context_);
  }
}

Tensor RowMixer::inbox(std::size_t worker, int p) {
  sources_[worker] = slot(worker);
  return part(sources_[worker], inPart({0, slice_.length()}, p, slice_.length()));
}

Tensor RowMixer::form(std::span<const MixingShare> row, const Tensor& to) {
  if (!moments_) {
    terms_.clear();
    for (const auto& [worker, factor] : row) terms_.push_back({factor, sources_[worker]});
    linearCombination(terms_, to, 0, slice_.length(), *context_);
    return to;
  }
  replicas_.clear();
  weights_.clear();
  for (const auto& [worker, factor] : row) {
    Tensor joined = slot(2 * sources_.size() + replicas_.size());
    copy(sources_[worker], joined, *context_);
    replicas_.push_back(joined);
    weights_.push_back(factor);
  }
  Tensor result = to;
  weightedMoments(replicas_, weights_, result, 0, slice_.length(), *context_);
  return replicas_.front();
}

void RowMixer::write(const Tensor& from, const Tensor& block) const {
  for (int p = 0; p < parts(); ++p) {
    Tensor to = part(block, inPart(slice_, p, block.elements() / parts()));
    copy(part(from, inPart({0, slice_.length()}, p, slice_.length())), to, *context_);
  }
}

void RowMixer::merge(std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  merged_.clear();
  for (std::size_t w = 0; w < weights.size(); ++w)
    if (weights[w] > 0) merged_.push_back({w, moments_ ? weights[w] : weights[w] / total});
  if (moments_)
    write(form(merged_, Tensor()), block_->mergedCopy());
  else
    form(merged_, part(block_->mergedCopy(), slice_));
}

void RowMixer::mix(const Mixing& mixing, std::span<const std::size_t> workers) {
  const std::size_t results = sources_.size();
  // Workers beside each other may share a row, which is formed once.
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
