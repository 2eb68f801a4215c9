#include "muster/parallel/run/named_networks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/network_json.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/gpt.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/parallel/run/detail/named_network_schemas.h"
#include "muster/parallel/run/detail/network_facts.h"

namespace muster {
namespace {

namespace json = boost::json;
using detail::NetworkFacts;

/// The options of training that all have; each struct below gives its own defaults.
struct Common {
  std::uint64_t seed = 123;
  Updater updater = Adam{.learningRate = 0.001};
  double l2 = 0, weightDecay = 0, clipNorm = 0;

  void fields(Fields& f) {
    f.field("seed", seed, "of the initial weights and of dropout");
    f.field("updater", updater, "how gradients change the parameters: a name, or a type and its options");
    f.field("l2", l2, "adds l2 / 2 times the sum of the squared weights to the score", "[0, )");
    f.field("weightDecay", weightDecay, "each step weights lose learning rate * weightDecay * w", "[0, )");
    f.field("clipNorm", clipNorm, "scales the whole gradient down to this Euclidean norm; 0: off", "[0, )");
  }
  template <typename Configuration>
  std::string applied(Configuration to) const {
    to.seed = seed;
    to.updater = updater;
    to.l2 = l2;
    to.weightDecay = weightDecay;
    to.clipNorm = clipNorm;
    return to.toJson();
  }
};

constexpr std::string_view kDropout = "rate of dropout, from 0 to below 1; 0: none";

struct Mlp {
  static constexpr std::string_view kName = "mlp";
  Common common = {};
  Shape hidden = {};
  MlpOptions options = {};
  void fields(Fields& f) {
    f.field("hidden", hidden, "units of the hidden layers, as in [100, 50]; empty: [64]", "[1, )");
    f.field("activation", options.activation, "of the hidden layers");
    f.field("dropout", options.dropout, kDropout, "[0, 1)");
    common.fields(f);
  }
  std::string build(const NetworkFacts& facts) const {
    const Shape units = hidden.empty() ? Shape{64} : hidden;
    auto chain = mlp({units.begin(), units.end()}, facts.classes > 0 ? facts.classes : 2, options);
    if (facts.table) chain.layers.insert(chain.layers.begin(), Normalise{});
    if (facts.classes == 0)
      chain.layers.back() = Output{.units = facts.numbers, .loss = Loss::MeanSquaredError};
    return common.applied(std::move(chain));
  }
};

struct Convnet {
  static constexpr std::string_view kName = "convnet";
  Common common{.updater = Nesterovs{.learningRate = 0.01, .momentum = 0.9}, .l2 = 5e-4};
  void fields(Fields& f) { common.fields(f); }
  std::string build(const NetworkFacts& facts) const {
    const Shape image = facts.image();
    return common.applied(convnet(facts.classes, image));
  }
};

struct Resnet18 {
  static constexpr std::string_view kName = "resnet18";
  Common common{.updater = Nesterovs{.learningRate = 0.05, .momentum = 0.9}, .weightDecay = 5e-4};
  Resnet18Options options = {};
  void fields(Fields& f) {
    f.field("width", options.width,
            "channels of the first of four stages; each has twice as many as the one before", "[1, )");
    f.field("largeImages", options.largeImages,
            "begins with a large convolution and a pooling, for photographs");
    f.field("synchronisedNorm", options.synchronisedNorm,
            "normalises over the batches of all workers in the step");
    f.field("normMomentum", options.normMomentum, "weight of the new batch in the running statistics",
            "(0, 1]");
    common.fields(f);
  }
  std::string build(const NetworkFacts& facts) const {
    const Shape image = facts.image();
    auto sized = options;
    sized.imageSize = {image[1], image[2]};
    return common.applied(resnet18(facts.classes, image[0], sized));
  }
};

struct CharLstm {
  static constexpr std::string_view kName = "charLstm";
  Common common{.updater = Adam{.learningRate = 0.002}, .clipNorm = 5};
  CharLstmOptions options = {};
  void fields(Fields& f) {
    f.field("units", options.units, "of each LSTM", "[1, )");
    f.field("layers", options.layers, "number of LSTMs", "[1, )");
    f.field("embedding", options.embedding, "features of a symbol", "[1, )");
    f.field("dropout", options.dropout, kDropout, "[0, 1)");
    common.fields(f);
  }
  std::string build(const NetworkFacts& facts) const {
    return common.applied(charLstm(facts.vocabulary(), options));
  }
};

struct Gpt {
  static constexpr std::string_view kName = "gpt";
  Common common{.updater = Adam{.learningRate = 0.0005}, .weightDecay = 0.1, .clipNorm = 1};
  GptOptions options = {};
  void fields(Fields& f) {
    f.field("layers", options.layers, "blocks of attention and a dense part", "[1, )");
    f.field("heads", options.heads, "of each attention; divides the features", "[1, )");
    f.field("features", options.features, "of each step", "[1, )");
    f.field("dropout", options.dropout, kDropout, "[0, 1)");
    common.fields(f);
  }
  std::string build(const NetworkFacts& facts) const {
    return common.applied(gpt(facts.vocabulary(), options));
  }
};

/// Calls `each` with a default value of every network.
template <typename Each>
void forAll(const Each& each) {
  each(Mlp{});
  each(Convnet{});
  each(Resnet18{});
  each(CharLstm{});
  each(Gpt{});
}

/// Reads a named network and calls `use` with it. @throws InvalidArgument.
template <typename Use>
void read(std::string_view network, const Use& use) {
  const json::value value = parseJson(network);
  const json::object object = value.is_string() ? json::object{{"name", value}} : value.as_object();
  JsonReader reader(printJson(object));
  std::string name;
  reader.field("name", name);
  bool found = false;
  forAll([&](auto one) {
    if (one.kName != name) return;
    found = true;
    one.fields(reader);
    reader.finish();
    use(one);
  });
  require(found, "there is no network \"{}\"{}", name, nearestOfHint(name, networkNames()));
}

/// Data that fit any network, to check its options.
NetworkFacts exampleFacts(std::string_view name) {
  return {.name = std::string(name), .input = {3, 64, 64}, .classes = 10, .symbols = 10};
}

}  // namespace

bool isNamedNetwork(std::string_view network) {
  const json::value value = parseJson(network);
  return value.is_string() || (value.is_object() && value.get_object().contains("name"));
}

void checkNamedNetwork(std::string_view network) {
  read(network, [](const auto& one) { networkFromJson(one.build(exampleFacts(one.kName))); });
}

std::string withAllOptions(std::string_view network) {
  JsonWriter writer;
  read(network, [&](auto one) {
    writer.put("name", one.kName);
    one.fields(writer);
  });
  return writer.text();
}

std::string configurationFor(std::string_view network, LoadedData& data) {
  std::string configuration;
  read(network,
       [&](const auto& one) { configuration = one.build(detail::factsOf(std::string(one.kName), data)); });
  return configuration;
}

std::vector<std::string> networkNames() {
  std::vector<std::string> names;
  forAll([&](const auto& one) { names.emplace_back(one.kName); });
  return names;
}

json::array detail::namedNetworkSchemas(const SchemaFamilies& families) {
  json::array names;
  std::vector<std::pair<std::string, json::object>> types;
  forAll([&](auto one) {
    names.emplace_back(one.kName);
    SchemaWriter writer(&families);
    writer.put("name", {});
    one.fields(writer);
    types.emplace_back(one.kName, writer.schema());
  });
  return {schemaOfTypes("name", "a network of the library", types), json::object{{"enum", names}}};
}

}  // namespace muster
