#include "muster/core/ops/embedding.h"

#include "muster/core/backend/cuda/kernels/embedding.h"
#include "muster/core/backend/cuda/kernels/sequence.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"

namespace muster::cuda {
namespace {

static_assert(kSortBytes <= kWorkspaceBytes);

EmbeddingCall callFor(const Tensor& indices, const Tensor& table, const Tensor& mask) {
  return {indices.elements(), table.shape()[0], table.shape()[1], indices.data<std::int64_t>(),
          mask.defined() ? mask.data<float>() : nullptr};
}

}  // namespace

void embeddingForward(const Tensor& indices, const Tensor& table, const Tensor& mask, Tensor& y,
                      Context& context) {
  MUSTER_CUDA_CHECK(launchEmbedding(callFor(indices, table, mask), table.data<float>(), y.data<float>(),
                                    stateOf(context).stream()));
}

void embeddingBackward(const Tensor& indices, const Tensor& gradY, const Tensor& mask, Tensor& gradTable,
                       Context& context) {
  const State& state = stateOf(context);
  const EmbeddingCall call = callFor(indices, gradTable, mask);
  require(call.vocabulary <= kMostVocabulary, "embedding: a vocabulary of {} is larger than the {} of a GPU",
          call.vocabulary, kMostVocabulary);
  MUSTER_CUDA_CHECK(launchEmbeddingBackward(call, gradY.data<float>(), gradTable.data<float>(),
                                            state.workspace(), state.stream()));
}

}  // namespace muster::cuda
