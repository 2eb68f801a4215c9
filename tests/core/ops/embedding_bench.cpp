// Embeddings of 32 texts of 64 indices: 65 characters to 64 features, and 10,000 words to 256, on one thread.
#include "muster/core/ops/embedding.h"

#include <benchmark/benchmark.h>

#include <algorithm>

#include "tests/bench/tensors.h"

using namespace muster;
using bench::randomTensor;

namespace {

constexpr std::int64_t kBatch = 32, kSteps = 64;

void embedding(benchmark::State& state, std::int64_t vocabulary, std::int64_t features, bool back) {
  Context context;
  const ContextScope scope(context);
  Tensor indices = Tensor::empty({kBatch, kSteps}, DType::Int64);
  const RandomStream stream(1, "indices");
  for (std::uint64_t i = 0; auto& index : indices.span<std::int64_t>())
    index = static_cast<std::int64_t>(stream.uniform(i++) * static_cast<double>(vocabulary));
  const Tensor table = randomTensor({vocabulary, features}, "table"),
               gradY = randomTensor({kBatch, kSteps, features}, "gradY");
  Tensor y = Tensor::zeros(gradY.shape()), gradTable = Tensor::zeros(table.shape());
  embeddingForward(indices, table, Tensor(), y, context);
  for (std::int64_t i = 0; i < indices.elements(); ++i) {
    const float* const row = table.data<float>() + indices.data<std::int64_t>()[i] * features;
    if (!std::equal(row, row + features, y.data<float>() + i * features))
      return state.SkipWithError("the result is wrong");
  }
  for (auto step : state) {
    if (back)
      embeddingBackward(indices, gradY, Tensor(), gradTable, context);
    else
      embeddingForward(indices, table, Tensor(), y, context);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(gradY.bytes() + (back ? gradTable : y).bytes()));
}

BENCHMARK_CAPTURE(embedding, characters forward, 65, 64, false);
BENCHMARK_CAPTURE(embedding, characters backward, 65, 64, true);
BENCHMARK_CAPTURE(embedding, words forward, 10'000, 256, false);
BENCHMARK_CAPTURE(embedding, words backward, 10'000, 256, true);

}  // namespace
