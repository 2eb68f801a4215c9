#include "muster/core/ops/attention.h"
#include "muster/core/ops/batch_norm.h"
#include "muster/core/ops/conv_transpose2d.h"
#include "muster/core/ops/elementwise.h"
#include "muster/core/ops/embedding.h"
#include "muster/core/ops/layer_norm.h"
#include "muster/core/ops/pad2d.h"
#include "muster/core/ops/recurrent.h"
#include "muster/core/ops/reorder.h"
#include "muster/core/ops/sequence.h"
#include "muster/core/ops/upsample2d.h"
#include "tests/core/ops/test.h"
#include "tests/support/shapes2d.h"

namespace muster {
namespace {

/// Random inputs on a device, and outputs that are NaN until they are written.
class Tensors {
 public:
  explicit Tensors(Context& context) : context_(context), random_(7) {}

  Tensor in(const Shape& shape, Layout layout = Layout::RowMajor) {
    return test::toTensor(test::randomArray(shape, random_), layout, context_.device());
  }
  Tensor& out(const Shape& shape, Layout layout = Layout::RowMajor) {
    outputs_.push_back(std::make_unique<Tensor>(test::nanTensor(shape, layout, context_.device())));
    return *outputs_.back();
  }
  Tensor indices(const Shape& shape) {
    Tensor tensor = Tensor::empty(shape, DType::Int64);
    for (std::int64_t& index : tensor.span<std::int64_t>()) index = static_cast<std::int64_t>(random_() % 5);
    return copyTo(tensor, context_.device());
  }
  /// 1 where a step is real, 0 where it is padding.
  Tensor mask(const Shape& shape) {
    Tensor tensor = Tensor::empty(shape);
    for (float& value : tensor.span<float>()) value = static_cast<float>(random_() % 4 != 0);
    return copyTo(tensor, context_.device());
  }

  /// The outputs' current values.
  std::vector<Tensor> kept() const {
    context_.synchronize();
    std::vector<Tensor> copies;
    for (const auto& output : outputs_) copies.push_back(copyTo(*output, Device::cpu()));
    return copies;
  }
  /// Fills the outputs with NaN again.
  void spoil() {
    for (const auto& output : outputs_)
      copy(test::nanTensor(output->shape(), output->layout(), context_.device()), *output);
  }

 private:
  Context& context_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Tensor>> outputs_;  // at fixed addresses
};

/// Runs `work` directly and then twice as a graph: the same bits each time.
void checkGraph(std::string_view name, Context& context, Tensors& tensors,
                const std::function<void()>& work) {
  CAPTURE(name);
  work();
  const auto expected = tensors.kept();
  tensors.spoil();
  Graph graph(context, work);
  for (int launch = 0; launch < 2; ++launch) {
    CAPTURE(launch);
    graph.launch();
    const auto got = tensors.kept();
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(test::sameBits(got[i], expected[i]));
    }
    tensors.spoil();
  }
}

TEST_IN_MATH_MODES(
    "operations on images can be captured in a graph: padding, up-sampling, convolutions, normalisation") {
  Context context(Where::device(), Where::options());
  const ContextScope scope(context);
  const Shape small{2, 8, 4, 4}, large{2, 8, 8, 8};
  Tensor none;
  {
    Tensors t(context);
    const Tensor x = t.in(small), gradY = t.in(large);
    Tensor &padded = t.out({2, 8, 5, 7}), &y = t.out(large), &gradX = t.out(small), &cut = t.out(small);
    checkGraph("pad2d, upsample2d", context, t, [&] {
      pad2d(x, {1, 0, 2, 1}, padded, context);
      pad2dBackward(padded, {1, 0, 2, 1}, cut, context);
      upsample2d(UpsampleMode::Bilinear, x, y, context);
      upsample2dBackward(UpsampleMode::Nearest, gradY, gradX, context);
    });
  }
  {
    Tensors t(context);
    const auto shape = test::convTranspose(small, 16, {.kernel = 4, .stride = 2, .padding = 1});
    const auto plan = planConvTranspose2d(shape, context);
    const Tensor x = t.in(small, plan->inputLayout()), gradY = t.in(shape.output(), plan->outputLayout());
    const Tensor weight = t.in(shape.weight()), bias = t.in({16});
    Tensor &y = t.out(shape.output(), plan->outputLayout()), &gradX = t.out(small, plan->inputLayout());
    Tensor &gradWeight = t.out(shape.weight()), &gradBias = t.out({16});
    checkGraph("conv_transpose2d", context, t, [&] {
      plan->forward(x, weight, bias, y);
      plan->backwardData(gradY, weight, gradX);
      plan->backwardWeights(x, gradY, gradWeight, gradBias);
    });
  }
  for (const Layout layout : Where::layouts()) {
    Tensors t(context);
    const auto plan = planBatchNorm({.input = small, .activation = Activation::ReLU}, layout, context);
    const Tensor x = t.in(small, layout), gradY = t.in(small, layout), gamma = t.in({8}), beta = t.in({8});
    Tensor sums = Tensor::zeros({2, 8}, DType::Float64, context.device());
    Tensor &y = t.out(small, layout), &gradX = t.out(small, layout), &gradGamma = t.out({8}),
           &gradBeta = t.out({8});
    checkGraph("batch_norm", context, t, [&] {
      plan->sums(x, sums);
      plan->normalise(x, sums, 32, gamma, beta, y);
      plan->gradientSums(x, gradY, sums, gradGamma, gradBeta);
      plan->gradient(x, gradY, sums, 32, gradX);
    });
  }
}

TEST_IN_MATH_MODES(
    "operations on sequences can be captured in a graph: recurrent layers, attention and others") {
  Context context(Where::device(), Where::options());
  const ContextScope scope(context);
  for (const auto cell : {RecurrentCell::LSTM, RecurrentCell::GRU})
    for (const bool sequences : {true, false}) {
      Tensors t(context);
      const RecurrentShape shape{cell, 3, 5, 4, 7, sequences};
      const auto plan = planRecurrent(shape, true, context);
      const std::int64_t rows = shape.gates() * shape.units;
      const bool gru = cell == RecurrentCell::GRU;
      const Tensor x = t.in(shape.input()), gradY = t.in(shape.output()), mask = t.mask({3, 5});
      const RecurrentWeights weights{t.in({rows, 4}), t.in({rows, 7}), t.in({rows}),
                                     gru ? t.in({7}) : Tensor()};
      RecurrentWeights gradients{t.out({rows, 4}), t.out({rows, 7}), t.out({rows}),
                                 gru ? t.out({7}) : Tensor()};
      Tensor &y = t.out(shape.output()), &gradX = t.out(shape.input());
      checkGraph("recurrent", context, t, [&] {
        plan->forward(x, weights, mask, y);
        plan->backward(weights, mask, gradY, gradients, gradX);
      });
    }
  {
    Tensors t(context);
    const AttentionShape shape{.batch = 2, .steps = 5, .features = 6, .heads = 2, .causal = true};
    const auto plan = planAttention(shape, true, context);
    const Tensor x = t.in(shape.input()), gradY = t.in(shape.output()), mask = t.mask({2, 5});
    Tensor &y = t.out(shape.output()), &gradX = t.out(shape.input());
    checkGraph("attention", context, t, [&] {
      plan->forward(x, mask, y);
      plan->backward(x, mask, gradY, gradX);
    });
  }
  {
    Tensors t(context);
    const auto plan = planLayerNorm({.rows = 6, .features = 5}, context);
    const Tensor x = t.in({6, 5}), gradY = t.in({6, 5}), gamma = t.in({5}), beta = t.in({5});
    Tensor &y = t.out({6, 5}), &gradX = t.out({6, 5}), &gradGamma = t.out({5}), &gradBeta = t.out({5});
    checkGraph("layer_norm", context, t, [&] {
      plan->forward(x, gamma, beta, y);
      plan->backward(x, gamma, gradY, gradX, gradGamma, gradBeta);
    });
  }
}

TEST_ON_DEVICES("embeddings, operations over time and combinations can be captured in a graph") {
  Context context(Where::device());
  const ContextScope scope(context);
  // The CPU reads the indices when `work` is called, so they are written before.
  Tensors t(context);
  const Shape sequences{3, 4, 6}, rows{3, 6};
  const Tensor indices = t.indices({3, 4}), mask = t.mask({3, 4}), table = t.in({5, 6});
  const Tensor x[] = {t.in(sequences), t.in(sequences), t.in(sequences)};
  const Tensor gradRows = t.in(rows);
  Tensor loaded = Tensor::zeros({3, 4}, DType::Int64, context.device());
  Tensor &embedded = t.out(sequences), &gradTable = t.out({5, 6}), &masked = t.out(sequences),
         &last = t.out(rows), &gradLast = t.out(sequences), &mean = t.out(rows), &gradMean = t.out(sequences),
         &most = t.out(sequences), &gradMost = t.out(sequences), &joined = t.out({3, 8, 6});
  checkGraph("the rest", context, t, [&] {
    loadIndices(indices, loaded, context);
    embeddingForward(loaded, table, mask, embedded, context);
    embeddingBackward(loaded, x[0], mask, gradTable, context);
    maskSteps(x[0], mask, masked, context);
    lastStepForward(x[0], mask, last, context);
    lastStepBackward(gradRows, mask, gradLast, context);
    meanOverTimeForward(x[0], mask, mean, context);
    meanOverTimeBackward(gradRows, mask, gradMean, context);
    combine(Combination::Max, x, most, context);
    combineBackward(Combination::Product, x, 1, most, gradMost, context);
    addTo(most, gradMost, context);
    scale(0.5, gradMost, gradMost, context);
    copyRange(x[0], 0, joined, 0, 4, 1, context);
    copyRange(x[1], 0, joined, 4, 4, 1, context);
  });
}

}  // namespace
}  // namespace muster
