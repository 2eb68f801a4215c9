// Model files with their configurations: a loaded model is saved to an identical file.
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "muster/core/io/model_file.h"
#include "muster/core/io/network_json.h"
#include "tests/fuzz/container.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/networks.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;

constexpr std::int64_t kSmall = 2048;  // elements of a test network

void run(ByteSpan bytes) {
  static FuzzedFile file, again;
  const auto& path = file.of(bytes);
  if (!isRead(path, [&] { readModelNotes(path); })) return;  // all others read it first
  isRead(path, [&] { checkModelFile(path); });
  static const auto chain = smallChains().back();
  isRead(path, [&] {
    MultiLayerNetwork mine(chain);
    loadState(mine, path);
  });
  std::unique_ptr<Network> network;
  if (!isRead(path, [&] { network = Network::load(path); })) return;
  const Bytes saved = savedBytes(*network);
  expect(savedBytes(*Network::load(again.of(saved))) == saved,
         "a model that was loaded and saved is another one");
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (auto chain : {smallChains().back(), smallChains().front()}) {
    MultiLayerNetwork network(chain);
    network.init();
    all.push_back(savedBytes(network));
  }
  ComputationGraph graph(smallGraph());
  graph.init();
  all.push_back(savedBytes(graph));
  return all;
}

/// Mutates the configuration. Half of the time also replaces the file by that of such a network, if valid.
void mutateConfiguration(Container& file, Draw& draw) {
  auto* const metadata = file.header.if_contains("__metadata__");
  if (!metadata || !metadata->is_object() || !metadata->get_object().contains("configuration")) return;
  json::value& configuration = metadata->get_object()["configuration"];
  if (!configuration.is_string()) return;
  const std::string changed = mutateJsonText(configuration.get_string(), draw);
  configuration = changed;
  if (draw.oneIn(2)) return;
  try {
    const auto network = networkFromJson(changed);
    if (!isSmall(*network, kSmall)) return;
    network->init();
    if (auto made = Container::in(savedBytes(*network))) file = std::move(*made);
  } catch (const Error&) {
  }
}

void mutate(Bytes& bytes, Draw& draw) {
  auto file = Container::in(bytes);
  if (!file) return mutateBytes(bytes, draw);
  if (draw.oneIn(2)) mutateConfiguration(*file, draw);
  if (draw.oneIn(2)) {
    json::value header = file->header;
    mutateJson(header, draw);
    if (header.is_object()) file->header = header.get_object();
  }
  if (draw.oneIn(3)) file->mutateData(draw);
  if (draw.oneIn(2)) file->settleOffsets();
  if (!draw.oneIn(6)) file->settleChecksums();
  bytes = file->bytes();
}

}  // namespace

const Target targets::model{"model", &run, &seeds, &mutate};

}  // namespace muster::fuzz
