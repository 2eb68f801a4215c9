// Models of Deeplearning4j: zip files with a configuration and arrays.
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "muster/core/interop/dl4j/dl4j.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_changes.h"

namespace muster::fuzz {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr std::uint64_t kMost = 1 << 20;

Bytes zipOf(const Entries& entries) {
  return writtenBy([&](const auto& path) { dl4j::detail::writeZip(path, entries); });
}

Bytes zipOf(Network& network) {
  return writtenBy([&](const auto& path) { dl4j::save(network, path); });
}

void run(ByteSpan bytes) {
  static FuzzedFile file;
  const auto& path = file.of(bytes);
  std::unique_ptr<Network> network;
  if (isRead(path, [&] { network = dl4j::load(path); }))
    expect(network->initialized(), "a network that was read has no parameters");
}

std::vector<Bytes> seeds() {
  MultiLayerNetwork images(
      {.updater = Adam{.epsilonHat = true},
       .inputShape = {2, 6, 6},
       .layers = {Normalise{}, Conv2d{.outChannels = 3, .kernel = {3, 3}}, BatchNorm{},
                  MaxPool2d{.kernel = {2, 2}}, Dropout{}, Dense{.units = 3}, Output{.classes = 2}}});
  MultiLayerNetwork steps(
      {.updater = Nesterovs{.rateInVelocity = true},
       .inputShape = {4, 3},
       .layers = {LSTM{.units = 2}, Dense{.units = 2, .perStep = true},
                  Output{.classes = 2, .perStep = true, .lossMean = LossMean::Examples}}});
  ComputationGraphConfiguration graph{.updater = AdaGrad{}, .inputs = {{"in", {3}}}};
  const auto a = graph.add("a", Dense{.units = 3}, {"in"});
  const auto sum = graph.add("sum", Combine{}, {a, "in"});
  graph.addOutput(graph.add("out", Output{.classes = 2}, {graph.add("both", Merge{}, {sum, a})}));
  ComputationGraph joined(graph);
  for (Network* one : std::initializer_list<Network*>{&images, &steps, &joined}) one->init();
  for (auto& block : images.blocks())
    if (block.kind == BlockKind::Statistics)  // fitted
      for (float& value : block.values.span<float>()) value = 1;
  return {zipOf(images), zipOf(steps), zipOf(joined)};
}

Entries entriesOf(const Bytes& bytes) {
  static FuzzedFile file;
  Entries entries;
  try {
    const dl4j::detail::ZipFile zip(file.of(bytes));
    for (const char* name :
         {"configuration.json", "coefficients.bin", "updaterState.bin", "normalizer.bin", "muster.json"})
      if (auto found = zip.read(name, kMost)) entries.emplace_back(name, std::move(*found));
  } catch (const FileError&) {
    entries.clear();
  }
  return entries;
}

void mutate(Bytes& bytes, Draw& draw) {
  Entries entries = entriesOf(bytes);
  if (entries.empty()) return mutateBytes(bytes, draw);
  auto& [name, contents] = draw.oneIn(2) ? entries.front() : draw.of(entries);
  if (name.ends_with(".json")) {
    contents = mutateJsonText(contents, draw);
  } else {
    Bytes part = bytesOf(contents);
    if (!part.empty()) mutateBytes(part, draw);
    contents = std::string(textOf(part));
  }
  if (draw.oneIn(16))
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(draw.below(entries.size())));
  bytes = zipOf(entries);
}

}  // namespace

const Target targets::dl4j{"dl4j", &run, &seeds, &mutate};

}  // namespace muster::fuzz
