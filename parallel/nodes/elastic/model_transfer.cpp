#include "muster/parallel/nodes/elastic/model_transfer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "muster/parallel/nodes/byte_hash.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {
namespace {

constexpr std::uint64_t kModelMagic = 0x6d7573746d6f6432;
constexpr int kChannel = 1;                     // of NodeLink::gather, which is not used meanwhile
constexpr std::size_t kPiece = 64 * 1024;       // heartbeats get through between pieces
constexpr std::size_t kPiecesUnderWay = 16;     // in transfer at a time, for each node
constexpr std::size_t kMostTexts = 1024;        // most bytes of a name
constexpr std::uint64_t kMostValues = 1 << 20;  // most named values of a model

class Packer {
 public:
  void add(const void* bytes, std::size_t count) {
    const auto* const begin = static_cast<const std::byte*>(bytes);
    bytes_.insert(bytes_.end(), begin, begin + count);
  }
  template <typename T>
  void add(T number) {
    add(&number, sizeof number);
  }
  void add(std::string_view name, const Tensor& values) {
    const Tensor here = values.device().isCpu() ? values : copyTo(values, Device::cpu());
    add(static_cast<std::uint64_t>(name.size()));
    add(name.data(), name.size());
    add(static_cast<std::int64_t>(here.dtype()));
    add(static_cast<std::int64_t>(here.shape().rank()));
    for (const auto size : here.shape()) add(size);
    add(here.raw(), here.bytes());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> take(std::uint64_t count) {
    check(count <= bytes_.size());
    const auto part = bytes_.first(static_cast<std::size_t>(count));
    bytes_ = bytes_.subspan(part.size());
    return part;
  }
  template <typename T>
  T number() {
    T number{};
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }
  NamedValues values() {
    const auto length = number<std::uint64_t>();
    check(length <= kMostTexts);
    const auto name = take(length);
    const auto kind = number<std::int64_t>(), rank = number<std::int64_t>();
    const std::array kinds{DType::Float32, DType::Float64, DType::UInt8, DType::Int64};
    const auto dtype =
        std::ranges::find(kinds, kind, [](DType one) { return static_cast<std::int64_t>(one); });
    check(dtype != kinds.end() && rank >= 0 && rank <= Shape::kMaxRank);
    std::array<std::int64_t, Shape::kMaxRank> sizes{};
    std::uint64_t count = sizeOf(*dtype);
    for (std::int64_t i = 0; i < rank; ++i) {
      const auto size = sizes[static_cast<std::size_t>(i)] = number<std::int64_t>();
      check(size >= 0 && (size == 0 || count <= bytes_.size() / static_cast<std::uint64_t>(size)));
      count *= static_cast<std::uint64_t>(size);
    }
    const auto bytes = take(count);
    NamedValues found{{reinterpret_cast<const char*>(name.data()), name.size()},
                      Tensor::empty(Shape(std::span(sizes).first(static_cast<std::size_t>(rank))), *dtype)};
    if (!bytes.empty()) std::memcpy(found.values.raw(), bytes.data(), bytes.size());
    return found;
  }
  void finish() const { check(bytes_.empty()); }
  static void check(bool possible) { require(possible, "nodes: the received state does not fit this model"); }

 private:
  std::span<const std::byte> bytes_;
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

/// What a node reports about its state.
struct Offer {
  std::int64_t inTraining = 0, epoch = 0, iteration = 0;
  std::uint64_t bytes = 0, hash = 0;

  auto progress() const { return std::tuple(inTraining, epoch, iteration); }
};

/// Transfers bytes in pieces, kPiecesUnderWay at a time.
template <typename Add>
void inPieces(NodeLink& link, NodeCall& call, std::size_t bytes, Add add) {
  for (std::size_t begin = 0; begin < bytes;) {
    call.clear();
    for (std::size_t i = 0; i < kPiecesUnderWay && begin < bytes; ++i) {
      const std::size_t count = std::min(kPiece, bytes - begin);
      add(begin, count);
      begin += count;
    }
    link.begin(call);
    link.wait(call);
  }
}

}  // namespace

std::vector<std::byte> packModel(Model& model) {
  model.context().synchronize();
  Packer packed;
  packed.add(kModelMagic);
  packed.add(model.iteration());
  packed.add(model.epoch());
  packed.add(model.updates());
  packed.add(model.score());
  for (const StateBlock* block : sentBlocks(model)) packed.add(block->name, block->values);
  for (const auto* list : sentValues(model)) {
    packed.add(static_cast<std::uint64_t>(list->size()));
    for (const auto& [name, values] : *list) packed.add(name, values);
  }
  return packed.take();
}

void unpackModel(std::span<const std::byte> bytes, Model& model) {
  Unpacker packed(bytes);
  Unpacker::check(packed.number<std::uint64_t>() == kModelMagic);
  const auto iteration = packed.number<std::int64_t>(), epoch = packed.number<std::int64_t>();
  const auto updates = packed.number<std::int64_t>();
  const auto score = packed.number<double>();
  Unpacker::check(iteration >= 0 && epoch >= 0 && updates >= 0);
  const auto blocks = sentBlocks(model);
  std::vector<Tensor> values;
  for (const StateBlock* block : blocks) {
    const NamedValues received = packed.values();
    Unpacker::check(received.name == block->name && received.values.shape() == block->values.shape() &&
                    received.values.dtype() == block->values.dtype());
    values.push_back(received.values);
  }
  std::array<std::vector<NamedValues>, 3> lists;
  for (auto& list : lists) {
    const auto count = packed.number<std::uint64_t>();
    Unpacker::check(count <= kMostValues);
    for (std::uint64_t i = 0; i < count; ++i) list.push_back(packed.values());
  }
  packed.finish();
  for (std::size_t b = 0; b < blocks.size(); ++b) copy(values[b], blocks[b]->values);
  for (std::size_t l = 0; l < lists.size(); ++l) *sentValues(model)[l] = std::move(lists[l]);
  model.setCounters(iteration, epoch);
  model.setUpdates(updates);
  model.setScore(score);
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
  NodeCall call(kPiecesUnderWay * all.size());
  if (source == link.node()) {
    inPieces(link, call, own.size(), [&](std::size_t begin, std::size_t count) {
      for (int n = 0; n < link.nodes(); ++n)
        if (lacks(n)) call.send(n, kChannel, std::span(own).subspan(begin, count));
    });
  } else if (lacks(link.node())) {
    // The state also holds momentum, averages and the like, so it may be larger than this model's.
    require(ahead->bytes <= 64 * own.size() + (std::uint64_t{16} << 20),
            "nodes: {} offers a state of {} bytes, and this model has {}", link.nameOf(source), ahead->bytes,
            own.size());
    own.resize(static_cast<std::size_t>(ahead->bytes));
    inPieces(link, call, own.size(), [&](std::size_t begin, std::size_t count) {
      call.receive(source, kChannel, std::span(own).subspan(begin, count));
    });
    unpackModel(own, model);
  }
  return source;
}

}  // namespace muster
