#include "muster/core/io/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/file_shortage.h"
#include "muster/core/io/safetensors.h"

namespace muster {
namespace {

constexpr std::string_view kVariance = "variance";
using Names = std::pair<std::string_view, std::string_view>;  // here, and in PyTorch
constexpr std::array<Names, 9> kTensors{{{"gamma", "weight"},
                                         {"beta", "bias"},
                                         {"mean", "running_mean"},
                                         {kVariance, "running_var"},
                                         {"recurrentWeight", "weight_hh_l0"},
                                         {"inputWeight", "in_proj_weight"},
                                         {"inputBias", "in_proj_bias"},
                                         {"outputWeight", "out_proj.weight"},
                                         {"outputBias", "out_proj.bias"}}};
/// Other names in layers with a recurrent weight.
constexpr std::array<Names, 3> kRecurrent{
    {{"weight", "weight_ih_l0"}, {"bias", "bias_ih_l0"}, {"recurrentBias", "bias_hh_l0"}}};
constexpr std::string_view kBatchesTracked = "num_batches_tracked";

/// A tensor of a network.
struct Weight {
  std::string layer, name;  ///< in the network
  std::string there;        ///< full name in the file
  Tensor values;            ///< the network's tensor, on its device
};

std::string_view translated(std::string_view name, bool recurrent) {
  if (recurrent)
    if (const auto* found = std::ranges::find(kRecurrent, name, &Names::first); found != kRecurrent.end())
      return found->second;
  const auto* found = std::ranges::find(kTensors, name, &Names::first);
  return found == kTensors.end() ? name : found->second;
}

/// The layers with a recurrent weight, LSTM and GRU.
std::set<std::string, std::less<>> recurrentLayers(Network& network) {
  std::set<std::string, std::less<>> layers;
  constexpr std::string_view kRecurrentWeight = ".recurrentWeight";
  for (const auto& segment : network.block(BlockKind::Parameters).segments->segments)
    if (segment.name.ends_with(kRecurrentWeight))
      layers.insert(segment.name.substr(0, segment.name.size() - kRecurrentWeight.size()));
  return layers;
}

void requireLayers(const Network& network, const WeightOptions& options) {
  std::set<std::string> layers;
  for (const auto& [name, shape] : network.outputShapes()) layers.insert(name);
  const auto check = [&](const std::string& layer, std::string_view option) {
    require(layers.contains(layer),
            "weights: {} names the layer {}, which this network does not have; it has {}", option, layer,
            fmt::join(layers, ", "));
  };
  for (const auto& [here, there] : options.layers) check(here, "layers");
  for (const auto& layer : options.keep) check(layer, "keep");
}

std::vector<Weight> weightsOf(Network& network, const WeightOptions& options) {
  require(network.initialized(), "weights: the network is not initialised; call init()");
  require(options.batch >= 0, "weights: batch cannot be negative, got {}", options.batch);
  requireLayers(network, options);
  const auto recurrent = recurrentLayers(network);
  std::vector<Weight> weights;
  for (const auto& block : network.blocks()) {
    if (block.kind != BlockKind::Parameters && block.kind != BlockKind::Statistics) continue;
    for (const auto& segment : block.segments->segments) {
      const auto dot = segment.name.rfind('.');
      const auto layer = segment.name.substr(0, dot), name = segment.name.substr(dot + 1);
      const auto pair = std::ranges::find(options.layers, layer, &LayerNames::value_type::first);
      const auto& there = pair == options.layers.end() ? layer : pair->second;
      weights.push_back({layer, name,
                         fmt::format("{}.{}", there, translated(name, recurrent.contains(layer))),
                         block.segment(segment)});
    }
  }
  return weights;
}

/// The factor that turns the layer's unbiased running variance into the biased one.
double biasOf(const Network& network, const Weight& weight, std::int64_t batch) {
  if (batch == 0 || weight.name != kVariance) return 1;
  for (const auto& [layer, shape] : network.outputShapes())
    if (layer == weight.layer) {
      const auto n = static_cast<double>(batch * shape.elements() / shape[0]);
      require(n > 1, "weights: {}: a batch of one value has no unbiased variance", weight.layer);
      return (n - 1) / n;
    }
  return 1;
}

Tensor multiplied(const Tensor& values, double factor) {
  Tensor product = cloneTensor(values);
  if (factor != 1)
    for (float& value : product.span<float>()) value = static_cast<float>(value * factor);
  return product;
}

bool isIgnored(const std::string& name, const WeightOptions& options) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  return ends(kBatchesTracked) || std::ranges::any_of(options.ignore, ends);
}

bool isKept(const Weight& weight, const WeightOptions& options) {
  return std::ranges::find(options.keep, weight.layer) != options.keep.end();
}

// Note [Biases of recurrent layers]
// PyTorch has two biases [gates * units], of the input and of the state, and adds them. Here an LSTM has
// their sum, and a GRU the sum for its gates r and z; of its gate n the state's bias is apart:
// `recurrentBias` [units], the last third.

constexpr std::string_view kInputBias = "bias_ih_l0", kStateBias = "bias_hh_l0";

/// Calls with the prefix of each recurrent layer's tensors in the file, and whether it is a GRU.
template <typename Call>
void forEachRecurrent(const std::vector<Weight>& weights, Call call) {
  for (const auto& weight : weights)
    if (weight.there.ends_with(kInputBias)) {
      const auto prefix = weight.there.substr(0, weight.there.size() - kInputBias.size());
      call(prefix, std::ranges::find(weights, fmt::format("{}{}", prefix, kStateBias), &Weight::there) !=
                       weights.end());
    }
}

/// Turns the two biases of each recurrent layer into those of the network; see the note.
void joinBiases(Safetensors& file, const std::vector<Weight>& weights) {
  forEachRecurrent(weights, [&](const std::string& prefix, bool isGru) {
    const auto entry = [&](std::string_view name) {
      return std::ranges::find(file.tensors, fmt::format("{}{}", prefix, name), &Safetensors::Entry::name);
    };
    const auto input = entry(kInputBias), state = entry(kStateBias);
    const auto isBias = [&](const Tensor& t) { return t.dtype() == DType::Float32 && t.shape().rank() == 1; };
    if (input == file.tensors.end() || state == file.tensors.end() || !isBias(input->values) ||
        !isBias(state->values) || input->values.shape() != state->values.shape())
      return;  // refused as missing or different
    const std::int64_t all = input->values.elements(), units = isGru ? all / 3 : 0;
    for (std::int64_t i = 0; i < all - units; ++i)
      input->values.data<float>()[i] += state->values.data<float>()[i];
    if (isGru)
      state->values = cloneTensor(state->values.slice(all - units, {units}));
    else
      file.tensors.erase(state);
  });
}

/// The reverse: the input's bias is the sum, the state's is zero but for a GRU's gate n.
void divideBiases(Safetensors& file, const std::vector<Weight>& weights) {
  forEachRecurrent(weights, [&](const std::string& prefix, bool isGru) {
    const std::string name = fmt::format("{}{}", prefix, kStateBias);
    Tensor bias = Tensor::zeros(file.find(fmt::format("{}{}", prefix, kInputBias))->shape());
    if (!isGru) return file.add(name, bias);
    auto& own = std::ranges::find(file.tensors, name, &Safetensors::Entry::name)->values;
    std::ranges::copy(own.span<float>(), bias.data<float>() + bias.elements() - own.elements());
    own = bias;
  });
}

/// @throws FileError listing all names and shapes that do not match.
void requireFits(const std::vector<Weight>& weights, const Safetensors& file, const WeightOptions& options,
                 const std::filesystem::path& path) {
  std::vector<std::string> missing, unexpected, different;
  std::set<std::string, std::less<>> known;
  for (const auto& weight : weights) {
    known.insert(weight.there);
    if (isKept(weight, options)) continue;
    const Tensor* theirs = file.find(weight.there);
    if (const auto other = file.others.find(weight.there); other != file.others.end())
      different.push_back(fmt::format("{} has the element type {}", weight.there, other->second));
    else if (!theirs)
      missing.push_back(weight.there);
    else if (theirs->shape() != weight.values.shape() || theirs->dtype() != weight.values.dtype())
      different.push_back(
          fmt::format("{} is {}, here {}", weight.there, theirs->toString(), weight.values.toString()));
  }
  for (const auto& [name, values] : file.tensors)
    if (!known.contains(name) && !isIgnored(name, options)) unexpected.push_back(name);
  for (const auto& [name, type] : file.others)
    if (!known.contains(name) && !isIgnored(name, options))
      unexpected.push_back(fmt::format("{} ({})", name, type));
  std::vector<std::string> problems;
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) problems.push_back(fmt::format("{}: {}", what, fmt::join(names, ", ")));
  };
  add("it lacks", missing);
  add("it has what the network has not", unexpected);
  add("it has other tensors", different);
  if (!problems.empty()) throw FileError(path, fmt::format("does not fit: {}", fmt::join(problems, "; ")));
}

}  // namespace

void loadWeights(Network& network, const std::filesystem::path& path, const WeightOptions& options) {
  network.requireNotTrainedElsewhere("loadWeights");
  detail::onFile("loadWeights", path, [&] {
    const auto weights = weightsOf(network, options);
    Safetensors file = readSafetensors(path, OtherTypes::Skip);
    joinBiases(file, weights);
    requireFits(weights, file, options, path);
    std::vector<Tensor> values;
    for (const auto& weight : weights)
      values.push_back(isKept(weight, options)
                           ? copyTo(weight.values, Device::cpu())
                           : multiplied(*file.find(weight.there), biasOf(network, weight, options.batch)));
    network.init();
    network.context().synchronize();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Tensor into = weights[i].values;
      copy(values[i], into);
    }
  });
}

void saveWeights(Network& network, const std::filesystem::path& path, const WeightOptions& options) {
  network.requireNotTrainedElsewhere("saveWeights");
  detail::onFile("saveWeights", path, [&] {
    const auto weights = weightsOf(network, options);
    network.context().synchronize();
    Safetensors file;
    file.metadata = {{"format", "pt"}};
    for (const auto& weight : weights)
      file.add(weight.there,
               multiplied(copyTo(weight.values, Device::cpu()), 1 / biasOf(network, weight, options.batch)));
    divideBiases(file, weights);
    writeSafetensors(path, file);
  });
}

}  // namespace muster
