#include "muster/core/ops/threshold.h"

#include <algorithm>
#include <bit>

#include "muster/core/backend/cuda/kernels/threshold.h"

#include "muster/core/backend/cuda/kernels/elementwise.h"

#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"

namespace muster::cuda {
namespace {

/// Copies host memory, which must not change before the copy is done.
void upload(const void* from, void* to, std::size_t bytes, State& state) {
  MUSTER_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, state.stream()));
}

std::size_t mapBytes(const ThresholdMessage& message) {
  return message.words.size() * sizeof(std::uint32_t);
}

/// The indices of a bitmap's elements, in order.
void listFromMap(const std::vector<std::uint32_t>& map, std::vector<std::uint32_t>& list,
                 std::int64_t nonZero) {
  std::int64_t count = 0;
  for (std::size_t word = 0; word < map.size(); ++word)
    for (std::uint32_t left = map[word]; left != 0; left &= left - 1) {
      // An even bit means positive, an odd bit negative.
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(left));
      const auto element = static_cast<std::uint32_t>(word) * 16 + bit / 2;
      if (count < nonZero) list[static_cast<std::size_t>(count++)] = element * 2 + bit % 2;
    }
}

}  // namespace

ResidualCounts accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual,
                                Context& context) {
  State& state = stateOf(context);
  auto* const counts = reinterpret_cast<unsigned long long*>(state.deviceResult());
  constexpr std::size_t kBytes = 2 * sizeof(unsigned long long);
  MUSTER_CUDA_CHECK(cudaMemsetAsync(counts, 0, kBytes, state.stream()));
  MUSTER_CUDA_CHECK(launchAccumulateUpdate(values.data<float>(), base.data<float>(), residual.data<float>(),
                                           threshold, values.elements(), counts, state.stream()));
  const auto* const read = reinterpret_cast<const unsigned long long*>(state.readResult(kBytes));
  return {static_cast<std::int64_t>(read[0]), static_cast<std::int64_t>(read[1])};
}

void encodeThreshold(Tensor& residual, float threshold, ThresholdMessage& message, Context& context) {
  State& state = stateOf(context);
  auto* const words = reinterpret_cast<std::uint32_t*>(state.message(mapBytes(message)));
  MUSTER_CUDA_CHECK(
      launchEncodeMap(residual.data<float>(), threshold, message.elements, words, state.stream()));
  // A list is short, so the host makes it from the bitmap, which has a sixteenth of the vector's size.
  std::vector<std::uint32_t> map;
  if (!message.isMap) map.resize(message.words.size());
  auto& target = message.isMap ? message.words : map;
  MUSTER_CUDA_CHECK(
      cudaMemcpyAsync(target.data(), words, mapBytes(message), cudaMemcpyDeviceToHost, state.stream()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(state.stream()));
  if (!message.isMap) listFromMap(map, message.words, message.nonZero);
}

void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out, Context& context) {
  State& state = stateOf(context);
  const auto bytes = static_cast<std::size_t>(message.wordCount()) * sizeof(std::uint32_t);
  if (bytes == 0 || begin == end) return;
  auto* const words = reinterpret_cast<std::uint32_t*>(state.message(mapBytes(message)));
  upload(message.words.data(), words, bytes, state);
  const float step = scale * message.threshold;
  MUSTER_CUDA_CHECK(message.isMap ? launchAddMap(words, step, begin, end, out.data<float>(), state.stream())
                                  : launchAddList(words, message.nonZero, step, begin, end, out.data<float>(),
                                                  state.stream()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(state.stream()));  // the message may change once this returns
}

void clampElements(Tensor& values, float limit, Context& context) {
  MUSTER_CUDA_CHECK(launchClamp(values.data<float>(), limit, values.elements(), stateOf(context).stream()));
}

}  // namespace muster::cuda
