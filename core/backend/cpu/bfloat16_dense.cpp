#include "muster/core/backend/cpu/bfloat16_dense.h"

namespace muster::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

/// A factor [rows, columns] after transposing.
struct Factor {
  std::int64_t rows, columns;
  bool transposed = false;

  Desc desc(Type type) const { return {{rows, columns}, type, transposed ? Tag::ba : Tag::ab}; }
};

/// result = a b + bias, if there is a bias.
std::unique_ptr<Pass> planProduct(const Factor& a, const Factor& b, bool withBias, State& state) {
  const Desc result{{a.rows, b.columns}, Type::f32, Tag::ab};
  const Desc bias = withBias ? Desc{{1, b.columns}, Type::f32, Tag::ab} : Desc();
  const auto desc =
      describe<dnnl::matmul>(state.engine, std::tie(), a.desc(Type::bf16), b.desc(Type::bf16), bias, result);
  auto pass = std::make_unique<Pass>(desc, dnnl::matmul(desc), state);
  pass->input(DNNL_ARG_SRC, a.desc(Type::f32), desc.src_desc());
  pass->input(DNNL_ARG_WEIGHTS, b.desc(Type::f32), desc.weights_desc());
  if (withBias) pass->input(DNNL_ARG_BIAS, bias, bias);
  pass->output(DNNL_ARG_DST, result, desc.dst_desc());
  return pass;
}

}  // namespace

BFloat16Dense::BFloat16Dense(const DenseShape& s, Context& context)
    : noBias_(Tensor::zeros({s.outFeatures})) {
  State& state = stateOf(context);
  planVendor("planning a dense layer", [&] {
    forward_ = planProduct({s.batch, s.inFeatures}, {s.inFeatures, s.outFeatures, true}, true, state);
    backwardData_ = planProduct({s.batch, s.outFeatures}, {s.outFeatures, s.inFeatures}, false, state);
    gradWeight_ = planProduct({s.outFeatures, s.batch, true}, {s.batch, s.inFeatures}, false, state);
  });
}

}  // namespace muster::cpu
