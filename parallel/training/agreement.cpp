#include "muster/parallel/training/agreement.h"

#include <algorithm>
#include <array>
#include <optional>
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

namespace muster {
namespace {

/// A remark on a model that was not loaded.
constexpr std::string_view kNoFile = "loaded no file";

/// Named values. Nodes compare them by their hashes, processes that want to join by their texts.
class Items {
 public:
  void add(std::string_view what, std::string text) {
    ByteHash hash;
    hash.add(text);
    items_.push_back({.what = what, .text = std::move(text), .hash = hash.value()});
  }
  void add(std::string_view what, std::int64_t number) { add(what, std::to_string(number)); }
  void add(std::string_view what, std::optional<std::int64_t> number) {
    add(what, number ? std::to_string(*number) : std::string("not known"));
  }
  void add(std::string_view what, const ByteHash& hash) {
    items_.push_back({.what = what, .hash = hash.value()});
  }
  /// An item of which the error says more if two nodes differ in it.
  /// @param remark  what this node has, not empty. Only the error shows it: it is not compared.
  /// @param advice  what the user can do.
  void add(std::string_view what, const ByteHash& hash, std::string remark, std::string_view advice) {
    items_.push_back({.what = what, .hash = hash.value(), .remark = std::move(remark), .advice = advice});
  }

  /// All nodes have as many items.
  void check(NodeLink& link) const {
    std::vector<std::uint64_t> own;
    for (const Item& item : items_) own.push_back(item.hash);
    std::vector<std::uint64_t> all(own.size() * static_cast<std::size_t>(link.nodes()));
    link.gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < own.size(); ++i)
      for (std::size_t n = 1; n < static_cast<std::size_t>(link.nodes()); ++n) {
        if (all[n * own.size() + i] == all[i]) continue;
        const auto& item = items_[i];
        const std::string end = item.remark.empty()
                                    ? textHere(item)
                                    : fmt::format("{}; {}", remarks(link, item.remark, n), item.advice);
        awaitAll(link);
        throw InvalidArgument(
            fmt::format("nodes: {} and {} differ in {}, which must be the same on all nodes{}",
                        link.nameOf(0), link.nameOf(static_cast<int>(n)), item.what, end));
      }
  }

  /// Each line names its item.
  std::string lines() const {
    std::string all;
    for (const auto& item : items_) {
      if (item.text.empty()) all += fmt::format("{}: {:x}\n", item.what, item.hash);
      std::istringstream lines(item.text);
      for (std::string line; std::getline(lines, line);)
        all += fmt::format("{}: {}\n", item.what,
                           line.substr(std::min(line.find_first_not_of(' '), line.size())));
    }
    return all;
  }

 private:
  struct Item {
    std::string_view what;  // a literal
    std::string text = {};  // empty: only its hash is known
    std::uint64_t hash = 0;
    std::string remark = {};
    std::string_view advice = {};  // a literal
  };

  static std::string textHere(const Item& item) {
    const bool isShort = !item.text.empty() && item.text.find('\n') == std::string::npos;
    return isShort ? fmt::format("; on this node: \"{}\"", item.text) : "";
  }

  /// The remarks of nodes 0 and n, as the end of the error; empty if neither says anything. All nodes call
  /// it. Of a long remark the end is kept, with the name of the file.
  static std::string remarks(NodeLink& link, std::string_view own, std::size_t n) {
    using Remark = std::array<char, 1024>;
    Remark mine{};
    const auto length = std::min(own.size(), mine.size() - 1);
    std::ranges::copy(own.substr(own.size() - length), mine.begin());
    std::vector<Remark> all(static_cast<std::size_t>(link.nodes()));
    link.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    const auto of = [&](std::size_t node) {
      all[node].back() = 0;
      return printableText(all[node].data());
    };
    const std::string first = of(0), other = of(n);
    if (first == kNoFile && other == kNoFile) return "";
    return fmt::format(": {} {}, and {} {}", link.nameOf(0), first, link.nameOf(static_cast<int>(n)), other);
  }

  /// Waits until all nodes have the items. Otherwise the failure of this node could reach a slower one before
  /// it reads them, and that one would report the failure instead of the difference.
  static void awaitAll(NodeLink& link) {
    try {
      std::vector<std::byte> all(static_cast<std::size_t>(link.nodes()));
      link.gather(std::as_bytes(std::span("", 1)), all);
    } catch (const NodeFailure&) {  // all nodes have the items, and some have already ended
    }
  }

  std::vector<Item> items_;
};

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

void addVersion(Items& items, const Agreement& own) {
  items.add("the version of muster", own.version.empty() ? MUSTER_VERSION : own.version);
}

/// The items in the order in which they are compared, without the version.
/// @param now  with what changes during the training.
void addAll(Items& items, const Agreement& own, bool now) {
  // First: a program may derive other items from it, such as the epochs that are left.
  if (now)
    items.add("where the training begins", placeOf(own), remarkOnPlace(own),
              "load the same checkpoint on all nodes, or begin a new training on all");
  items.add("workers on each node", own.workers);
  items.add("threads of each worker", own.threads);
  items.add("the kind of devices", std::string(own.onGpus ? "GPUs" : "CPUs"));
  items.add("the math mode", own.onGpus && !own.mathMode
                                 ? std::string("the GPUs' default")
                                 : std::string(nameOf(own.mathMode.value_or(MathMode::Float32))));
  items.add("the strategy", textOf(own.strategy));
  items.add("the training options of the model", textOf(own.model.trainingOptions()));
  items.add("the configuration of the model", own.model.configurationText());
  items.add("epochs to train", own.epochs);
  items.add("the examples of the data set", own.data.examples());
  items.add("the examples of a batch", own.data.batchSize());
  items.add("the listeners that are called on all nodes", onAllNodes(own.listeners));
  items.add("the layers of the model", shapeOf(own.model));
  if (now)
    items.add("the parameters or the state of the model", valuesOf(own.model), remarkOnFile(own.model),
              "load the same file on all nodes, or initialise the model with the same seed");
  items.add("the first batch", valuesOf(own.first));
}

}  // namespace

void requireAgreement(NodeLink& link, const Agreement& own) {
  Items version, items;
  addVersion(version, own);
  version.check(link);  // first, because another version may have another number of items
  addAll(items, own, true);
  items.check(link);
}

std::string inWords(const Agreement& own) {
  Items items;
  addVersion(items, own);
  addAll(items, own, false);
  return items.lines();
}

}  // namespace muster
