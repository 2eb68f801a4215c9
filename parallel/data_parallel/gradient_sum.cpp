#include "muster/parallel/data_parallel/gradient_sum.h"

#include <algorithm>

#include "muster/core/ops/accumulate.h"
#include "muster/parallel/exchange/exchange.h"

namespace muster {

GradientSum::GradientSum(Replicas replicas, Tensor& total, Context& context)
    : replicas_(replicas),
      total_(total),
      context_(context),
      onOneCpu_(total.device().isCpu() && std::ranges::all_of(replicas, [](const auto& replica) {
                  return replica->thread.placement().device.isCpu();
                })) {}

void GradientSum::addPart(Replica& replica) const {
  if (onOneCpu_)
    addSlice(replica);
  else
    replica.bringGradients(total_.device());
}

void GradientSum::finish() {
  if (onOneCpu_) return;
  context_.synchronize();
  if (!total_.device().isCpu()) return addAll();
  runOnAll(replicas_, "failed in adding up the gradients", [this](Replica& replica) { addSlice(replica); });
}

void GradientSum::addAll() {
  std::vector<Tensor> terms{total_};
  for (const auto& replica : replicas_) terms.push_back(replica->gradientsThere);
  sum(terms, total_, context_);
  context_.synchronize();
}

void GradientSum::addSlice(Replica& replica) const {
  const Slice slice = sliceOf(total_.elements(), replica.thread.index(), static_cast<int>(replicas_.size()));
  if (slice.begin == slice.end) return;
  const auto partOf = [&](const Tensor& gradients) {
    return gradients.slice(slice.begin, {slice.end - slice.begin});
  };
  Tensor part = partOf(total_);
  std::vector<Tensor> terms{part};
  for (const auto& other : replicas_) terms.push_back(partOf(other->gradientsThere));
  const ContextScope scope(replica.thread.context());
  sum(terms, part, replica.thread.context());
}

}  // namespace muster
