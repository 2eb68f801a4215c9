#include "muster/parallel/agreement.h"

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/listeners/node_listener.h"
#include "muster/parallel/nodes/byte_hash.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/nodes/node_transport.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/wrapper_session.h"

namespace muster {
namespace {

/// A remark on a model that was not loaded.
constexpr std::string_view kNoFile = "loaded no file";

/// A named value. Nodes compare it by its hash, processes that want to join by its text.
struct Item {
  std::string_view what;  // a literal
  std::string text = {};  // empty: only its hash is known
  ByteHash hash = {};
  std::string remark = {};       // what this node has, for the error alone; may be empty
  std::string_view advice = {};  // what the user can do, with a remark; a literal
};

Item itemOf(std::string_view what, std::string text) {
  ByteHash hash;
  hash.add(text);
  return {.what = what, .text = std::move(text), .hash = hash};
}

Item itemOf(std::string_view what, std::optional<std::int64_t> number) {
  return itemOf(what, number ? std::to_string(*number) : std::string("not known"));
}

std::string textHere(const Item& item) {
  const bool isShort = !item.text.empty() && item.text.find('\n') == std::string::npos;
  return isShort ? fmt::format("; on this node: \"{}\"", item.text) : "";
}

/// The remarks of nodes 0 and n, as the end of the error; empty if neither says anything. All nodes call it.
/// Of a long remark the end is kept, with the name of the file.
std::string remarks(NodeLink& link, std::string_view own, int n) {
  using Remark = std::array<char, 1024>;
  Remark mine{};
  const auto length = std::min(own.size(), mine.size() - 1);
  std::ranges::copy(own.substr(own.size() - length), mine.begin());
  std::vector<Remark> all(static_cast<std::size_t>(link.nodes()));
  link.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  const auto of = [&](int node) {
    Remark& remark = all[static_cast<std::size_t>(node)];
    remark.back() = 0;
    return printableText(remark.data());
  };
  const std::string first = of(0), other = of(n);
  if (first == kNoFile && other == kNoFile) return "";
  return fmt::format(": {} {}, and {} {}", link.nameOf(0), first, link.nameOf(n), other);
}

/// Waits until all nodes have the items. Otherwise the failure of this node could reach a slower one before
/// it reads them, and that one would report the failure instead of the difference.
void awaitAll(NodeLink& link) {
  try {
    std::vector<std::byte> all(static_cast<std::size_t>(link.nodes()));
    link.gather(std::as_bytes(std::span("", 1)), all);
  } catch (const NodeFailure&) {  // all nodes have the items, and some have already ended
  }
}

/// All nodes have as many items.
void requireSameItems(NodeLink& link, std::span<const Item> items) {
  std::vector<std::uint64_t> own;
  for (const Item& item : items) own.push_back(item.hash.value());
  std::vector<std::uint64_t> all(own.size() * static_cast<std::size_t>(link.nodes()));
  link.gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  for (std::size_t i = 0; i < own.size(); ++i)
    for (int n = 1; n < link.nodes(); ++n) {
      if (all[static_cast<std::size_t>(n) * own.size() + i] == all[i]) continue;
      const Item& item = items[i];
      const std::string end = item.remark.empty()
                                  ? textHere(item)
                                  : fmt::format("{}; {}", remarks(link, item.remark, n), item.advice);
      awaitAll(link);
      throw InvalidArgument(
          fmt::format("nodes: {} and {} differ in {}, which must be the same on all nodes{}", link.nameOf(0),
                      link.nameOf(n), item.what, end));
    }
}

std::string textOf(const AnyStrategy& strategy) {
  const auto [description, options] = ruleText(strategy, true);
  return options.empty() ? description : fmt::format("{} ({})", description, options);
}

std::string textOf(TrainingOptions options) {
  JsonWriter json;
  options.fields(json);
  return json.line();
}

std::string onAllNodes(const Listeners& listeners) {
  std::string text;
  for (const auto& one : listeners)
    if (const auto* const listener = dynamic_cast<const NodeListener*>(one.get()))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", listener->describe());
  return text.empty() ? "none" : text;
}

ByteHash shapeOf(Model& model) {
  ByteHash hash;
  for (const auto* block : model.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    hash.add(block->name);
    hash.mix(static_cast<std::uint64_t>(block->values.elements()));
    if (!block->segments) continue;
    for (const Segment& segment : block->segments->segments) {
      hash.add(segment.name);
      for (const std::int64_t size : segment.shape) hash.mix(static_cast<std::uint64_t>(size));
    }
  }
  return hash;
}

ByteHash valuesOf(Model& model) {
  ByteHash hash;
  for (const auto* block : model.state())
    if (block->kind != BlockKind::Gradients) hash.add(block->values);
  return hash;
}

ByteHash valuesOf(const Batch* batch) {
  ByteHash hash;
  if (batch)
    for (const auto* tensors : {&batch->features, &batch->labels})
      for (const NamedTensor& tensor : *tensors) {
        hash.add(tensor.name);
        hash.add(tensor.value);
      }
  return hash;
}

ByteHash placeOf(const Agreement& own) {
  ByteHash hash;
  for (const std::int64_t number : {own.model.epoch(), own.model.iteration(), own.nextBatch})
    hash.mix(static_cast<std::uint64_t>(number));
  return hash;
}

/// As in "loaded its model from run/checkpoint-epoch-0003.safetensors".
std::string remarkOnFile(const Model& model) {
  const auto& file = model.loadedFrom();
  return file.empty() ? std::string(kNoFile) : fmt::format("loaded its model from {}", file.string());
}

/// As in "begins at batch 1 of epoch 4 (iteration 120) and loaded its model from
/// run/checkpoint-epoch-0003.safetensors".
std::string remarkOnPlace(const Agreement& own) {
  const Model& model = own.model;
  const bool isNew = model.epoch() == 0 && model.iteration() == 0 && own.nextBatch == 0;
  const std::string which = !model.loadedFrom().empty() ? " and " + remarkOnFile(model)
                            : isNew                     ? " with a new model"
                                                        : " with a model that it has trained";
  return fmt::format("begins at batch {} of epoch {} (iteration {}){}", own.nextBatch + 1, model.epoch() + 1,
                     model.iteration(), which);
}

/// The items in the order in which they are compared.
/// @param now  with what changes during the training.
std::vector<Item> itemsOf(const Agreement& own, bool now) {
  const ParallelOptions& options = own.options;
  const std::string version = internalsOf(options).version;
  std::vector<Item> items;
  items.push_back(itemOf("the version of muster", version.empty() ? MUSTER_VERSION : version));
  // Next, because a program may derive other items from it, such as the epochs that are left.
  if (now)
    items.push_back({.what = "where the training begins",
                     .hash = placeOf(own),
                     .remark = remarkOnPlace(own),
                     .advice = "load the same checkpoint on all nodes, or begin a new training on all"});
  items.push_back(itemOf("workers on each node", options.workers));
  items.push_back(itemOf("threads of each worker", options.threadsPerWorker));
  const bool onGpus = !options.devices.front().isCpu();
  items.push_back(itemOf("the kind of devices", onGpus ? "GPUs" : "CPUs"));
  const auto mode = options.mathMode.value_or(MathMode::Float32);
  items.push_back(itemOf("the math mode", onGpus && !options.mathMode ? std::string("the GPUs' default")
                                                                      : std::string(nameOf(mode))));
  items.push_back(itemOf("the strategy", textOf(options.strategy)));
  items.push_back(itemOf("the training options of the model", textOf(own.model.trainingOptions())));
  items.push_back(itemOf("the configuration of the model", own.model.configurationText()));
  items.push_back(itemOf("epochs to train", own.epochs));
  items.push_back(itemOf("the examples of the data set", own.data.examples()));
  items.push_back(itemOf("the examples of a batch", own.data.batchSize()));
  items.push_back(itemOf("the listeners that are called on all nodes", onAllNodes(options.listeners)));
  items.push_back({.what = "the layers of the model", .hash = shapeOf(own.model)});
  if (now)
    items.push_back(
        {.what = "the parameters or the state of the model",
         .hash = valuesOf(own.model),
         .remark = remarkOnFile(own.model),
         .advice = "load the same file on all nodes, or initialise the model with the same seed"});
  items.push_back({.what = "the first batch", .hash = valuesOf(own.first)});
  return items;
}

}  // namespace

void requireAgreement(NodeLink& link, const Agreement& own) {
  const auto items = itemsOf(own, true);
  // The version first, because another one may have another number of items.
  requireSameItems(link, std::span(items).first(1));
  requireSameItems(link, std::span(items).subspan(1));
}

/// Each line names its item.
std::string inWords(const Agreement& own) {
  std::string all;
  for (const Item& item : itemsOf(own, false)) {
    if (item.text.empty()) all += fmt::format("{}: {:x}\n", item.what, item.hash.value());
    std::istringstream lines(item.text);
    for (std::string line; std::getline(lines, line);)
      all +=
          fmt::format("{}: {}\n", item.what, line.substr(std::min(line.find_first_not_of(' '), line.size())));
  }
  return all;
}

}  // namespace muster
