// Model files with their configurations: a loaded model is saved to an identical file.
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "muster/core/io/model_file.h"
#include "muster/core/io/network_json.h"
#include "tests/fuzz/container.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/networks.h"
#include "tests/fuzz/schema_networks.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;

constexpr std::int64_t kSmall = 2048;  // elements of a test network

void run(ByteSpan bytes) {
  static FuzzedFile file, again;
  const auto& path = file.of(bytes);
  if (!isRead(path, [&] { readModelNotes(path); })) return;  // all others read it first
  isRead(path, [&] { checkModelFile(path); });
  static MultiLayerNetwork mine(smallChains().back());
  isRead(path, [&] { loadState(mine, path); });
  std::unique_ptr<Network> network;
  if (!isRead(path, [&] { network = Network::load(path); })) return;
  const Bytes saved = savedBytes(*network);
  expect(savedBytes(*Network::load(again.of(saved))) == saved,
         "a model that was loaded and saved is another one");
}

/// The model file of a network.
Bytes modelOf(std::string_view configuration) {
  const auto network = networkFromJson(configuration);
  network->init();
  return savedBytes(*network);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& network : networkDocuments()) all.push_back(modelOf(json::serialize(network)));
  return all;
}

/// The model file of a network if this is valid and small, else nothing.
std::optional<Bytes> modelIfUsable(std::string_view configuration) {
  try {
    if (isSmall(*networkFromJson(configuration), kSmall)) return modelOf(configuration);
  } catch (const Error&) {
  }
  return std::nullopt;
}

/// Mutates the configuration. Half of the time also replaces the file by that of such a network, if valid.
void mutateConfiguration(Container& file, Draw& draw) {
  json::value* const configuration = file.metadata("configuration");
  if (!configuration || !configuration->is_string()) return;
  const std::string changed = mutateJsonText(configuration->get_string(), draw, networkVocabulary());
  *configuration = changed;
  if (draw.oneIn(2)) return;
  if (const auto made = modelIfUsable(changed)) file = std::move(*Container::in(*made));
}

/// A file with a changed configuration, and the tensors of that network or, if it is not valid, of the one
/// before.
Bytes modelWith(const JsonSweep::Changed& changed) {
  static const auto before = seeds();
  const std::string text = json::serialize(changed.value);
  if (auto made = modelIfUsable(text)) return *made;
  return withConfiguration(*Container::in(before[changed.document]), text);
}

Sweep sweep() {
  const auto changed = [](std::size_t number) { return modelWith(networkSweep().at(number)); };
  return joined({{networkSweep().size(), changed},
                 headerSweep(*Container::in(modelOf(smallChains().back().toJson())))});
}

void mutate(Bytes& bytes, Draw& draw) {
  auto file = Container::in(bytes);
  if (!file) return mutateBytes(bytes, draw);
  if (draw.oneIn(2)) mutateConfiguration(*file, draw);
  if (draw.oneIn(2)) file->mutateHeader(draw);
  if (draw.oneIn(3)) file->mutateNumber("", draw);
  if (draw.oneIn(2)) file->settleOffsets();
  if (!draw.oneIn(6)) file->settleChecksums();
  bytes = file->bytes();
}

}  // namespace

const Target targets::model{"model", &run, &seeds, &mutate, &sweep};

}  // namespace muster::fuzz
