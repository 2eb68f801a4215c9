#include "muster/parallel/training/agreement.h"

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/parallel/exchange/node_link.h"

namespace muster {
namespace {

constexpr std::size_t kMostItems = 16;

/// Hashes eight bytes at a time, by multiplication and shift.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    mix(bytes.size());
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    for (const std::byte byte : bytes) mix(static_cast<std::uint64_t>(byte));
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(const Tensor& values) {
    const Tensor here = values.device().isCpu() ? values : copyTo(values, Device::cpu());
    add({static_cast<const std::byte*>(here.raw()), here.bytes()});
  }
  void mix(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9E3779B97F4A7C15U;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x6D75737465726E6FU;
};

/// Named values, as hashes.
class Items {
 public:
  void add(std::string_view what, std::string_view text) {
    Hash hash;
    hash.add(text);
    addHash(what, hash, std::string(text));
  }
  void add(std::string_view what, std::int64_t number) { add(what, std::to_string(number)); }
  void add(Model& model) {
    Hash shape, values;
    for (const auto* block : model.state()) {
      if (block->kind == BlockKind::Gradients) continue;
      shape.add(block->name);
      shape.mix(static_cast<std::uint64_t>(block->values.elements()));
      values.add(block->values);
    }
    addHash("the layers of the model", shape, {});
    addHash("the parameters or the state of the model", values, {});
  }
  void add(const Batch& batch) {
    Hash hash;
    for (const auto* tensors : {&batch.features, &batch.labels})
      for (const NamedTensor& tensor : *tensors) {
        hash.add(tensor.name);
        hash.add(tensor.value);
      }
    addHash("the first batch", hash, {});
  }

  void check(NodeLink& link) const {
    std::array<std::uint64_t, kMostItems> own{};
    for (std::size_t i = 0; i < items_.size(); ++i) own[i] = items_[i].hash;
    std::vector<std::array<std::uint64_t, kMostItems>> all(static_cast<std::size_t>(link.nodes()));
    link.gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < items_.size(); ++i)
      for (std::size_t n = 1; n < all.size(); ++n) {
        if (all[n][i] == all[0][i]) continue;
        const auto& [what, text, hash] = items_[i];
        throw InvalidArgument(fmt::format("nodes: {} and {} differ in {}{}", link.nameOf(0),
                                          link.nameOf(static_cast<int>(n)), what,
                                          text.empty() ? "" : fmt::format("; here it is \"{}\"", text)));
      }
  }

 private:
  void addHash(std::string_view what, const Hash& hash, std::string text) {
    require(items_.size() < kMostItems, "agreement: more than {} items", kMostItems);
    items_.push_back({std::string(what), std::move(text), hash.value()});
  }

  struct Item {
    std::string what, text;
    std::uint64_t hash;
  };
  std::vector<Item> items_;
};

}  // namespace

void requireAgreement(NodeLink& link, const Agreement& own) {
  Items items;
  items.add("the version of muster", MUSTER_VERSION);
  items.add("workers on each node", own.workers);
  items.add("threads of each worker", own.threads);
  items.add("the strategy", own.strategy);
  items.add("epochs to train", own.epochs);
  items.add("iterations trained before", own.model.iteration());
  items.add("the batch to go on with", own.nextBatch);
  items.add("the examples of the data set", own.data.examples().value_or(-1));
  items.add("the examples of a batch", own.data.batchSize().value_or(-1));
  items.add("the listeners that are called on all nodes", own.listeners);
  items.add(own.model);
  if (own.first) items.add(*own.first);
  items.check(link);
}

std::string inWords(const Agreement& own) {
  Hash shape, first;
  for (const auto* block : own.model.state()) {
    shape.add(block->name);
    shape.mix(static_cast<std::uint64_t>(block->values.elements()));
  }
  if (own.first)
    for (const auto* tensors : {&own.first->features, &own.first->labels})
      for (const NamedTensor& tensor : *tensors) first.add(tensor.value);
  return fmt::format(
      "muster {}\n{} workers a node\n{} threads a worker\n{}\n{} epochs in all\nlayers {:x}\n"
      "{} examples in batches of {}\nthe first batch {:x}\n",
      MUSTER_VERSION, own.workers, own.threads, own.strategy, own.epochs, shape.value(),
      own.data.examples().value_or(-1), own.data.batchSize().value_or(-1), first.value());
}

}  // namespace muster
