// The dense layers of the MNIST network, of wider ones and of a small one, pass by pass on one thread, each
// beside oneDNN's matrix product of the same size alone: without the bias, its gradient, and our checks.
#include "muster/core/ops/dense.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.h>

#include <string>
#include <utility>

#include "tests/bench/tensors.h"

using namespace muster;
using bench::differences;
using bench::randomTensor;

namespace {

const DenseShape kShapes[] = {{.batch = 128, .inFeatures = 800, .outFeatures = 500},
                              {.batch = 128, .inFeatures = 500, .outFeatures = 10},
                              {.batch = 128, .inFeatures = 512, .outFeatures = 512},
                              {.batch = 2048, .inFeatures = 256, .outFeatures = 1024},
                              {.batch = 32, .inFeatures = 64, .outFeatures = 64},
                              {.batch = 32, .inFeatures = 64, .outFeatures = 10}};

enum class Pass { Forward, BackwardData, BackwardWeights };
enum class Whose { Ours, OneDnns };

struct Tensors {
  explicit Tensors(const DenseShape& s)
      : x(randomTensor({s.batch, s.inFeatures}, "x")),
        weight(randomTensor({s.outFeatures, s.inFeatures}, "weight")),
        bias(randomTensor({s.outFeatures}, "bias")),
        gradY(randomTensor({s.batch, s.outFeatures}, "gradY")),
        y(Tensor::zeros({s.batch, s.outFeatures})),
        gradX(Tensor::zeros({s.batch, s.inFeatures})),
        gradWeight(Tensor::zeros({s.outFeatures, s.inFeatures})),
        gradBias(Tensor::zeros({s.outFeatures})) {}
  Tensor x, weight, bias, gradY, y, gradX, gradWeight, gradBias;

  const Tensor& resultOf(Pass pass) const {
    return pass == Pass::Forward ? y : pass == Pass::BackwardData ? gradX : gradWeight;
  }
};

void layer(DensePlan& plan, Pass pass, Tensors& t, bool bias) {
  Tensor none;
  if (pass == Pass::Forward) plan.forward(t.x, t.weight, bias ? t.bias : none, t.y);
  if (pass == Pass::BackwardData) plan.backwardData(t.gradY, t.weight, t.gradX);
  if (pass == Pass::BackwardWeights)
    plan.backwardWeights(t.x, t.gradY, t.gradWeight, bias ? t.gradBias : none);
}

void product(const DenseShape& s, Pass pass, Tensors& t) {
  const float *x = t.x.data<float>(), *weight = t.weight.data<float>(), *gradY = t.gradY.data<float>();
  if (pass == Pass::Forward)
    dnnl_sgemm('N', 'T', s.batch, s.outFeatures, s.inFeatures, 1.0f, x, s.inFeatures, weight, s.inFeatures,
               0.0f, t.y.data<float>(), s.outFeatures);
  if (pass == Pass::BackwardData)
    dnnl_sgemm('N', 'N', s.batch, s.inFeatures, s.outFeatures, 1.0f, gradY, s.outFeatures, weight,
               s.inFeatures, 0.0f, t.gradX.data<float>(), s.inFeatures);
  if (pass == Pass::BackwardWeights)
    dnnl_sgemm('T', 'N', s.outFeatures, s.inFeatures, s.batch, 1.0f, gradY, s.outFeatures, x, s.inFeatures,
               0.0f, t.gradWeight.data<float>(), s.inFeatures);
}

void dense(benchmark::State& state, const DenseShape& shape, Pass pass, Whose whose) {
  Context context;
  const ContextScope scope(context);
  const auto plan = planDense(shape, context);
  Tensors t(shape), theirs(shape);
  layer(*plan, pass, t, false);
  product(shape, pass, theirs);
  if (differences(t.resultOf(pass), theirs.resultOf(pass), 1e-3f) > 0)
    return state.SkipWithError("the results differ");
  for (auto step : state) {
    if (whose == Whose::Ours)
      layer(*plan, pass, t, true);
    else
      product(shape, pass, theirs);
    benchmark::ClobberMemory();
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * static_cast<double>(shape.batch * shape.inFeatures * shape.outFeatures),
                         benchmark::Counter::kIsIterationInvariantRate);
}

const bool kRegistered = [] {
  const std::pair<const char*, Pass> passes[] = {{"/forward/", Pass::Forward},
                                                 {"/backward data/", Pass::BackwardData},
                                                 {"/backward weights/", Pass::BackwardWeights}};
  for (const DenseShape& shape : kShapes)
    for (const auto& [passName, pass] : passes)
      for (const auto& [name, whose] :
           {std::pair("layer", Whose::Ours), std::pair("dnnl_sgemm alone", Whose::OneDnns)})
        benchmark::RegisterBenchmark(fmt::format("dense {}x{} to {}{}{}", shape.batch, shape.inFeatures,
                                                 shape.outFeatures, passName, name)
                                         .c_str(),
                                     dense, shape, pass, whose);
  return true;
}();

}  // namespace
