// Layers of any input, outputs with their losses, and vertices as Deeplearning4j's.
#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/written_layer.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;

WrittenLayers dense(const Dense& o, const Writing& to) {
  json::object there = to.trained("DenseLayer", o.activation, o.init);
  there["hasBias"] = o.bias;
  there["hasLayerNorm"] = false;
  there["nout"] = o.units;
  const Form at = o.perStep ? Form::Steps : Form::Rows;
  return to.layer(std::move(there), at, at, weightNames(o.bias));
}

/// The loss, whose weight there depends on the number of outputs.
json::object lossJson(const Output& o, const Writing& to) {
  const auto named = [](std::string_view type) {
    return classed("org.nd4j.linalg.lossfunctions.impl.", type);
  };
  const auto outputs = static_cast<double>(to.output()[-1]);
  json::object there;
  double weight = 1;
  if (o.loss == Loss::NegativeLogLikelihood) {
    there = named("LossMCXENT");
    there["softmaxClipEps"] = 1e-10;
  } else if (o.loss == Loss::BinaryCrossEntropy) {
    there = named("LossBinaryXENT");
    there["clipEps"] = 1e-5;
    weight = outputs;
  } else if (o.loss == Loss::MeanSquaredError || o.loss == Loss::MeanAbsoluteError) {
    const bool sum = o.lossWeight == outputs && outputs != 1, squares = o.loss == Loss::MeanSquaredError;
    there = named(squares ? (sum ? "LossL2" : "LossMSE") : (sum ? "LossL1" : "LossMAE"));
    if (sum) weight = outputs;
  } else {
    to.refuse(fmt::format("the loss {}", nameOf(o.loss)));
  }
  if (o.labelSmoothing != 0) to.refuse("labelSmoothing");
  if (o.lossWeight != weight)
    to.differ(fmt::format("the factor of its loss is {} here and {} there", o.lossWeight, weight));
  return there;
}

WrittenLayers output(const Output& o, const Writing& to) {
  json::object there =
      to.trained(o.perStep ? "RnnOutputLayer" : "OutputLayer", o.lossHead().activation, o.init);
  there["hasBias"] = o.bias;
  there["lossFn"] = lossJson(o, to);
  there["nout"] = to.output()[-1];
  if (o.perStep) there["rnnDataFormat"] = "NCW";
  if (o.perStep && o.lossMean != LossMean::Examples)
    to.differ("its loss is a mean over all steps here, and a sum over the steps of an example there");
  const Form at = o.perStep ? Form::Sequence : Form::Rows;
  return to.layer(std::move(there), at, at, weightNames(o.bias));
}

WrittenLayers batchNorm(const BatchNorm& o, const Writing& to) {
  if (to.form() != Form::Image && to.form() != Form::Rows) to.refuse("batch normalisation of sequences");
  json::object there = to.trained("BatchNormalization", Activation::Sigmoid, Init::xavier());
  there["beta"] = 0.0;
  there["cnn2DFormat"] = "NCHW";
  there["cudnnAllowFallback"] = true;
  there["decay"] = 1 - o.momentum;
  there["eps"] = o.epsilon;
  there["gamma"] = 1.0;
  there["lockGammaBeta"] = !o.affine;
  there["minibatch"] = true;
  there["nout"] = to.input()[0];
  there["useLogStd"] = false;  // logarithms would not come back to the same bits
  std::vector<std::string> variables{"gamma", "beta", "mean", "var"};
  if (!o.affine) variables.erase(variables.begin(), variables.begin() + 2);
  return to.activated(to.layer(std::move(there), to.form(), to.form(), std::move(variables)), o.activation);
}

WrittenLayers activation(const ActivationLayer& o, const Writing& to) {
  if (o.activation == Activation::Softmax && to.form() == Form::Image) to.refuse("softmax of images");
  json::object there = to.layer("ActivationLayer");
  there["activationFn"] = to.activation(o.activation);
  return to.layer(std::move(there), to.form(), to.form());
}

WrittenLayers dropout(const Dropout& o, const Writing& to) {
  json::object there = to.layer("DropoutLayer");
  json::object rate = classed("org.deeplearning4j.nn.conf.dropout.", "Dropout");
  rate["p"] = 1 - o.rate;
  there["idropout"] = std::move(rate);
  return to.layer(std::move(there), to.form(), to.form());
}

WrittenLayers flatten(const Flatten&, const Writing& to) {
  if (to.form() == Form::Sequence || to.form() == Form::Steps) to.refuse("a sequence as one row");
  return {};
}

WrittenLayers reshape(const Reshape& o, const Writing& to) {
  if (to.form() != Form::Rows || o.shape.rank() != 3)
    to.refuse("a change of shape other than from rows to images");
  return {};
}

WrittenLayers combine(const Combine& o, const Writing& to) {
  const std::pair<Combination, std::string_view> names[] = {{Combination::Add, "Add"},
                                                            {Combination::Subtract, "Subtract"},
                                                            {Combination::Product, "Product"},
                                                            {Combination::Average, "Average"},
                                                            {Combination::Max, "Max"}};
  json::object there = classed(kGraph, "ElementWiseVertex");
  for (const auto& [combination, op] : names)
    if (combination == o.combination) there["op"] = op;
  return to.activated(to.vertex(std::move(there), to.form()), o.activation);
}

void requireFeatures(std::int64_t axis, const Writing& to) {
  if (axis != -1 && axis != (to.form() == Form::Image ? 0 : to.input().rank() - 1))
    to.refuse("another axis than the features");
}

WrittenLayers merge(const Merge& o, const Writing& to) {
  requireFeatures(o.axis, to);
  json::object there = classed(kGraph, "MergeVertex");
  there["mergeAxis"] = 1;
  return to.vertex(std::move(there), to.form());
}

WrittenLayers subset(const Subset& o, const Writing& to) {
  requireFeatures(o.axis, to);
  json::object there = classed(kGraph, "SubsetVertex");
  there["from"] = o.from;
  there["to"] = o.to - 1;
  return to.vertex(std::move(there), to.form());
}

WrittenLayers scale(const Scale& o, const Writing& to) {
  json::object there = classed(kGraph, "ScaleVertex");
  there["scaleFactor"] = o.factor;
  return to.vertex(std::move(there), to.form());
}

}  // namespace

std::vector<WriteRule> otherWriteRules() {
  return {writeRule<Dense, &dense>(),         writeRule<Output, &output>(),
          writeRule<BatchNorm, &batchNorm>(), writeRule<ActivationLayer, &activation>(),
          writeRule<Dropout, &dropout>(),     writeRule<Flatten, &flatten>(),
          writeRule<Reshape, &reshape>(),     writeRule<Combine, &combine>(),
          writeRule<Merge, &merge>(),         writeRule<Subset, &subset>(),
          writeRule<Scale, &scale>()};
}

}  // namespace muster::dl4j::detail
