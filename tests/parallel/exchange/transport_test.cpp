#include "muster/parallel/exchange/transport.h"

#include "muster/core/base/log.h"
#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

namespace {

/// Three contexts, each with a tensor filled with its number and an inbox filled with NaN.
struct Ring {
  Ring() {
    for (int d = 0; d < 3; ++d) {
      sources.push_back(Tensor::of({static_cast<float>(d), static_cast<float>(d) + 0.5f}, {2}));
      const float nan = std::numeric_limits<float>::quiet_NaN();
      targets.push_back(Tensor::of({nan, nan}, {2}));
    }
  }
  std::vector<Context*> all() { return {&contexts[0], &contexts[1], &contexts[2]}; }

  Context contexts[3];
  std::vector<Tensor> sources, targets;
};

}  // namespace

TEST_CASE("either transport runs several copies at the same time") {
  for (const TransportKind kind : {TransportKind::Peers, TransportKind::Host}) {
    Ring ring;
    const auto transport = makeTransport(kind, ring.all(), 8);
    CHECK(transport.kind == kind);
    for (int again = 0; again < 2; ++again)
      for (int shift = 1; shift <= 2; ++shift) {
        std::vector<Transfer> transfers;
        for (int d = 0; d < 3; ++d)
          transfers.push_back({d, (d + shift) % 3, ring.sources[static_cast<std::size_t>(d)],
                               ring.targets[static_cast<std::size_t>((d + shift) % 3)]});
        transport.copies->run(transfers);
        for (int d = 0; d < 3; ++d) {
          const float* got = ring.targets[static_cast<std::size_t>((d + shift) % 3)].data<float>();
          CHECK(got[0] == static_cast<float>(d));
          CHECK(got[1] == static_cast<float>(d) + 0.5f);
        }
      }
  }
}

TEST_CASE("several transfers from one device to another use separate parts of the host's memory") {
  Ring ring;
  const auto transport = makeTransport(TransportKind::Host, ring.all(), 8);
  std::vector<Transfer> halves;
  for (int i = 1; i >= 0; --i)
    halves.push_back({0, 2, ring.sources[0].slice(i, {1}), ring.targets[2].slice(1 - i, {1})});
  transport.copies->run(halves);
  CHECK(ring.targets[2].data<float>()[0] == 0.5f);
  CHECK(ring.targets[2].data<float>()[1] == 0.0f);
}

TEST_CASE("a transfer that is larger than planned is refused, and does not write past the end") {
  Ring ring;
  const auto transport = makeTransport(TransportKind::Host, ring.all(), 4);
  const Transfer both{1, 2, ring.sources[1], ring.targets[2]};
  CHECK_REFUSED(transport.copies->run({&both, 1}),
                "transport: 8 bytes from cpu to cpu are more than the 4 planned for");
}

TEST_CASE("a transport that does not work is replaced by the next, which is named") {
  Ring ring;
  std::vector<std::string> warnings;
  const auto before = setLogSink([&](LogLevel, std::string_view text) { warnings.emplace_back(text); });
  const auto transportUsed = [&](TransportKind first, TransportKind broken) {
    const auto transport = makeTransport(first, ring.all(), 8, broken);
    transport.copies->run(std::vector<Transfer>{{1, 2, ring.sources[1], ring.targets[2]}});
    CHECK(ring.targets[2].data<float>()[1] == 1.5f);
    return transport.kind;
  };
  CHECK(transportUsed(TransportKind::Nccl, TransportKind::Nccl) == TransportKind::Peers);
  CHECK(transportUsed(TransportKind::Peers, TransportKind::Peers) == TransportKind::Host);
  CHECK(transportUsed(TransportKind::Host, TransportKind::Peers) == TransportKind::Host);
  CHECK(thrown<DeviceFailure>([&] {
          makeTransport(TransportKind::Host, ring.all(), 8, TransportKind::Host);
        }) == "transport: the host fails in this test");
  setLogSink(before);
  CHECK(warnings ==
        std::vector<std::string>{
            "replicas cannot be merged by NCCL and are merged by peer copies: transport: NCCL fails "
            "in this test",
            "replicas cannot be merged by peer copies and are merged by the host: transport: peer "
            "copies fails in this test"});
}

namespace {

/// A faulty transport between contexts on the CPU.
class Faulty final : public DeviceCopies {
 public:
  enum class Fault { None, Lost, OneByte, Swapped, Hangs };
  explicit Faulty(Fault fault) : fault_(fault) {}

  void run(std::span<const Transfer> transfers) override {
    if (fault_ == Fault::Hangs) {
      aborted_.wait(false);
      throw DeviceFailure("aborted");
    }
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      const auto& from = transfers[fault_ == Fault::Swapped ? (t + 1) % transfers.size() : t];
      Tensor target = transfers[t].target;
      if (fault_ == Fault::Lost && t == 3) continue;
      copy(from.source, target);
      if (fault_ == Fault::OneByte && t == 4) target.data<std::uint8_t>()[target.elements() - 1] ^= 1;
    }
  }
  void abort() noexcept override {
    aborted_ = true;
    aborted_.notify_all();
  }
  bool aborted() const { return aborted_; }

 private:
  const Fault fault_;
  std::atomic<bool> aborted_{false};
};

}  // namespace

TEST_CASE("a transport that loses, changes or swaps bytes, or never ends, is found") {
  using Fault = Faulty::Fault;
  Ring ring;
  const auto contexts = ring.all();
  Faulty good(Fault::None);
  CHECK_NOTHROW(proveCopies(good, contexts));
  CHECK_FALSE(good.aborted());
  for (const Fault fault : {Fault::Lost, Fault::OneByte, Fault::Swapped}) {
    Faulty copies(fault);
    CHECK(thrown<DeviceFailure>([&] { proveCopies(copies, contexts); }) ==
          "transport: cpu received other bytes than cpu sent");
    CHECK(copies.aborted());
  }
  Faulty hanging(Fault::Hangs);
  CHECK(thrown<DeviceFailure>([&] { proveCopies(hanging, contexts, std::chrono::milliseconds(20)); }) ==
        "aborted");
}

TEST_CASE("without NCCL devices report the reason, and its transport is refused") {
  if (!cudaBuilt()) {
    const auto links = linksBetween(std::vector{Device::cuda(0), Device::cuda(1)});
    CHECK(links.whyNoNccl == "this build has no CUDA");
    CHECK_FALSE(links.peers);
    Ring ring;
    CHECK(thrown<DeviceUnavailable>([&] { makeTransport(TransportKind::Nccl, ring.all(), 8); }) ==
          "transport: this build has no CUDA, and so no NCCL");
  }
}
