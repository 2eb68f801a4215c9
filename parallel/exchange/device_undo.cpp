#include <algorithm>

#include "muster/core/ops/count_non_finite.h"
#include "muster/parallel/exchange/device_exchange.h"

namespace muster {
namespace {

/// Blocks that are not merged may hold other numbers.
bool isReal(const Tensor& tensor) {
  return (tensor.dtype() == DType::Float32 || tensor.dtype() == DType::Float64) &&
         tensor.layout() == Layout::RowMajor;
}

}  // namespace

DeviceExchange::Undo::Undo(DeviceExchange& devices, const Options& options)
    : MergeUndo(devices, options),
      devices_(devices),
      first_(devices.devices_.front()),
      kept_(*first_.context),
      checks_(options.everyMerge && options.allState && options.mayOverflow) {
  if (!checks_) return;
  nonFinite_ = Tensor::zeros({1}, DType::Float64, first_.context->device());
  nonFiniteHere_ = Tensor::pinned({1}, DType::Float64);
  *nonFiniteHere_.data<double>() = 0;
}

void DeviceExchange::Undo::restart() {
  keeping_ = false;
  keptWhole_ = true;
  if (checks_) *nonFiniteHere_.data<double>() = 0;
}

void DeviceExchange::Undo::check() {
  if (!checks_) return;
  setZero(nonFinite_, *first_.context);
  for (const Copy& one : copies_)
    if (isReal(*one.live)) countNonFinite(*one.live, nonFinite_, *first_.context);
  copy(nonFinite_, nonFiniteHere_, *first_.context);
}

/// Hardly waits: workers call it after they have read the score of a step that came after the merge.
void DeviceExchange::Undo::requireFinite() const {
  if (!checks_) return;
  first_.merged.wait();
  if (!failed()) return;
  const auto isBad = [](const Copy& one) {
    Context onCpu;
    Tensor count = Tensor::zeros({1}, DType::Float64);
    if (isReal(*one.live)) countNonFinite(copyTo(*one.live, Device::cpu()), count, onCpu);
    return *count.data<double>() > 0;
  };
  const auto bad = std::ranges::find_if(copies_, isBad);
  throw NonFiniteScore(fmt::format("the last merge has written numbers that are not finite, in {}",
                                   bad == copies_.end() ? "state" : bad->name));
}

void DeviceExchange::Undo::keepAll() {
  requireFinite();
  // A worker that has no more batches comes here while the merge before is in flight, and another worker's
  // failure may abort that merge. Then either `abort` sees that copies are being made, or none is made,
  // and those from before that merge stay.
  keeping_ = true;
  if (devices_.aborted_) {
    keeping_ = false;
    return;
  }
  for (Copy& one : copies_) copy(*one.live, one.kept, *first_.context);
  kept_.record(*first_.context);
  keeping_ = false;
}

bool DeviceExchange::Undo::rollBack() {
  if (!everyMerge() || (devices_.broken_ && (!options_.allState || !keptWhole_))) return false;
  for (const Copy& one : copies_) {
    Tensor live = *one.live;
    copy(one.kept, live, *first_.context);
  }
  first_.context->synchronize();
  devices_.whole_ = true;
  devices_.broken_ = false;
  if (checks_) *nonFiniteHere_.data<double>() = 0;
  return true;
}

}  // namespace muster
