// Network configurations as JSON: a configuration that is read is written back identically, laid out, and run
// if small.
#include <boost/json/serialize.hpp>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/network_parts.h"
#include "muster/core/io/network_json.h"
#include "muster/core/nn/compile/network_probe.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/json_sweep.h"
#include "tests/fuzz/networks.h"
#include "tests/fuzz/odd_texts.h"
#include "tests/fuzz/schema_networks.h"
#include "tests/fuzz/size_sweep.h"

namespace muster::fuzz {
namespace {

constexpr std::int64_t kSmall = 4096;

/// A batch of one example, of zeros.
Batch exampleFor(const Network& network) {
  Batch batch;
  for (const auto& input : detail::NetworkProbe::layOut(network).inputs) {
    Tensor& values = Batch::ensure(batch.features, input.name, input.shape.prepend(1),
                                   input.indices ? DType::Int64 : DType::Float32);
    std::memset(values.raw(), 0, values.bytes());
  }
  return batch;
}

void run(ByteSpan bytes) {
  std::unique_ptr<Network> network;
  try {
    network = networkFromJson(textOf(bytes));
  } catch (const InvalidArgument&) {
    return;
  }
  const std::string text = network->toJson();
  expect(networkFromJson(text)->toJson() == text, "a configuration that was read and written is another one");
  for (const auto& [name, shape] : detail::partsOf(*network).inputs)
    if (shape.empty()) return;  // laid out with the first batch
  if (!isSmall(*network, kSmall)) return;
  try {
    network->init();
    Tensor out;
    network->output(exampleFor(*network), out);
  } catch (const InvalidArgument&) {
  } catch (const DeviceUnavailable&) {  // that of a layer, which the first batch needs
  }
}

std::vector<boost::json::value> wideDocuments() {
  std::vector<boost::json::value> all;
  for (const auto& chain : wideChains()) all.push_back(*jsonIn(chain.toJson()));
  return all;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& network : wideDocuments()) all.push_back(bytesOf(boost::json::serialize(network)));
  for (const auto& network : networkDocuments()) all.push_back(bytesOf(boost::json::serialize(network)));
  return all;
}

void mutate(Bytes& bytes, Draw& draw) {
  bytes = bytesOf(mutateJsonText(textOf(bytes), draw, networkVocabulary()));
}

/// Change `number` of a network.
std::optional<boost::json::value> changedNetwork(std::size_t number) {
  static const JsonSweep wide(wideDocuments(), networkVocabulary());
  static const SizeSweep sizes(wideDocuments());
  auto changed = networkSweep().at(number);
  if (!changed) changed = wide.at(number - networkSweep().size());
  if (changed) return std::move(changed->value);
  return sizes.at(number - networkSweep().size() - wide.size());
}

std::optional<Bytes> sweep(std::size_t number) {
  if (number < brokenJson().size()) return bytesOf(brokenJson()[number]);
  const auto changed = changedNetwork(number - brokenJson().size());
  if (!changed) return std::nullopt;
  return bytesOf(boost::json::serialize(*changed));
}

}  // namespace

const Target targets::configuration{"configuration", &run, &seeds, &mutate, &sweep};

}  // namespace muster::fuzz
