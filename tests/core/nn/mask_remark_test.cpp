#include "muster/core/nn/mask_remark.h"

#include "muster/core/data/in_memory.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/test.h"
#include "tests/support/batch_of.h"
#include "tests/support/log_lines.h"

using namespace muster;

namespace {

using Steps = std::vector<float>;

/// Two sequences of three steps of two features. @param steps  1: real; 0: padding, which holds `padding`;
/// empty: no mask.
InMemoryDataSetIterator sequences(const Steps& steps, float padding) {
  Tensor features = Tensor::empty({2, 3, 2});
  for (std::size_t i = 0; i < 12; ++i)
    features.span<float>()[i] = !steps.empty() && steps[i / 2] == 0 ? padding : static_cast<float>(i) - 6;
  InMemoryDataSetIterator data(features, test::integers({0, 1}), 2);
  if (!steps.empty()) data.setMasks({{"features", Tensor::of(steps, {2, 3})}});
  return data;
}

/// What `fit` warns of.
std::string warned(std::vector<Layer> layers, const Steps& steps, float padding, int workers = 0) {
  const test::LogLines lines;
  MultiLayerNetwork network({.layers = std::move(layers)});
  auto data = sequences(steps, padding);
  if (workers == 0) {
    network.fit(data, 2);
  } else {
    ParallelWrapper::Builder(network).workers(workers).pinThreads(false).build().fit(data, 2);
  }
  std::string said;
  for (const auto& line : lines.all())
    if (line.starts_with("warning: ") && line.find("mask") != line.npos) said += line.substr(9);
  return said;
}

/// A layer of one's own, with Flatten's PaddingUse.
struct OwnFlatten : Flatten {
  static constexpr std::string_view kType = "ownflatten";
};

const Output kOutput{.classes = 2};
const Steps kAtEnd{1, 1, 0, 1, 0, 0}, kAtBegin{0, 1, 1, 0, 0, 1}, kReal(6, 1.0f);

}  // namespace

TEST_CASE("fit warns once of a layer that ignores the mask, and names it") {
  const std::string end =
      " the batches' mask called features, so what padding holds changes its outputs: let padding be zeros "
      "there, or take layers that read the mask (LSTM, GRU, SelfAttention, LastStep, MeanOverTime)";
  const std::vector<Layer> flat{Dense{.units = 3, .name = "wide"}, kOutput};
  for (const int workers : {0, 1})
    CHECK(warned(flat, kAtEnd, 9, workers) == "fit: wide flattens sequences and ignores" + end);
  const auto names = [&](const Layer& layer) {
    const auto text = warned({LayerNorm{}, layer, MeanOverTime{}, kOutput}, kAtEnd, 9);
    return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
  };
  CHECK(names(Conv1d{.outChannels = 2, .kernel = 3, .padding = 1}) == "fit: conv1d1 (conv1d) ignores");
  CHECK(names(MaxPool1d{.kernel = 3, .stride = 1, .padding = 1}) == "fit: maxpool1d1 (maxpool1d) ignores");
  CHECK(names(AveragePool1d{.kernel = 3, .stride = 1, .padding = 1}) ==
        "fit: avgpool1d1 (avgpool1d) ignores");
  CHECK_CONTAINS(warned({Reshape{.shape = {6}}, kOutput}, kAtEnd, 9), "reshape1 (reshape) ignores");
  CHECK_CONTAINS(warned({Flatten{}, kOutput}, kAtEnd, 9), "flatten1 (flatten) ignores");
  CHECK_CONTAINS(warned({OwnFlatten{}, kOutput}, kAtEnd, 9), "ownflatten1 (ownflatten) ignores");
  CHECK_CONTAINS(warned({LayerNorm{}, Flatten{}, kOutput}, kAtEnd, 0), "flatten1 (flatten) ignores");
  const Conv1d causal{.outChannels = 2, .kernel = 2, .causal = true};
  CHECK_CONTAINS(warned({causal, MeanOverTime{}, kOutput}, kAtBegin, 9), "conv1d1 (conv1d) ignores");
}

TEST_CASE("fit does not warn if padding is zeros or reaches no layer that ignores the mask") {
  const std::vector<Layer> flat{Dense{.units = 3}, kOutput};
  CHECK(warned(flat, kAtEnd, 0) == "");
  CHECK(warned(flat, {}, 0) == "");
  CHECK(warned(flat, kReal, 9) == "");
  for (const Layer& reads :
       {Layer(LSTM{.units = 3}), Layer(GRU{.units = 3}), Layer(SelfAttention{.heads = 1})})
    CHECK(warned({reads, Conv1d{.outChannels = 2, .kernel = 3, .padding = 1}, Flatten{}, kOutput}, kAtEnd,
                 9) == "");
  for (const Layer& steps : {Layer(Dense{.units = 3, .perStep = true}), Layer(Conv1d{.outChannels = 2}),
                             Layer(Conv1d{.outChannels = 2, .kernel = 2, .causal = true})})
    CHECK(warned({steps, LayerNorm{}, MeanOverTime{}, kOutput}, kAtEnd, 9) == "");
}

TEST_CASE("fit warns once of a mask called features that fits no sequence") {
  const auto warnedOf = [](const Tensor& features, const Tensor& mask, std::vector<Layer> layers) {
    const test::LogLines lines;
    MultiLayerNetwork network({.layers = std::move(layers)});
    InMemoryDataSetIterator data(features, test::integers({0, 1}), 2);
    data.setMasks({{"features", mask}});
    network.fit(data, 2);
    std::string said;
    for (const auto& line : lines.all())
      if (line.find("no effect") != line.npos) said += line;
    return said;
  };
  const Tensor weights = Tensor::of({1, 0}, {2}), steps = Tensor::of(kReal, {2, 3});
  const auto remark = [](std::string_view shape) {
    return fmt::format(
        "warning: fit: the batches' mask called features, {}, has no effect, as it marks steps of sequences "
        "and "
        "the network has no such input; weights of examples have another name, such as labels",
        shape);
  };
  CHECK(warnedOf(Tensor::zeros({2, 6}), weights, {kOutput}) == remark("[2]"));
  CHECK(warnedOf(Tensor::zeros({2, 3}), steps, {kOutput}) == remark("[2, 3]"));
  CHECK(warnedOf(Tensor::zeros({2, 3, 2}), weights, {Flatten{}, kOutput}) == remark("[2]"));
  CHECK(warnedOf(Tensor::zeros({2, 3, 2}), steps, {Flatten{}, kOutput}) == "");
  CHECK(warnedOf(Tensor::zeros({2, 6}), steps, {Reshape{.shape = {3, 2}}, LastStep{}, kOutput}) == "");
  CHECK(warnedOf(Tensor::zeros({2, 3}, DType::Int64), steps,
                 {Embedding{.vocabulary = 2, .features = 2}, Flatten{}, kOutput}) == "");
}
