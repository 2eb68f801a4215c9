#include "muster/parallel/exchange/mixing.h"

#include "muster/core/base/random.h"
#include "muster/parallel/exchange/device_exchange.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/exchange/merge_ops.h"
#include "tests/parallel/replicas.h"
#include "tests/support/allocations.h"
#include "tests/support/rounding.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

enum MixedBlock { Parameters, Own, Velocity, Residual, Moments };

/// Replicas with a block of each merge rule, [2 * half].
template <typename Value>
Replicas replicasWith(int workers, std::int64_t half, Value value) {
  return Replicas(firstWorkers(workers),
                  {{"parameters", BlockKind::Parameters, MergeRule::Average, 2 * half},
                   {"own", BlockKind::Statistics, MergeRule::Keep, 2 * half},
                   {"velocity", BlockKind::UpdaterState, MergeRule::Average, 2 * half},
                   {"residual", BlockKind::Statistics, MergeRule::Reset, 2 * half},
                   {"moments", BlockKind::Statistics, MergeRule::Moments, 2 * half}},
                  value);
}

/// Normally distributed; variances (the second half of the moments) are squares.
Replicas normal(int workers, std::int64_t half) {
  return replicasWith(workers, half, [half](int w, std::size_t b, std::int64_t i) {
    const double x = RandomStream(static_cast<std::uint64_t>(w), "x").normal(static_cast<std::uint64_t>(i));
    return b == Moments && i >= half ? x * x : x + static_cast<double>(b);
  });
}

/// Small integers, whose combinations with eighths are exact.
Replicas integers(int workers, std::int64_t half) {
  return replicasWith(workers, half, [](int w, std::size_t b, std::int64_t i) {
    return static_cast<double>((7 * w + 3 * i + static_cast<std::int64_t>(b)) % 101);
  });
}

std::unique_ptr<Exchange> exchangeOf(const Replicas& replicas, int devices,
                                     TransportKind kind = TransportKind::Peers) {
  if (devices == 0) return std::make_unique<HostExchange>(replicas.states, UpdaterState::Average);
  std::vector<DeviceGroup> groups(std::min(replicas.owned.size(), static_cast<std::size_t>(devices)));
  for (std::size_t w = 0; w < replicas.owned.size(); ++w) groups[w % groups.size()].workers.push_back(w);
  return std::make_unique<DeviceExchange>(replicas.states, UpdaterState::Average,
                                          MergePlan(std::move(groups), kind));
}

/// Mixes in one thread per participant.
void mixAll(Exchange& exchange, const Mixing& mixing) {
  Context context;
  for (int p = 0; p < exchange.participants(); ++p) exchange.arrive(p, context);
  {
    std::vector<std::jthread> threads;
    for (int p = 0; p < exchange.participants(); ++p)
      threads.emplace_back([&, p] {
        Context own;
        exchange.begin(p);
        MergeOps(exchange, p, own).mixState(mixing);
        exchange.end(p);
      });
  }
  exchange.wait();
}

/// Worker 0 is unchanged, worker 1 becomes a copy of 0, all others mix all workers with factors in eighths.
Mixing eighths(int workers) {
  const auto count = static_cast<std::size_t>(workers);
  Mixing mixing(count, count * count);
  for (std::size_t w = 1; w < count; ++w) {
    std::vector<MixingShare> row;
    for (std::size_t j = 0; j < count; ++j)
      row.push_back({j, w == 1 ? (j == 0 ? 1.0 : 0.0) : static_cast<double>((3 * w + 5 * j) % 8) / 8});
    mixing.setRow(w, row);
  }
  mixing.setMerged(std::vector<double>(count, 1));
  return mixing;
}

bool sameBits(const float* a, const float* b, std::int64_t elements) {
  return std::memcmp(a, b, static_cast<std::size_t>(elements) * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("every replica gets its own combination of the old values, on the host and on devices") {
  for (const TransportKind kind : {TransportKind::Peers, TransportKind::Host})
    for (const int workers : {1, 2, 3, 5, 8})
      for (const int devices : {0, 1, 2, 3})
        for (const std::int64_t half : {0, 1, 8, 17, 2050, 20000}) {
          if (devices > workers || (devices == 0 && kind == TransportKind::Host)) continue;  // as another one
          if (half == 20000 && workers != 3) continue;
          INFO("workers ", workers, ", devices ", devices, ", half ", half);
          auto host = normal(workers, half), there = normal(workers, half);
          mixAll(*exchangeOf(host, 0), eighths(workers));
          mixAll(*exchangeOf(there, devices, kind), eighths(workers));
          for (int w = 0; w < workers; ++w)
            for (const int b : {Parameters, Own, Velocity, Residual, Moments})
              CHECK(sameBits(host.values(w, b), there.values(w, b), 2 * half));
          const auto before = integers(workers, half);
          auto replicas = integers(workers, half);
          const auto exchange = exchangeOf(replicas, devices, kind);
          const auto mixing = eighths(workers);
          mixAll(*exchange, mixing);
          bool good = true;
          for (const int b : {Parameters, Velocity})
            for (int w = 0; w < workers; ++w)
              for (std::int64_t i = 0; i < 2 * half; ++i) {
                double wanted = w == 0 ? before.values(0, b)[i] : 0;
                for (const auto& [j, factor] : mixing.row(static_cast<std::size_t>(w)))
                  wanted += factor * before.values(static_cast<int>(j), b)[i];
                good = good && replicas.values(w, b)[i] == static_cast<float>(wanted);
              }
          CHECK(good);
          for (int w = 0; w < workers; ++w) {
            CHECK(sameBits(replicas.values(w, Own), before.values(w, Own), 2 * half));
            // A replica that is not mixed keeps the blocks that a merge would set to zero.
            const bool left = sameBits(replicas.values(w, Residual), before.values(w, Residual), 2 * half);
            const float* residual = replicas.values(w, Residual);
            CHECK(
                (w == 0 ? left : std::all_of(residual, residual + 2 * half, [](float x) { return x == 0; })));
          }
        }
}

TEST_CASE("the merged copy gets the bits of a merge of the old values") {
  const std::vector<double> weights = {1, 0, 2, 3};
  for (const int devices : {0, 1, 2, 4}) {
    CAPTURE(devices);
    auto mixed = normal(4, 300), merged = normal(4, 300);
    const auto mixing = [&] {
      auto all = eighths(4);
      all.setMerged(weights);
      return all;
    }();
    const auto exchange = exchangeOf(mixed, devices), wanted = exchangeOf(merged, devices);
    mixAll(*exchange, mixing);
    Context context;
    for (int p = 0; p < 4; ++p) MergeOps(*wanted, p, context).mergeState(weights);
    for (const int b : {Parameters, Velocity, Residual, Moments})
      for (std::size_t w = 0; w < 4; ++w) {
        const auto at = static_cast<std::size_t>(b);
        CHECK(sameBits(exchange->blocks()[at].mergedCopies[w].data<float>(),
                       wanted->blocks()[at].mergedCopies[w].data<float>(), 600));
      }
  }
}

TEST_CASE("a replica that no row reads has no effect, and workers may share a row") {
  for (const int devices : {0, 2}) {
    auto replicas = integers(4, 20);
    const auto before = integers(4, 20);
    std::fill_n(replicas.values(3, Parameters), 40, std::numeric_limits<float>::quiet_NaN());
    Mixing mixing(4, 4);
    mixing.setRow(1, std::vector<MixingShare>{{0, 0.5}, {2, 0.5}, {3, 0}});
    mixing.shareRow(2, 1);
    mixing.shareRow(3, 1);
    mixAll(*exchangeOf(replicas, devices), mixing);
    for (std::int64_t i = 0; i < 40; ++i)
      for (const int w : {1, 2, 3})
        CHECK(replicas.values(w, Parameters)[i] ==
              (before.values(0, Parameters)[i] + before.values(2, Parameters)[i]) / 2);
    CHECK(sameBits(replicas.values(0, Parameters), before.values(0, Parameters), 40));
  }
}

TEST_CASE("mixing allocates nothing, and counts the bytes that a worker would send") {
  for (const int devices : {0, 2}) {
    auto replicas = normal(4, 100);
    const auto exchange = exchangeOf(replicas, devices);
    Mixing mixing(4, 8);
    const std::vector<MixingShare> pair = {{0, 0.5}, {1, 0.5}};
    const std::vector<double> weights(4, 1);
    Context context;
    long before = 0;
    for (int time = 0; time < 2; ++time) {
      before = allocations();
      mixing.clear();
      mixing.setRow(0, pair);
      mixing.setRow(2, pair);
      mixing.setMerged(weights);
      for (int p = 0; p < 4; ++p) {
        MergeOps ops(*exchange, p, context);
        ops.mixState(mixing);
        // Worker 0 sends parameters, velocity and moments to one worker, worker 1 to two; 2 and 3 send
        // nothing.
        CHECK(ops.bytes() == (p == 0 ? 1 : p == 1 ? 2 : 0) * 3 * 800);
      }
    }
    CHECK(allocations() == before);
  }
}

TEST_CASE("a row that workers share counts once, wherever its workers are") {
  auto replicas = normal(6, 100);
  const auto exchange = exchangeOf(replicas, 0);
  Mixing mixing(6, 6);
  mixing.setRow(0, std::vector<MixingShare>{{0, 0.5}, {2, 0.25}, {4, 0.25}});
  mixing.setRow(1, std::vector<MixingShare>{{1, 0.5}, {3, 0.25}, {5, 0.25}});
  for (const std::size_t w : {2, 3, 4, 5}) mixing.shareRow(w, w - 2);
  Context context;
  for (int p = 0; p < 6; ++p) {
    MergeOps ops(*exchange, p, context);
    ops.mix(exchange->blocks()[Parameters], mixing);
    CHECK(ops.bytes() == 800);
  }
}

TEST_CASE("invalid rows are refused") {
  Mixing mixing(2, 4);
  const auto refusal = [&](std::size_t worker, std::vector<MixingShare> row) {
    return thrown<InvalidArgument>([&] { mixing.setRow(worker, row); });
  };
  CHECK(refusal(2, {{0, 1}}) == "mixing: there is no worker 2 among 2");
  CHECK(refusal(0, {}) == "mixing: the row of worker 0 is empty");
  CHECK(
      refusal(0, {{1, 1}, {0, 1}}) ==
      "mixing: the row of worker 0 has worker 0 with factor 1; workers must ascend, below 2, and factors be "
      "finite");
  CHECK(refusal(1, {{0, 0}}) == "mixing: the row of worker 1 has factors of 0 alone");
  CHECK_REFUSED(mixing.setMerged(std::vector<double>{0, 0}),
                "mixing: the merged copy has 2 weights with a sum of 0, for 2 workers");
  auto replicas = normal(3, 4);
  Context context;
  CHECK_REFUSED(MergeOps(*exchangeOf(replicas, 0), 0, context).mixState(mixing),
                "mix: rows for 2 workers were given for 3");
}
