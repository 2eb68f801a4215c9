#include "muster/core/ops/elementwise.h"

#include <algorithm>

#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {
namespace {

constexpr auto kAtOnce = static_cast<std::size_t>(kMostInputs);

Inputs<float> tableOf(std::span<const Tensor> tensors) {
  Inputs<float> table{};
  table.count = static_cast<int>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) table.at[i] = tensors[i].data<float>();
  return table;
}

/// Folds all inputs. If one launch cannot take them all, each further launch starts from the previous result.
void fold(Fold rule, std::span<const Tensor> x, double factor, Tensor& y, Context& context) {
  const cudaStream_t stream = stateOf(context).stream();
  Inputs<float> table = tableOf(x.first(std::min(x.size(), kAtOnce)));
  for (auto rest = x.subspan(static_cast<std::size_t>(table.count));;) {
    const float times = rest.empty() ? static_cast<float>(factor) : 1.0f;
    MUSTER_CUDA_CHECK(launchFold(rule, table, times, y.data<float>(), y.storage(), stream));
    if (rest.empty()) return;
    const auto next = rest.first(std::min(rest.size(), kAtOnce - 1));
    rest = rest.subspan(next.size());
    table = tableOf(next);
    std::copy_backward(table.at, table.at + table.count, table.at + table.count + 1);
    table.at[0] = y.data<float>();
    ++table.count;
  }
}

/// Calls f(inputs, index, from) for each group of inputs. `index` is the position of `input` in the group,
/// out of range if `input` is in another group; `from` is gradY in the first call, then gradX.
template <typename F>
void inTurns(std::span<const Tensor> x, std::size_t input, const Tensor& gradY, const Tensor& gradX, F f) {
  const float* from = gradY.data<float>();
  for (std::size_t begin = 0; begin < x.size(); begin += kAtOnce) {
    const auto some = x.subspan(begin, std::min(kAtOnce, x.size() - begin));
    MUSTER_CUDA_CHECK(f(tableOf(some), static_cast<int>(input) - static_cast<int>(begin), from));
    from = gradX.data<float>();
  }
}

}  // namespace

void scale(double factor, const Tensor& x, Tensor& y, Context& context) {
  MUSTER_CUDA_CHECK(launchScale(static_cast<float>(factor), x.data<float>(), y.data<float>(), y.storage(),
                                stateOf(context).stream()));
}

void combine(Combination combination, std::span<const Tensor> x, Tensor& y, Context& context) {
  switch (combination) {
    case Combination::Add:
      return fold(Fold::Add, x, 1, y, context);
    case Combination::Subtract:
      return fold(Fold::Subtract, x, 1, y, context);
    case Combination::Product:
      return fold(Fold::Product, x, 1, y, context);
    case Combination::Average:
      return fold(Fold::Add, x, 1.0 / static_cast<double>(x.size()), y, context);
    case Combination::Max:
      return fold(Fold::Max, x, 1, y, context);
  }
}

void combineBackward(Combination combination, std::span<const Tensor> x, std::size_t input,
                     const Tensor& gradY, Tensor& gradX, Context& context) {
  const cudaStream_t stream = stateOf(context).stream();
  float* const to = gradX.data<float>();
  const std::int64_t n = gradX.storage();
  switch (combination) {
    case Combination::Add:
      return copy(gradY, gradX, context);
    case Combination::Subtract:
      return cuda::scale(input == 0 ? 1 : -1, gradY, gradX, context);
    case Combination::Average:
      return cuda::scale(1.0 / static_cast<double>(x.size()), gradY, gradX, context);
    case Combination::Product:
      return inTurns(x, input, gradY, gradX, [=](const Inputs<float>& some, int own, const float* from) {
        return launchTimesOthers(some, own, from, to, n, stream);
      });
    case Combination::Max: {
      const float* const mine = x[input].data<float>();
      return inTurns(x, input, gradY, gradX, [=](const Inputs<float>& some, int own, const float* from) {
        return launchWhereLargest(some, own, mine, from, to, n, stream);
      });
    }
  }
}

void copyRange(const Tensor& x, std::int64_t from, Tensor& y, std::int64_t to, std::int64_t count, int axis,
               Context& context) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.shape()[i];
  MUSTER_CUDA_CHECK(launchCopyRuns(x.data<float>() + from * inner, x.shape()[axis] * inner,
                                   y.data<float>() + to * inner, y.shape()[axis] * inner, outer,
                                   count * inner, stateOf(context).stream()));
}

}  // namespace muster::cuda
