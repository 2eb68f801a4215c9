#include "muster/parallel/exchange/transport.h"

#include <algorithm>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"

namespace muster {
namespace {

/// Copies by `copy`, ordered by events between the devices' compute streams.
class OrderedCopies : public DeviceCopies {
 public:
  explicit OrderedCopies(std::vector<Context*> contexts) : contexts_(std::move(contexts)) {
    for (Context* context : contexts_) {
      ready_.emplace_back(*context);
      done_.emplace_back(*context);
    }
  }

  void run(std::span<const Transfer> transfers) override {
    leave(transfers);
    for (const auto& t : transfers) sent_[at(t.from)] = received_[at(t.to)] = 1;
    for (std::size_t d = 0; d < contexts_.size(); ++d)
      if (sent_[d] || received_[d]) ready_[d].record(*contexts_[d]);
    for (const auto& t : transfers) ready_[at(t.from)].waitOn(*contexts_[at(t.to)]);
    for (const auto& t : transfers) arrive(t);
    for (std::size_t d = 0; d < contexts_.size(); ++d)
      if (received_[d]) done_[d].record(*contexts_[d]);
    // The source may change only after it has been read.
    for (const auto& t : transfers) done_[at(t.to)].waitOn(*contexts_[at(t.from)]);
    std::ranges::fill(sent_, 0);
    std::ranges::fill(received_, 0);
  }

 protected:
  /// Enqueues the work of the sources' streams.
  virtual void leave(std::span<const Transfer> transfers) = 0;
  /// Enqueues the work of the target's stream, after the source is ready.
  virtual void arrive(const Transfer& transfer) = 0;

  static std::size_t at(int device) { return static_cast<std::size_t>(device); }
  const std::vector<Context*> contexts_;

 private:
  std::vector<Event> ready_, done_;  // [device]
  std::vector<char> sent_ = std::vector<char>(contexts_.size()), received_ = sent_;
};

class PeerCopies final : public OrderedCopies {
 public:
  using OrderedCopies::OrderedCopies;

 private:
  void leave(std::span<const Transfer>) override {}
  void arrive(const Transfer& t) override {
    Tensor target = t.target;
    copy(t.source, target, *contexts_[at(t.to)]);
  }
};

class HostCopies final : public OrderedCopies {
 public:
  HostCopies(std::vector<Context*> contexts, std::size_t stagingBytes)
      : OrderedCopies(std::move(contexts)),
        used_(contexts_.size() * contexts_.size()),
        stagingBytes_(static_cast<std::int64_t>(stagingBytes)) {
    for (std::size_t pair = 0; pair < used_.size(); ++pair) {
      const bool itself = pair % contexts_.size() == pair / contexts_.size();
      staging_.push_back(itself ? Tensor() : Tensor::pinned({stagingBytes_}, DType::UInt8));
    }
  }

 private:
  void leave(std::span<const Transfer> transfers) override {
    std::ranges::fill(used_, 0);
    for (const auto& t : transfers) {
      Tensor place = nextPlace(t);
      copy(t.source, place, *contexts_[at(t.from)]);
    }
    std::ranges::fill(used_, 0);  // transfers arrive in the same order
  }
  void arrive(const Transfer& t) override {
    Tensor target = t.target;
    copy(nextPlace(t), target, *contexts_[at(t.to)]);
  }

  /// The place of a transfer in the staging memory of its pair of devices.
  Tensor nextPlace(const Transfer& t) {
    const std::size_t pair = at(t.from) * contexts_.size() + at(t.to);
    const auto bytes = static_cast<std::int64_t>(t.source.bytes());
    if (used_[pair] + bytes > stagingBytes_)
      throw InvalidArgument(fmt::format("transport: {} bytes from {} to {} are more than the {} planned for",
                                        used_[pair] + bytes, contexts_[at(t.from)]->device().toString(),
                                        contexts_[at(t.to)]->device().toString(), stagingBytes_));
    auto* const place = static_cast<std::byte*>(staging_[pair].raw()) + used_[pair];
    used_[pair] += bytes;
    return Tensor::view(place, t.source.shape(), t.source.dtype(), Device::cpu(), t.source.layout());
  }

  std::vector<std::int64_t> used_;  // [from * devices + to] bytes
  const std::int64_t stagingBytes_;
  std::vector<Tensor> staging_;  // [from * devices + to]
};

bool anyGpu(std::span<Context* const> contexts) {
  return std::ranges::any_of(contexts, [](const Context* c) { return !c->device().isCpu(); });
}

bool allReachAll(std::span<Context* const> contexts) {
  if (!anyGpu(contexts)) return true;
  std::vector<Device> devices;
  for (const Context* context : contexts) devices.push_back(context->device());
  return linksBetween(devices).peers;
}

std::unique_ptr<DeviceCopies> makeOne(TransportKind kind, const std::vector<Context*>& contexts,
                                      std::size_t stagingBytes) {
  switch (kind) {
    case TransportKind::Nccl:
      if constexpr (kCudaBuilt) return cuda::makeNcclCopies(contexts);
      throw DeviceUnavailable("transport: this build has no CUDA, and so no NCCL");
    case TransportKind::Peers:
      if constexpr (kCudaBuilt)
        if (anyGpu(contexts)) cuda::enablePeers(contexts);
      return std::make_unique<PeerCopies>(contexts);
    case TransportKind::Host:
      break;
  }
  return std::make_unique<HostCopies>(contexts, stagingBytes);
}

/// Sends a byte from each device to each other and waits, because a link between devices is only made at its
/// first use. @throws DeviceFailure if a link cannot be made; no transfer is in progress then.
void tryOut(DeviceCopies& copies, std::span<Context* const> contexts) {
  const auto devices = static_cast<int>(contexts.size());
  std::vector<Tensor> places;  // [device] a byte of its own and one from each other
  for (const Context* context : contexts)
    places.push_back(Tensor::zeros({devices}, DType::UInt8, context->device()));
  const auto place = [&](int device, int of) {
    return places[static_cast<std::size_t>(device)].slice(of, {1});
  };
  std::vector<Transfer> transfers;
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to)
      if (from != to) transfers.push_back({from, to, place(from, from), place(to, from)});
  try {
    copies.run(transfers);
    for (Context* context : contexts) context->synchronize();
  } catch (...) {
    copies.abort();
    throw;
  }
}

}  // namespace

Links linksBetween(std::span<const Device> devices) {
  if constexpr (kCudaBuilt) return cuda::linksBetween(devices);
  return {.whyNoNccl = "this build has no CUDA"};
}

TransportKind bestTransport(const Links& links) {
  if (links.whyNoNccl.empty()) return TransportKind::Nccl;
  return links.peers ? TransportKind::Peers : TransportKind::Host;
}

Transport makeTransport(TransportKind kind, const std::vector<Context*>& contexts, std::size_t stagingBytes,
                        std::optional<TransportKind> failing) {
  for (;;) try {
      if (kind == failing) throw DeviceFailure(fmt::format("transport: {} fails in this test", nameOf(kind)));
      auto copies = makeOne(kind, contexts, stagingBytes);
      if (kind != TransportKind::Host && anyGpu(contexts)) tryOut(*copies, contexts);
      return {kind, std::move(copies)};
    } catch (const DeviceFailure& error) {
      if (kind == TransportKind::Host) throw;
      const TransportKind next =
          kind == TransportKind::Nccl && allReachAll(contexts) ? TransportKind::Peers : TransportKind::Host;
      logWarning("replicas cannot be merged by {} and are merged by {}: {}", nameOf(kind), nameOf(next),
                 error.what());
      kind = next;
    }
}

}  // namespace muster
