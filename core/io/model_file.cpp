#include "muster/core/io/model_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/utf8.h"
#include "muster/core/io/detail/file_shortage.h"
#include "muster/core/io/detail/model_checksums.h"
#include "muster/core/io/detail/network_parts.h"
#include "muster/core/io/network_json.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/compile/copy_blocks.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster {
namespace {

constexpr const char* kFormat = "format";
constexpr const char* kConfiguration = "configuration";
constexpr const char* kVersion = "muster.version";
constexpr const char* kInput = "muster.input";
constexpr std::string_view kCounters = "counters.";
/// May be missing, in files of earlier versions (it is 0 then), and negative (Model::setUpdates).
constexpr std::string_view kUpdaterBegan = "counters.updaterBegan";

/// The tensor name of a state segment in a model file.
std::string fileName(const StateBlock& block, const Segment& segment) {
  switch (block.kind) {
    case BlockKind::UpdaterState:
      return fmt::format("updater.{}.{}", block.name, segment.name);
    case BlockKind::Counters:
      return std::string(kCounters) + segment.name;
    default:
      return segment.name;
  }
}

/// Prefix of a wrapper's strategy state; no layer's tensor has this prefix.
constexpr std::string_view kStrategy = "updater.strategy.";
/// Prefix of state that listeners keep with the model.
constexpr std::string_view kListener = "updater.listener.";
/// Prefix of TrainingState.
constexpr std::string_view kTraining = "updater.training.";

/// Whether a tensor of this name may be in a file in addition to a network's own.
bool isAddition(std::string_view name) {
  return name.starts_with(kStrategy) || name.starts_with(kListener) || name.starts_with(kTraining);
}

/// Calls `visit(name, values)` for each tensor of a network that is stored in a file.
template <typename Visit>
void visitState(Network& network, const Visit& visit) {
  for (StateBlock* block : network.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    for (const auto& segment : block->segments->segments)
      visit(fileName(*block, segment), block->segment(segment));
  }
}

using Tensors = std::map<std::string_view, const Tensor*>;

/// Reads a model file and checks its header.
Safetensors readModelFile(const std::filesystem::path& path) {
  Safetensors file = readSafetensors(path);
  detail::requireHeaderChecksum(file, path);
  return file;
}

/// The input description in a file; empty if there is none.
InputDescription inputIn(const Safetensors& file, const std::filesystem::path& path) {
  const auto input = file.metadata.find(kInput);
  if (input == file.metadata.end()) return {};
  try {
    return InputDescription::fromJson(input->second);
  } catch (const InvalidArgument& error) {
    throw FileError(path, fmt::format("its input description cannot be used: {}", error.what()));
  }
}

/// The network described by a file, not yet initialised.
std::unique_ptr<Network> networkIn(const Safetensors& file, const std::filesystem::path& path) {
  const auto found = file.metadata.find(kConfiguration);
  if (found == file.metadata.end())
    throw FileError(path, "holds no muster model: its metadata have no \"configuration\"");
  try {
    auto network = networkFromJson(found->second);
    network->setInputDescription(inputIn(file, path));
    return network;
  } catch (const InvalidArgument& error) {
    throw FileError(path, fmt::format("its configuration cannot be used: {}", error.what()));
  }
}

void requireTensor(const Tensors& tensors, const std::filesystem::path& path, const std::string& name,
                   const Shape& shape, DType dtype) {
  const auto place = tensors.find(name);
  if (place == tensors.end()) throw FileError(path, fmt::format("tensor \"{}\" is missing", name));
  const Tensor* const found = place->second;
  if (found->shape() != shape || found->dtype() != dtype)
    throw FileError(
        path, fmt::format("tensor \"{}\" is {} {}, but the network has {} {}", name, toString(found->dtype()),
                          found->shape().toString(), toString(dtype), shape.toString()));
}

detail::NetworkPlan planOf(const Network& described, const std::filesystem::path& path) {
  try {
    return detail::NetworkProbe::layOut(described);
  } catch (const InvalidArgument& error) {
    throw FileError(path, fmt::format("its configuration cannot be used: {}", error.what()));
  }
}

/// The file must have the parameters and statistics that its configuration describes. Check this before
/// allocating the network: a few bytes can describe more memory than the machine has.
void requireDescribedTensors(const Network& described, const Safetensors& file,
                             const std::filesystem::path& path) {
  const auto tensors = file.byName();
  for (const auto& node : planOf(described, path).nodes)
    for (const auto& specs :
         {node.module->parameters(node.inputShapes), node.module->statistics(node.inputShapes)})
      for (const auto& spec : specs)
        requireTensor(tensors, path, node.name + "." + spec.name, spec.shape, DType::Float32);
}

/// Checks the range of counters: schedules and random streams use them unchecked and increment them.
void requireCounters(const Safetensors& file, const std::filesystem::path& path) {
  constexpr auto kMost = std::int64_t{1} << 60;
  for (const auto& [name, values] : file.tensors)
    if (name.starts_with(kCounters) && values.dtype() == DType::Int64)
      for (const std::int64_t count : values.span<std::int64_t>())
        if (const std::int64_t least = name == kUpdaterBegan ? -kMost : 0; count < least || count > kMost)
          throw FileError(path, fmt::format("{} is {}, but can only be {} to {}", name, count, least, kMost));
}

/// The file must have exactly the network's tensors, by name, shape and type.
void requireSameTensors(Network& network, const Safetensors& file, const Tensors& tensors,
                        const std::filesystem::path& path) {
  std::set<std::string, std::less<>> expected;
  visitState(network, [&](const std::string& name, const Tensor& mine) {
    expected.insert(name);
    if (name == kUpdaterBegan && !tensors.contains(name)) return;
    requireTensor(tensors, path, name, mine.shape(), mine.dtype());
  });
  for (const auto& entry : file.tensors)
    if (!expected.contains(entry.name) && !isAddition(entry.name))
      throw FileError(path, fmt::format("tensor \"{}\" does not belong to the network", entry.name));
}

void fill(Network& network, const Safetensors& file, const std::filesystem::path& path) {
  const auto tensors = file.byName();
  requireSameTensors(network, file, tensors, path);
  requireCounters(file, path);
  detail::requireTensorChecksums(file, path);
  const Tensor zero = Tensor::zeros({}, DType::Int64);  // of a counter that the file lacks
  std::set<std::string, std::less<>> known;
  std::vector<std::pair<const Tensor*, Tensor>> state;
  visitState(network, [&](const std::string& name, Tensor mine) {
    known.insert(name);
    const auto found = tensors.find(name);
    state.emplace_back(found == tensors.end() ? &zero : found->second, std::move(mine));
  });
  const auto valuesOf = [&](std::string_view prefix) {
    std::vector<NamedValues> all;
    for (const auto& [name, values] : file.tensors)
      if (name.starts_with(prefix) && !known.contains(name))
        all.push_back({name.substr(prefix.size()), values});
    return all;
  };
  auto strategy = valuesOf(kStrategy), listener = valuesOf(kListener), training = valuesOf(kTraining);
  auto from = path;
  // Everything is allocated: no step below fails and leaves the network half changed.
  network.context().synchronize();
  for (auto& [saved, mine] : state) copy(*saved, mine);
  network.strategyState() = std::move(strategy);
  network.listenerState() = std::move(listener);
  network.trainingState() = std::move(training);
  network.setLoadedFrom(std::move(from));
}

/// Different layers may have equal tensors, so their options must be equal too.
void requireSameParts(const Network& mine, const Network& theirs, const std::filesystem::path& path) {
  const auto [myInputs, here] = detail::partsOf(mine);
  const auto [theirInputs, there] = detail::partsOf(theirs);
  if (myInputs.size() != theirInputs.size())
    throw FileError(path, fmt::format("its network has {}, this one {}", plural(theirInputs.size(), "input"),
                                      myInputs.size()));
  for (std::size_t i = 0; i < myInputs.size(); ++i)
    if (const Shape& m = myInputs[i].second, &t = theirInputs[i].second; !m.empty() && m != t)
      throw FileError(path,
                      fmt::format("its network takes inputs {}, this one {}", t.toString(), m.toString()));
  if (here.size() != there.size())
    throw FileError(
        path, fmt::format("its network has {}, this one {}", plural(there.size(), "layer"), here.size()));
  for (std::size_t i = 0; i < here.size(); ++i)
    if (here[i] != there[i])
      throw FileError(path,
                      fmt::format("is of another network: {}", detail::firstDifference(there[i], here[i])));
}

/// The file's description, if it has one, must have made the tensors of the data here: equal layers may read
/// other columns, classes or units.
void requireSameInput(const Network& mine, const Network& theirs, const std::filesystem::path& path) {
  const auto &here = mine.inputDescription(), &there = theirs.inputDescription();
  if (here.empty() || there.empty()) return;
  try {
    there.requireSameTensors(here, "the file", "the data here");
  } catch (const InvalidArgument& error) {
    throw FileError(path, error.what());
  }
}

/// Initialises the network in a file.
void initialise(Network& network, const Safetensors& file, const std::filesystem::path& path) try {
  requireDescribedTensors(network, file, path);
  network.init();
} catch (const InvalidArgument& error) {
  throw FileError(path, fmt::format("its configuration cannot be used: {}", error.what()));
}

/// The network in a file.
std::unique_ptr<Network> loadNetwork(const std::filesystem::path& path) {
  const Safetensors file = readModelFile(path);
  auto network = networkIn(file, path);
  initialise(*network, file, path);
  fill(*network, file, path);
  return network;
}

/// A batch with the shapes that the network takes, for `Network::prepare`, which reads shapes alone. There is
/// no memory for its values: a few bytes of a file can describe more than the machine has.
Batch shapesOf(const Network& saved) {
  static std::byte unread;
  Batch batch;
  for (const auto& [name, shape] : detail::partsOf(saved).inputs)
    batch.features.push_back({name, Tensor::view(&unread, shape.prepend(1))});
  return batch;
}

/// The network in a file, not filled, which must have the parts and the input of `network`. Prepares
/// `network` for its shapes, which may be open.
std::unique_ptr<Network> savedLike(Network& network, const Safetensors& file,
                                   const std::filesystem::path& path) {
  auto saved = networkIn(file, path);
  requireSameParts(network, *saved, path);
  requireSameInput(network, *saved, path);
  requireDescribedTensors(*saved, file, path);
  network.prepare(shapesOf(*saved));
  return saved;
}

template <typename T>
std::unique_ptr<T> loadAs(const std::filesystem::path& path, std::string_view otherwise) {
  auto network = Network::load(path);
  if (auto* wanted = dynamic_cast<T*>(network.get())) {
    static_cast<void>(network.release());
    return std::unique_ptr<T>(wanted);
  }
  throw FileError(path, fmt::format("holds {}", otherwise));
}

}  // namespace

void Network::save(const std::filesystem::path& path) {
  saveModel(*this, path);
}

void ModelSnapshot::take(Network& network, const TrainingState& training, const ModelNotes& notes) {
  require(network.initialized(), "network: save() before init()");
  network.requireNotTrainedElsewhere("save");
  network.context().synchronize();
  const auto before = std::exchange(contents.tensors, {});
  const auto add = [&](std::string name, const Tensor& values) {
    const std::size_t at = contents.tensors.size();
    const bool fits = at < before.size() && before[at].name == name &&
                      before[at].values.shape() == values.shape() &&
                      before[at].values.dtype() == values.dtype();
    Tensor copied = fits ? before[at].values : Tensor::empty(values.shape(), values.dtype());
    copy(values, copied);
    contents.add(std::move(name), copied);
  };
  visitState(network, add);
  for (const auto& [name, values] : network.strategyState()) add(std::string(kStrategy) + name, values);
  for (const auto& [name, values] : network.listenerState()) add(std::string(kListener) + name, values);
  for (const auto& [name, values] : training) contents.add(std::string(kTraining) + name, values);
  contents.metadata = {{kFormat, "pt"}, {kVersion, MUSTER_VERSION}, {kConfiguration, network.toJson()}};
  if (const auto& input = network.inputDescription(); !input.empty())
    contents.metadata.emplace(kInput, input.toJson());
  for (const auto& [name, text] : notes) {
    require(isUtf8(name), "model file: the name of a note is not UTF-8, so the file could not be read back");
    require(isUtf8(text), "model file: the note \"{}\" is not UTF-8, so the file could not be read back",
            name);
    require(name != kInput && !detail::isOfChecksums(name) && contents.metadata.emplace(name, text).second,
            "model file: a note cannot be named \"{}\"", name);
  }
}

void ModelSnapshot::write(const std::filesystem::path& path) const {
  detail::onFile("save", path, [&] {
    Safetensors file = contents;  // copies handles, not data
    detail::addChecksums(file);
    writeSafetensors(path, file);
  });
}

void saveModel(Network& network, const std::filesystem::path& path, const ModelNotes& notes) {
  detail::onFile("save", path, [&] { ModelSnapshot(network, network.trainingState(), notes).write(path); });
}

void checkModelFile(const std::filesystem::path& path) {
  detail::onFile("checkModelFile", path, [&] { detail::requireTensorChecksums(readModelFile(path), path); });
}

bool holdSameState(const std::filesystem::path& one, const std::filesystem::path& other) try {
  const Safetensors first = readSafetensors(one), second = readSafetensors(other);
  Tensors mine = first.byName(), theirs = second.byName();
  for (auto* const tensors : {&mine, &theirs})
    std::erase_if(*tensors, [](const auto& tensor) { return isAddition(tensor.first); });
  return std::ranges::equal(mine, theirs, [](const auto& a, const auto& b) {
    const Tensor &x = *a.second, &y = *b.second;
    return a.first == b.first && x.dtype() == y.dtype() && x.shape() == y.shape() &&
           (x.bytes() == 0 || std::memcmp(x.raw(), y.raw(), x.bytes()) == 0);
  });
} catch (const FileError&) {
  return false;
}

ModelNotes readModelNotes(const std::filesystem::path& path) {
  return detail::onFile("readModelNotes", path, [&] {
    ModelNotes notes = readModelFile(path).metadata;
    for (const char* ours : {kFormat, kVersion, kConfiguration, kInput}) notes.erase(ours);
    std::erase_if(notes, [](const auto& note) { return detail::isOfChecksums(note.first); });
    return notes;
  });
}

InputDescription readInputDescription(const std::filesystem::path& path) {
  return detail::onFile("readInputDescription", path, [&] { return inputIn(readModelFile(path), path); });
}

std::unique_ptr<Network> Network::load(const std::filesystem::path& path) {
  return detail::onFile("load", path, [&] { return loadNetwork(path); });
}

std::unique_ptr<MultiLayerNetwork> MultiLayerNetwork::load(const std::filesystem::path& path) {
  return loadAs<MultiLayerNetwork>(path, "a graph; ComputationGraph::load reads it");
}

std::unique_ptr<ComputationGraph> ComputationGraph::load(const std::filesystem::path& path) {
  return loadAs<ComputationGraph>(path, "a chain of layers; MultiLayerNetwork::load reads it");
}

void loadState(Network& network, const std::filesystem::path& path) {
  network.requireNotTrainedElsewhere("loadState");
  detail::onFile("loadState", path, [&] {
    const Safetensors file = readModelFile(path);
    const auto saved = savedLike(network, file, path);
    fill(network, file, path);
    if (!saved->inputDescription().empty()) network.setInputDescription(saved->inputDescription());
  });
}

void loadParameters(Network& network, const std::filesystem::path& path) {
  network.requireNotTrainedElsewhere("loadParameters");
  detail::onFile("loadParameters", path, [&] {
    const Safetensors file = readModelFile(path);
    const auto saved = savedLike(network, file, path);
    initialise(*saved, file, path);
    fill(*saved, file, path);
    network.context().synchronize();
    const auto pointers = [](std::span<StateBlock> blocks) {
      std::vector<StateBlock*> all;
      for (auto& block : blocks) all.push_back(&block);
      return all;
    };
    detail::copyBlocks(pointers(saved->blocks()), pointers(network.blocks()), /*withUpdaterState=*/false);
    network.setLoadedFrom({});
    network.setCounters(0, 0);
    network.setUpdates(0);
    if (!saved->inputDescription().empty()) network.setInputDescription(saved->inputDescription());
  });
}

}  // namespace muster
