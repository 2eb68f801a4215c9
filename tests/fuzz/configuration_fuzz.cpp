// Network configurations as JSON: a configuration that is read is written back identically, laid out, and run
// if small.
#include <boost/json/serialize.hpp>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/network_parts.h"
#include "muster/core/io/network_json.h"
#include "muster/core/nn/compile/network_probe.h"
#include "tests/fuzz/hostile_values.h"
#include "tests/fuzz/networks.h"
#include "tests/fuzz/schema_networks.h"

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

Sweep sweep() {
  static const JsonSweep wide(wideDocuments(), networkVocabulary());
  std::vector<Bytes> broken;
  for (const auto& text : brokenJson()) broken.push_back(bytesOf(text));
  return joined(
      {sweepOf(std::move(broken)), networkSweep().texts(), wide.texts(), sizeSweep(wideDocuments())});
}

}  // namespace

const Target targets::configuration{"configuration", &run, &seeds, &mutate, &sweep};

}  // namespace muster::fuzz
