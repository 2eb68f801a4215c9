#include "muster/core/nn/step/gradient_slices.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/ops/linear_combination.h"

namespace muster::detail {
namespace {

/// Makes `to` the rows [begin, end) of the tensors.
void sliceRows(const std::vector<NamedTensor>& tensors, std::int64_t begin, std::int64_t end,
               std::vector<NamedTensor>& to) {
  to.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    to[i].name = tensors[i].name;
    to[i].value = tensors[i].value.rows(begin, end);
    to[i].source = tensors[i].source;
  }
}

/// While it lives, layers that sum over workers throw: workers may have different numbers of slices.
class NoPeers final : public Peers {
 public:
  explicit NoPeers(Context& context) : context_(context), peers_(context.peers()) {
    if (peers_) context_.setPeers(this);
  }
  ~NoPeers() override { context_.setPeers(peers_); }
  NoPeers(const NoPeers&) = delete;
  NoPeers& operator=(const NoPeers&) = delete;

  void sum(std::span<double>) override {
    throw InvalidArgument(
        "accumulate: a layer adds up numbers between workers (synchronised batch normalisation), which is "
        "not supported with more than one batch per step");
  }

 private:
  Context& context_;
  Peers* const peers_;
};

}  // namespace

StepScore GradientSlices::gradient(const Batch& batch, std::int64_t count, Tensor& gradients,
                                   Context& context,
                                   const std::function<StepTicket(const Batch&)>& gradient) {
  const NoPeers alone(context);
  const std::int64_t examples = batch.examples(), rows = (examples + count - 1) / count;
  const std::span<const std::int64_t> parts(batch.parts);
  require(parts.empty() || std::reduce(parts.begin(), parts.end()) == examples,
          "accumulate: a batch of {} was joined from batches of {}", plural(examples, "example"),
          fmt::join(parts, ", "));
  if (parts.empty() ? rows == examples : parts.size() == 1) return gradient(batch).wait();  // one slice
  if (!sums_.defined()) sums_ = Tensor::empty(gradients.shape(), DType::Float64, gradients.device());
  const std::int64_t elements = gradients.elements();
  StepScore all{.score = 0, .weight = 0};
  // A recycled batch whose memory others share could not grow again within it.
  const std::unique_ptr<Batch, void (*)(Batch*)> released(&slice_, [](Batch* slice) { slice->release(); });
  std::size_t slice = 0;
  for (std::int64_t begin = 0, end = 0; begin < examples; begin = end, ++slice) {
    end = parts.empty() ? std::min(begin + rows, examples) : begin + parts[slice];
    if (end == begin) continue;  // an empty batch
    sliceRows(batch.features, begin, end, slice_.features);
    sliceRows(batch.labels, begin, end, slice_.labels);
    sliceRows(batch.masks, begin, end, slice_.masks);
    slice_.stamp = batch.stamp;
    slice_.stamp.firstExample += begin;
    const StepScore score = gradient(slice_).wait();
    const std::array terms{Term{.factor = begin == 0 ? 0.0 : 1.0, .values = sums_},
                           Term{.factor = score.weight, .values = gradients}};
    linearCombination(terms, sums_, 0, elements, context);
    // A slice without weight has no score.
    if (score.weight != 0) all.score += score.weight * score.score;
    all.weight += score.weight;
  }
  if (all.weight != 0) all.score /= all.weight;
  const std::array mean{Term{.factor = all.weight == 0 ? 0 : 1 / all.weight, .values = sums_}};
  linearCombination(mean, gradients, 0, elements, context);
  return all;
}

}  // namespace muster::detail
