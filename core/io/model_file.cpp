#include "muster/core/io/model_file.h"

#include <set>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/layer_json.h"
#include "muster/core/io/safetensors.h"

namespace muster {
namespace {

constexpr const char* kFormat = "format";
constexpr const char* kConfiguration = "configuration";
constexpr const char* kVersion = "muster.version";

/// What one segment of a model's state is called in a file.
std::string fileName(const StateBlock& block, const Segment& segment) {
  switch (block.kind) {
    case BlockKind::UpdaterState:
      return fmt::format("updater.{}.{}", block.name, segment.name);
    case BlockKind::Counters:
      return "counters." + segment.name;
    default:
      return segment.name;
  }
}

/// Calls `visit(name, values)` for each tensor of a network that belongs into a file.
template <typename Visit>
void visitState(MultiLayerNetwork& network, const Visit& visit) {
  for (StateBlock* block : network.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    for (const auto& segment : block->segments->segments)
      visit(fileName(*block, segment), block->segment(segment));
  }
}

MultiLayerConfiguration configurationIn(const Safetensors& file, const std::filesystem::path& path) {
  const auto found = file.metadata.find(kConfiguration);
  if (found == file.metadata.end())
    throw FileError(path, "holds no muster model: its metadata have no \"configuration\"");
  try {
    return MultiLayerConfiguration::fromJson(found->second);
  } catch (const InvalidArgument& error) {
    throw FileError(path, fmt::format("its configuration cannot be used: {}", error.what()));
  }
}

/// The file must hold exactly the network's tensors, by name, shape and type.
void requireSameTensors(MultiLayerNetwork& network, const Safetensors& file,
                        const std::filesystem::path& path) {
  std::set<std::string, std::less<>> expected;
  visitState(network, [&](const std::string& name, const Tensor& mine) {
    expected.insert(name);
    const Tensor* theirs = file.find(name);
    if (theirs == nullptr) throw FileError(path, fmt::format("tensor \"{}\" is missing", name));
    if (theirs->shape() != mine.shape() || theirs->dtype() != mine.dtype())
      throw FileError(path, fmt::format("tensor \"{}\" is {} {}, but the network has {} {}", name,
                                        toString(theirs->dtype()), theirs->shape().toString(),
                                        toString(mine.dtype()), mine.shape().toString()));
  });
  for (const auto& entry : file.tensors)
    if (!expected.contains(entry.name))
      throw FileError(path, fmt::format("tensor \"{}\" is none of the network's", entry.name));
}

void fill(MultiLayerNetwork& network, const Safetensors& file, const std::filesystem::path& path) {
  requireSameTensors(network, file, path);
  visitState(network,
             [&](const std::string& name, Tensor mine) { copy(*file.find(name), mine, network.context()); });
  network.context().synchronize();
}

/// Layers that compute something else may still have the same tensors: their options must be the same too.
void requireSameLayers(const MultiLayerConfiguration& mine, const MultiLayerConfiguration& theirs,
                       const std::filesystem::path& path) {
  if (!mine.inputShape.empty() && mine.inputShape != theirs.inputShape)
    throw FileError(path, fmt::format("its network takes inputs {}, this one {}",
                                      theirs.inputShape.toString(), mine.inputShape.toString()));
  if (mine.layers.size() != theirs.layers.size())
    throw FileError(path, fmt::format("its network has {} layers, this one {}", theirs.layers.size(),
                                      mine.layers.size()));
  for (std::size_t i = 0; i < mine.layers.size(); ++i) {
    const auto here = detail::layerJson(mine.layers[i]), there = detail::layerJson(theirs.layers[i]);
    if (here != there)
      throw FileError(path, fmt::format("layer {} is there {}, but here {}", i, there, here));
  }
}

}  // namespace

void MultiLayerNetwork::save(const std::filesystem::path& path) {
  saveModel(*this, path);
}

void saveModel(MultiLayerNetwork& network, const std::filesystem::path& path, const ModelNotes& notes) {
  require(network.initialized(), "network: save() before init()");
  Safetensors file;
  visitState(network, [&](std::string name, const Tensor& values) {
    file.add(std::move(name), values.device().isCpu() ? values : cloneTensor(values));
  });
  file.metadata = {
      {kFormat, "pt"}, {kVersion, MUSTER_VERSION}, {kConfiguration, network.configuration().toJson()}};
  for (const auto& [name, text] : notes)
    require(file.metadata.emplace(name, text).second, "model file: a note cannot be named \"{}\"", name);
  writeSafetensors(path, file);
}

ModelNotes readModelNotes(const std::filesystem::path& path) {
  ModelNotes notes = readSafetensors(path).metadata;
  for (const char* ours : {kFormat, kVersion, kConfiguration}) notes.erase(ours);
  return notes;
}

std::unique_ptr<MultiLayerNetwork> MultiLayerNetwork::load(const std::filesystem::path& path) {
  const Safetensors file = readSafetensors(path);
  auto network = [&] {
    try {
      auto made = std::make_unique<MultiLayerNetwork>(configurationIn(file, path));
      made->init();
      return made;
    } catch (const InvalidArgument& error) {
      throw FileError(path, fmt::format("its configuration cannot be used: {}", error.what()));
    }
  }();
  fill(*network, file, path);
  return network;
}

void loadState(MultiLayerNetwork& network, const std::filesystem::path& path) {
  const Safetensors file = readSafetensors(path);
  const MultiLayerConfiguration saved = configurationIn(file, path);
  requireSameLayers(network.configuration(), saved, path);
  Batch example;  // of the shape that the saved network was made for, as that may still be open here
  Batch::ensure(example.features, "features", saved.inputShape.prepend(1));
  network.prepare(example);
  fill(network, file, path);
}

}  // namespace muster
