#include "muster/parallel/exchange/device_undo.h"

#include "muster/core/base/error.h"
#include "muster/core/ops/count_non_finite.h"

namespace muster {
namespace {

/// Blocks that are not merged may hold other numbers.
bool isReal(const Tensor& tensor) {
  return (tensor.dtype() == DType::Float32 || tensor.dtype() == DType::Float64) &&
         tensor.layout() == Layout::RowMajor;
}

}  // namespace

DeviceUndo::DeviceUndo(Exchange& exchange, const Options& options, MergeStatus& status, Context& context,
                       const Event& merged)
    : MergeUndo(exchange, options),
      status_(status),
      context_(context),
      merged_(merged),
      kept_(context),
      checks_(options.everyMerge && options.allState && options.mayOverflow) {
  if (!checks_) return;
  nonFinite_ = Tensor::zeros({1}, DType::Float64, context.device());
  nonFiniteHere_ = Tensor::pinned({1}, DType::Float64);
  *nonFiniteHere_.data<double>() = 0;
}

void DeviceUndo::restart() {
  keeping_ = false;
  keptWhole_ = true;
  if (checks_) *nonFiniteHere_.data<double>() = 0;
}

void DeviceUndo::check() {
  if (!checks_) return;
  setZero(nonFinite_, context_);
  for (const Copy& one : copies_)
    if (isReal(*one.live)) countNonFinite(*one.live, nonFinite_, context_);
  copy(nonFinite_, nonFiniteHere_, context_);
}

/// Hardly waits: workers call it after they have read the score of a step that came after the merge.
void DeviceUndo::requireFinite() const {
  if (!checks_) return;
  merged_.wait();
  if (!failed()) return;
  std::string name = "state";
  for (const Copy& one : copies_) {
    if (!isReal(*one.live)) continue;
    Context onCpu;
    Tensor count = Tensor::zeros({1}, DType::Float64);
    countNonFinite(copyTo(*one.live, Device::cpu()), count, onCpu);
    if (*count.data<double>() > 0) {
      name = one.name;
      break;
    }
  }
  throw NonFiniteScore(fmt::format("the last merge has written numbers that are not finite, in {}", name));
}

void DeviceUndo::keepAll() {
  requireFinite();
  // A worker that has no more batches comes here while the merge before is in flight, and another worker's
  // failure may abort that merge. Then either `noteAbort` sees that copies are being made, or none is made,
  // and those from before that merge stay.
  keeping_ = true;
  if (status_.aborted) {
    keeping_ = false;
    return;
  }
  for (Copy& one : copies_) copy(*one.live, one.kept, context_);
  kept_.record(context_);
  keeping_ = false;
}

bool DeviceUndo::rollBack() {
  if (!everyMerge() || (status_.broken && (!options_.allState || !keptWhole_))) return false;
  for (const Copy& one : copies_) {
    Tensor live = *one.live;
    copy(one.kept, live, context_);
  }
  context_.synchronize();
  status_.whole = true;
  status_.broken = false;
  if (checks_) *nonFiniteHere_.data<double>() = 0;
  return true;
}

}  // namespace muster
