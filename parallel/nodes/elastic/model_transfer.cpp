#include "muster/parallel/nodes/elastic/model_transfer.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "muster/core/io/detail/safetensors_dtype.h"
#include "muster/parallel/nodes/byte_hash.h"
#include "muster/parallel/nodes/node_messages.h"

namespace muster {
namespace {

constexpr std::uint64_t kStateMagic = 0x6d7573746d6f6433;
constexpr int kChannel = 1;                  // of NodeLink::gather, which is not used meanwhile
constexpr std::size_t kPiecesUnderWay = 16;  // in transfer at a time, for each node

void checkFits(bool possible) {
  require(possible, "nodes: the received state does not fit this model");
}

/// Writes values to bytes, or reads them: a visit describes both.
class StateBytes {
 public:
  StateBytes() = default;  // writes
  explicit StateBytes(std::span<const std::byte> bytes) : reads_(true), unread_(bytes) {}

  template <typename T>
  void number(T& value) {
    bytes(&value, sizeof value);
  }
  void list(std::vector<NamedValues>& list) {
    std::uint64_t count = list.size();
    number(count);
    for (std::uint64_t i = 0; i < count; ++i) named(reads_ ? list.emplace_back() : list[i]);
  }
  void finish() const { checkFits(unread_.empty()); }
  std::vector<std::byte> take() { return std::move(written_); }

 private:
  void bytes(void* place, std::size_t count) {
    if (!reads_) {
      const auto* const begin = static_cast<const std::byte*>(place);
      written_.insert(written_.end(), begin, begin + count);
      return;
    }
    checkFits(count <= unread_.size());
    std::ranges::copy(unread_.first(count), static_cast<std::byte*>(place));
    unread_ = unread_.subspan(count);
  }
  void text(std::string& text) {
    std::uint64_t length = text.size();
    number(length);
    checkFits(!reads_ || length <= unread_.size());
    text.resize(static_cast<std::size_t>(length));
    bytes(text.data(), text.size());
  }
  void named(NamedValues& one) {
    std::string type(detail::safetensorsName(one.values.dtype()));
    std::int64_t rank = one.values.shape().rank();
    text(one.name);
    text(type);
    number(rank);
    checkFits(rank >= 0 && rank <= Shape::kMaxRank);
    std::array<std::int64_t, Shape::kMaxRank> sizes{};
    std::ranges::copy(one.values.shape(), sizes.begin());
    const auto used = std::span(sizes).first(static_cast<std::size_t>(rank));
    for (std::int64_t& size : used) number(size);
    if (reads_) one.values = allocate(type, used);
    Tensor host = one.values.device().isCpu() ? one.values : copyTo(one.values, Device::cpu());
    bytes(host.raw(), host.bytes());
  }
  /// For as many elements as there are bytes.
  Tensor allocate(std::string_view type, std::span<const std::int64_t> sizes) const {
    const auto dtype = detail::safetensorsDType(type);
    checkFits(dtype.has_value());
    std::uint64_t count = sizeOf(*dtype);
    for (const std::int64_t size : sizes) {
      checkFits(size >= 0 && (size == 0 || count <= unread_.size() / static_cast<std::uint64_t>(size)));
      count *= static_cast<std::uint64_t>(size);
    }
    return Tensor::empty(Shape(sizes), *dtype);
  }

  const bool reads_ = false;
  std::span<const std::byte> unread_;
  std::vector<std::byte> written_;
};

std::vector<StateBlock*> sentBlocks(Model& model) {
  auto state = model.state();
  std::erase_if(state, [](const StateBlock* b) {
    return b->kind == BlockKind::Gradients || b->kind == BlockKind::Counters;
  });
  return state;
}

std::array<std::vector<NamedValues>*, 3> sentValues(Model& model) {
  return {&model.strategyState(), &model.listenerState(), &model.trainingState()};
}

/// What is sent of a model.
struct State {
  std::int64_t iteration = 0, epoch = 0, updates = 0;
  double score = 0;
  std::vector<NamedValues> blocks = {};
  std::array<std::vector<NamedValues>, 3> values = {};  // as in `sentValues`

  void visit(StateBytes& bytes) {
    std::uint64_t magic = kStateMagic;
    bytes.number(magic);
    checkFits(magic == kStateMagic);
    bytes.number(iteration);
    bytes.number(epoch);
    bytes.number(updates);
    bytes.number(score);
    bytes.list(blocks);
    for (auto& list : values) bytes.list(list);
  }
};

/// What a node reports about its state.
struct Offer {
  std::int64_t inTraining = 0, epoch = 0, iteration = 0;
  std::uint64_t bytes = 0, hash = 0;

  auto progress() const { return std::tuple(inTraining, epoch, iteration); }
};

}  // namespace

std::vector<std::byte> packModel(Model& model) {
  model.context().synchronize();
  State state{.iteration = model.iteration(),
              .epoch = model.epoch(),
              .updates = model.updates(),
              .score = model.score()};
  for (const StateBlock* block : sentBlocks(model)) state.blocks.push_back({block->name, block->values});
  for (std::size_t l = 0; l < state.values.size(); ++l) state.values[l] = *sentValues(model)[l];
  StateBytes bytes;
  state.visit(bytes);
  return bytes.take();
}

void unpackModel(std::span<const std::byte> bytes, Model& model) {
  State state;
  StateBytes packed(bytes);
  state.visit(packed);
  packed.finish();
  checkFits(state.iteration >= 0 && state.epoch >= 0 && state.updates >= 0);
  const auto blocks = sentBlocks(model);
  checkFits(
      std::ranges::equal(blocks, state.blocks, [](const StateBlock* block, const NamedValues& received) {
        return received.name == block->name && received.values.shape() == block->values.shape() &&
               received.values.dtype() == block->values.dtype();
      }));
  for (std::size_t b = 0; b < blocks.size(); ++b) copy(state.blocks[b].values, blocks[b]->values);
  for (std::size_t l = 0; l < state.values.size(); ++l) *sentValues(model)[l] = std::move(state.values[l]);
  model.setCounters(state.iteration, state.epoch);
  model.setUpdates(state.updates);
  model.setScore(state.score);
  model.setLoadedFrom({});
}

int shareModel(NodeLink& link, Model& model, bool inTraining) {
  auto own = packModel(model);
  ByteHash hash;
  hash.add(own);
  const Offer offer{.inTraining = inTraining ? 1 : 0,
                    .epoch = model.epoch(),
                    .iteration = model.iteration(),
                    .bytes = own.size(),
                    .hash = hash.value()};
  std::vector<Offer> all(static_cast<std::size_t>(link.nodes()));
  link.gather(std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(std::span(all)));
  // The first node of those with the largest progress.
  const auto ahead = std::ranges::max_element(all, {}, &Offer::progress);
  const int source = static_cast<int>(ahead - all.begin());
  const auto lacks = [&](int node) {
    const Offer& offered = all[static_cast<std::size_t>(node)];
    return offered.bytes != ahead->bytes || offered.hash != ahead->hash;
  };
  const bool isSource = source == link.node(), receives = !isSource && lacks(link.node());
  // The state also holds momentum, averages and the like, so it may be larger than this model's.
  require(!receives || ahead->bytes <= 64 * own.size() + (std::uint64_t{16} << 20),
          "nodes: {} offers a state of {} bytes, and this model has {}", link.nameOf(source), ahead->bytes,
          own.size());
  if (!isSource) own.resize(receives ? static_cast<std::size_t>(ahead->bytes) : 0);
  NodeMessages(link, kChannel, kPiecesUnderWay)
      .exchange(
          std::span<const std::byte>(own).first(isSource ? own.size() : 0),
          [&](int n) { return std::span(own).first(n == source ? own.size() : 0); }, lacks);
  if (receives) unpackModel(own, model);
  return source;
}

}  // namespace muster
