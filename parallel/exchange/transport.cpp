#include "muster/parallel/exchange/transport.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <thread>

#include "muster/built.h"
#include "muster/core/base/log.h"
#include "muster/core/base/mutex.h"
#include "muster/core/base/start_thread.h"

namespace muster {
namespace {

std::size_t indexOf(int device) {
  return static_cast<std::size_t>(device);
}

/// Copies by `copy`, ordered by events between the devices' compute streams: from GPU to GPU, or through
/// pinned memory of the host.
class OrderedCopies final : public DeviceCopies {
 public:
  /// @param stagingBytes  pinned memory for each pair of devices; nothing: copies do not go through the host.
  OrderedCopies(std::vector<Context*> contexts, std::optional<std::size_t> stagingBytes)
      : contexts_(std::move(contexts)),
        stagingBytes_(static_cast<std::int64_t>(stagingBytes.value_or(0))),
        used_(contexts_.size() * contexts_.size()) {
    for (Context* context : contexts_) {
      ready_.emplace_back(*context);
      done_.emplace_back(*context);
    }
    for (std::size_t pair = 0; stagingBytes && pair < used_.size(); ++pair) {
      const bool itself = pair % contexts_.size() == pair / contexts_.size();
      staging_.push_back(itself ? Tensor() : Tensor::pinned({stagingBytes_}, DType::UInt8));
    }
  }

  void run(std::span<const Transfer> transfers) override {
    const bool staged = !staging_.empty();
    std::ranges::fill(used_, 0);
    for (const auto& t : transfers) {
      sent_[indexOf(t.from)] = received_[indexOf(t.to)] = 1;
      if (!staged) continue;
      Tensor place = nextPlace(t);
      copy(t.source, place, *contexts_[indexOf(t.from)]);
    }
    for (std::size_t d = 0; d < contexts_.size(); ++d)
      if (sent_[d] || received_[d]) ready_[d].record(*contexts_[d]);
    for (const auto& t : transfers) ready_[indexOf(t.from)].waitOn(*contexts_[indexOf(t.to)]);
    std::ranges::fill(used_, 0);  // transfers arrive in the same order
    for (const auto& t : transfers) {
      Tensor target = t.target;
      copy(staged ? nextPlace(t) : t.source, target, *contexts_[indexOf(t.to)]);
    }
    for (std::size_t d = 0; d < contexts_.size(); ++d)
      if (received_[d]) done_[d].record(*contexts_[d]);
    // The source may change only after it has been read.
    for (const auto& t : transfers) done_[indexOf(t.to)].waitOn(*contexts_[indexOf(t.from)]);
    std::ranges::fill(sent_, 0);
    std::ranges::fill(received_, 0);
  }

 private:
  /// The place of a transfer in the staging memory of its pair of devices.
  Tensor nextPlace(const Transfer& t) {
    const std::size_t pair = indexOf(t.from) * contexts_.size() + indexOf(t.to);
    const auto bytes = static_cast<std::int64_t>(t.source.bytes());
    if (used_[pair] + bytes > stagingBytes_)
      throw InvalidArgument(fmt::format("transport: {} bytes from {} to {} are more than the {} planned for",
                                        used_[pair] + bytes, contexts_[indexOf(t.from)]->device().toString(),
                                        contexts_[indexOf(t.to)]->device().toString(), stagingBytes_));
    auto* const place = static_cast<std::byte*>(staging_[pair].raw()) + used_[pair];
    used_[pair] += bytes;
    return Tensor::view(place, t.source.shape(), t.source.dtype(), Device::cpu(), t.source.layout());
  }

  const std::vector<Context*> contexts_;
  const std::int64_t stagingBytes_;
  std::vector<std::int64_t> used_;   // [from * devices + to] bytes
  std::vector<Tensor> staging_;      // [from * devices + to]; none: copies do not go through the host
  std::vector<Event> ready_, done_;  // [device]
  std::vector<char> sent_ = std::vector<char>(contexts_.size()), received_ = sent_;
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
      return std::make_unique<OrderedCopies>(contexts, std::nullopt);
    case TransportKind::Host:
      break;
  }
  return std::make_unique<OrderedCopies>(contexts, stagingBytes);
}

/// What device `from` sends to device `to`: bytes that identify both, so that memory that was not written,
/// or written by another transfer, is found.
Tensor pattern(int from, int to) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 20;
  Tensor bytes = Tensor::empty({kBytes}, DType::UInt8, Device::cpu());
  auto values = bytes.span<std::uint8_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<std::uint8_t>((i + i / 255) * 7 + static_cast<std::size_t>(16 * from + to) * 37 + 1);
  return bytes;
}

/// Aborts copies that have not ended in time, on a thread of its own: the call that enqueues them may wait,
/// too.
class Patience {
 public:
  Patience(DeviceCopies& copies, std::chrono::milliseconds patience)
      : thread_(
            startThread("the test of a transport", [this, &copies, patience](const std::stop_token& stop) {
              Lock lock(mutex_);
              ended_.wait_for(lock, stop, patience, [] { return false; });
              if (stop.stop_requested()) return;
              over_ = true;
              copies.abort();
            })) {}

  bool isOver() const { return over_; }

 private:
  Mutex mutex_;
  std::condition_variable_any ended_;
  std::atomic<bool> over_{false};
  std::jthread thread_;  // last: it uses the other members
};

/// Waits until all devices have done what was enqueued. @throws DeviceFailure if patience ends before.
void awaitAll(std::span<Context* const> contexts, Patience& patience) {
  for (Context* context : contexts) {
    Event end(*context);
    end.record(*context);
    while (!end.complete()) {
      if (patience.isOver()) throw DeviceFailure("transport: copies between devices do not end");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace

void proveCopies(DeviceCopies& copies, std::span<Context* const> contexts, std::chrono::milliseconds limit) {
  const auto devices = static_cast<int>(contexts.size());
  std::vector<Transfer> transfers;
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to) {
      if (from == to) continue;
      const Tensor sent = pattern(from, to);
      transfers.push_back({from, to, copyTo(sent, contexts[indexOf(from)]->device()),
                           Tensor::zeros(sent.shape(), sent.dtype(), contexts[indexOf(to)]->device())});
    }
  try {
    Patience patience(copies, limit);
    copies.run(transfers);
    awaitAll(contexts, patience);
    for (const auto& t : transfers) {
      const Tensor got = copyTo(t.target, Device::cpu());
      if (std::memcmp(got.raw(), pattern(t.from, t.to).raw(), got.bytes()) != 0)
        throw DeviceFailure(fmt::format("transport: {} received other bytes than {} sent",
                                        contexts[indexOf(t.to)]->device().toString(),
                                        contexts[indexOf(t.from)]->device().toString()));
    }
  } catch (...) {
    copies.abort();
    throw;
  }
}

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
      if (kind != TransportKind::Host && anyGpu(contexts)) proveCopies(*copies, contexts);
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
