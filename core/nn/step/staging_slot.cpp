#include "muster/core/nn/step/staging_slot.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/ops/gather.h"

namespace muster::detail {
namespace {

constexpr std::int64_t kPosition = 2;  // number of position values, which precede the update's numbers
constexpr auto kNumbers = kPosition + static_cast<std::int64_t>(kUpdateNumbers);

static_assert(sizeof(double) == sizeof(std::int64_t));

/// Whether both refer to the same object (it may be destroyed already) or to none.
bool sameSource(const std::shared_ptr<const ResidentTensor>& a,
                const std::weak_ptr<const ResidentTensor>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

bool sameForms(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  return std::ranges::equal(a, b, [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && x.value.dtype() == y.value.dtype() && x.value.shape() == y.value.shape();
  });
}

/// Checks row indices: a GPU kernel would read out of bounds without an error.
void requireRows(const NamedTensor& named) {
  const std::int64_t count = named.source->onCpu().shape()[0];
  for (const std::int64_t row : named.value.span<std::int64_t>())
    if (row < 0 || row >= count) [[unlikely]]
      throw InvalidArgument(fmt::format("network: the batch's {} name row {} of {}", named.name, row,
                                        named.source->onCpu().toString()));
}

/// Total number of row indices in the batch's lists.
std::int64_t rowsNamed(const Batch& batch) {
  std::int64_t rows = 0;
  for (const auto* list : {&batch.features, &batch.labels, &batch.masks})
    for (const auto& named : *list)
      if (named.source) rows += named.value.elements();
  return rows;
}

Tensor updateNumbersIn(const Tensor& numbers) {
  return Tensor::view(numbers.data<std::int64_t>() + kPosition, {static_cast<std::int64_t>(kUpdateNumbers)},
                      DType::Float64, numbers.device());
}

}  // namespace

StagingSlot::StagingSlot(const Batch& like, std::size_t outputs, Context& context)
    : context_(context),
      sent_(context),
      read_(context),
      hostNumbers_(Tensor::pinned({kNumbers + rowsNamed(like)}, DType::Int64)),
      numbers_(Tensor::zeros(hostNumbers_.shape(), DType::Int64, context.device())),
      hostUpdateNumbers_(updateNumbersIn(hostNumbers_)),
      position_(numbers_.slice(0, {kPosition})),
      updateNumbers_(updateNumbersIn(numbers_)),
      results_(outputs, context) {
  add(like.features, pinned_.features, onDevice_.features);
  add(like.labels, pinned_.labels, onDevice_.labels);
  add(like.masks, pinned_.masks, onDevice_.masks);
  setZero(hostNumbers_, context);
  const Tensor examples = Tensor::zeros({1}, DType::Float64);
  *examples.data<double>() = static_cast<double>(like.examples());
  examples_ = copyTo(examples, context.device());
}

void StagingSlot::add(const std::vector<NamedTensor>& like, std::vector<NamedTensor>& pinned,
                      std::vector<NamedTensor>& there) {
  for (const auto& [name, value, source] : like) {
    sources_.push_back(source);
    if (!source) {
      pinned.push_back({name, Tensor::pinned(value.shape(), value.dtype())});
      there.push_back({name, Tensor::zeros(value.shape(), value.dtype(), context_.device())});
      continue;
    }
    std::int64_t place = kNumbers;
    for (const auto& gathering : gatherings_) place += gathering.rows.elements();
    pinned.push_back({name, hostNumbers_.slice(place, value.shape())});
    const Tensor& all = source->on(context_.device());
    there.push_back({name, Tensor::zeros(all.shape().dropFirst().prepend(value.elements()), all.dtype(),
                                         context_.device())});
    gatherings_.push_back({&all, numbers_.slice(place, value.shape()), there.back().value});
  }
}

bool StagingSlot::fits(const Batch& batch) const {
  if (!sameForms(batch.features, pinned_.features) || !sameForms(batch.labels, pinned_.labels) ||
      !sameForms(batch.masks, pinned_.masks))
    return false;
  auto source = sources_.begin();
  for (const auto* list : {&batch.features, &batch.labels, &batch.masks})
    for (const auto& named : *list)
      if (!sameSource(named.source, *source++)) return false;
  return true;
}

void StagingSlot::fill(const std::vector<NamedTensor>& from, std::vector<NamedTensor>& pinned,
                       std::vector<NamedTensor>& there) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    copy(from[i].value, pinned[i].value);
    if (from[i].source) {  // `fetch` copies the rows with the step's numbers
      requireRows(from[i]);
      continue;
    }
    copy(pinned[i].value, there[i].value, context_, Stream::Copy);
    copied_ = true;
  }
}

void StagingSlot::send(const Batch& batch) {
  // A batch without a step may still be copied or read.
  if (std::exchange(copied_, false)) sent_.wait();
  if (std::exchange(fetched_, false)) read_.wait();
  fill(batch.features, pinned_.features, onDevice_.features);
  fill(batch.labels, pinned_.labels, onDevice_.labels);
  fill(batch.masks, pinned_.masks, onDevice_.masks);
  if (copied_) {
    sent_.record(context_, Stream::Copy);
    sent_.waitOn(context_);
  }
  onDevice_.stamp = batch.stamp;
  auto* const numbers = hostNumbers_.data<std::int64_t>();
  numbers[0] = batch.stamp.epoch;
  numbers[1] = batch.stamp.firstExample;
}

void StagingSlot::fetch() {
  copy(hostNumbers_, numbers_, context_);
  for (auto& [source, rows, target] : gatherings_) gatherRows(*source, rows, target, context_);
}

void StagingSlot::fetchAlone() {
  fetch();
  read_.record(context_);
  fetched_ = true;
}

}  // namespace muster::detail
