// The maximum over 2x2 of the MNIST network's first pooling, [128, 20, 24, 24], in each layout, on one
// thread.
#include "muster/core/ops/pool2d.h"

#include <benchmark/benchmark.h>

#include <string>

#include "tests/bench/tensors.h"

using namespace muster;
using bench::differences;
using bench::inLayout;
using bench::randomTensor;

namespace {

const Pool2dShape kShape{.batch = 128, .channels = 20, .height = 24, .width = 24};

/// Row-major results by a plain loop.
struct Reference {
  Reference(const Tensor& x, const Tensor& gradY)
      : y(Tensor::zeros(kShape.output())), gradX(Tensor::zeros(kShape.input())) {
    const std::int64_t width = kShape.width, outWidth = width / 2;
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const std::int64_t corner = i / outWidth * 2 * width + i % outWidth * 2;
      std::int64_t best = corner;
      for (const std::int64_t other : {corner + 1, corner + width, corner + width + 1})
        if (x.data<float>()[other] > x.data<float>()[best]) best = other;
      y.data<float>()[i] = x.data<float>()[best];
      gradX.data<float>()[best] = gradY.data<float>()[i];
    }
  }
  Tensor y, gradX;
};

void maximum(benchmark::State& state, Layout layout, bool back) {
  Context context;
  const ContextScope scope(context);
  const auto plan = planPool2d(kShape, layout, context);
  const Tensor rowsOfX = randomTensor(kShape.input(), "x"),
               rowsOfGradY = randomTensor(kShape.output(), "gradY");
  const Tensor x = inLayout(rowsOfX, layout, context), gradY = inLayout(rowsOfGradY, layout, context);
  Tensor y = Tensor::zeros(kShape.output(), DType::Float32, Device::cpu(), layout),
         gradX = Tensor::zeros(kShape.input(), DType::Float32, Device::cpu(), layout);
  plan->forward(x, y);
  plan->backward(gradY, gradX);
  const Reference expected(rowsOfX, rowsOfGradY);
  if (differences(expected.y, inLayout(y, Layout::RowMajor, context), 1e-9f) > 0 ||
      differences(expected.gradX, inLayout(gradX, Layout::RowMajor, context), 1e-9f) > 0)
    return state.SkipWithError("the result is wrong");
  for (auto step : state) {
    if (back)
      plan->backward(gradY, gradX);
    else
      plan->forward(x, y);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(x.bytes() + y.bytes()));
}

const bool kRegistered = [] {
  for (const auto layout :
       {Layout::SampleBlocks, Layout::ChannelBlocks, Layout::ChannelsLast, Layout::RowMajor})
    for (const bool back : {false, true})
      benchmark::RegisterBenchmark(("max_pool " + kShape.input().toString() +
                                    (back ? "/backward/" : "/forward/") + std::string(nameOf(layout)))
                                       .c_str(),
                                   maximum, layout, back);
  return true;
}();

}  // namespace
