// Layers of sequences as Deeplearning4j's.
#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/written_layer.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;

WrittenLayers lstm(const LSTM& o, const Writing& to) {
  json::object there = to.trained("LSTM", Activation::Tanh, o.init);
  there["forgetGateBiasInit"] = o.forgetBias;
  there["gateActivationFn"] = to.activation(Activation::Sigmoid);
  there["helperAllowFallback"] = true;
  there["nout"] = o.units;
  there["rnnDataFormat"] = "NCW";
  there["weightInitFnRecurrent"] = nullptr;
  const std::vector<std::string> variables{"W", "RW", "b"};
  if (o.returnSequences) return to.layer(std::move(there), Form::Sequence, Form::Sequence, variables);
  json::object last = classed(kLayers, "recurrent.LastTimeStep");
  last["layerName"] = to.name();
  last["underlying"] = std::move(there);
  return to.layer(std::move(last), Form::Sequence, Form::Rows, variables);
}

WrittenLayers embedding(const Embedding& o, const Writing& to) {
  json::object there = to.trained("EmbeddingSequenceLayer", Activation::Identity, o.init);
  there["hasBias"] = false;
  there["inferInputLength"] = false;
  there["inputLength"] = to.input()[0];
  there["nin"] = o.vocabulary;
  there["nout"] = o.features;
  there["outputFormat"] = "NCW";
  return to.layer(std::move(there), Form::Rows, Form::Sequence, {"W"});
}

WrittenLayers convolution(const Conv1d& o, const Writing& to) {
  if (o.groups != 1) to.refuse("groups");
  json::object there = to.trained("Convolution1DLayer", o.activation, o.init);
  there["convolutionMode"] = o.causal ? "Causal" : "Truncate";
  there["dilation"] = json::array{o.dilation, 1};
  there["hasBias"] = o.bias;
  there["kernelSize"] = json::array{o.kernel, 1};
  there["nout"] = o.outChannels;
  there["padding"] = json::array{o.padding, 0};
  there["rnnDataFormat"] = "NCW";
  there["stride"] = json::array{o.stride, 1};
  return to.layer(std::move(there), Form::Sequence, Form::Sequence, weightNames(o.bias));
}

template <typename Pool>
WrittenLayers sequencePooling(const Pool& o, std::string_view kind, const Writing& to) {
  json::object there = to.layer("Subsampling1DLayer");
  there["avgPoolIncludePadInDivisor"] = kind == "AVG";
  there["convolutionMode"] = "Truncate";
  there["dilation"] = json::array{1, 1};
  there["kernelSize"] = json::array{o.kernel, 1};
  there["padding"] = json::array{o.padding, 0};
  there["poolingType"] = kind;
  there["stride"] = json::array{o.stride == 0 ? o.kernel : o.stride, 1};
  return to.layer(std::move(there), Form::Sequence, Form::Sequence);
}

WrittenLayers maximum(const MaxPool1d& o, const Writing& to) {
  return sequencePooling(o, "MAX", to);
}

WrittenLayers average(const AveragePool1d& o, const Writing& to) {
  return sequencePooling(o, "AVG", to);
}

WrittenLayers meanOverTime(const MeanOverTime&, const Writing& to) {
  json::object there = to.layer("GlobalPoolingLayer");
  there["collapseDimensions"] = true;
  there["pnorm"] = 2;
  there["poolingDimensions"] = nullptr;
  there["poolingType"] = "AVG";
  return to.layer(std::move(there), Form::Sequence, Form::Rows);
}

WrittenLayers lastStep(const LastStep&, const Writing& to) {
  json::object there = classed(kGraph, "rnn.LastTimeStepVertex");
  there["maskArrayInputName"] = nullptr;
  return to.vertex(std::move(there), Form::Rows);
}

}  // namespace

std::vector<WriteRule> sequenceWriteRules() {
  return {writeRule<LSTM, &lstm>(),
          writeRule<Embedding, &embedding>(),
          writeRule<Conv1d, &convolution>(),
          writeRule<MaxPool1d, &maximum>(),
          writeRule<AveragePool1d, &average>(),
          writeRule<MeanOverTime, &meanOverTime>(),
          writeRule<LastStep, &lastStep>()};
}

}  // namespace muster::dl4j::detail
