// The parts of a small network's step beside its arithmetic, each by itself: reading a batch, handing it over
// between two threads, its stamp, a rendezvous of two threads, and the call of a small product.
#include <benchmark/benchmark.h>

#include <oneapi/dnnl/dnnl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "muster/core/backend/cpu/small_product.h"
#include "muster/core/base/queue.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/device/affinity.h"
#include "muster/core/ops/dense.h"
#include "muster/parallel/runtime/activity.h"
#include "muster/parallel/runtime/rendezvous.h"
#include "muster/parallel/training/fit_run.h"
#include "tests/bench/tensors.h"

// After context.h, whose muster::detail its cpu::detail would hide.
#include "muster/core/backend/cpu/simd.h"

using namespace muster;
using bench::differences;
using bench::randomTensor;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::int64_t kRows = 600 * 128, kFeatures = 64;  // 20 MB of features
constexpr std::int64_t kPrefetched = 24;

/// Rows whose first feature and whose label are their number.
InMemoryDataSetIterator numberedRows(std::int64_t batch, bool shuffled) {
  Tensor features = Tensor::zeros({kRows, kFeatures}), labels = Tensor::empty({kRows}, DType::Int64);
  for (std::int64_t row = 0; row < kRows; ++row) {
    features.data<float>()[row * kFeatures] = static_cast<float>(row);
    labels.data<std::int64_t>()[row] = row;
  }
  return {features, labels, batch, shuffled ? std::optional<std::uint64_t>(1) : std::nullopt};
}

/// Reads the batches of an epoch in order, and again.
class Reading {
 public:
  Reading(std::int64_t batch, bool shuffled) : data_(numberedRows(batch, shuffled)) { data_.reset(0); }
  void operator()(Batch& batch) {
    const NumberedBatches& batches = *data_.numbered();
    nextBatch(batches, number_, batch);
    number_ = (number_ + 1) % batches.numberOfBatches();
  }

 private:
  InMemoryDataSetIterator data_;
  std::int64_t number_ = 0;
};

/// Whether the features are those of the labels.
bool agrees(const Batch& batch) {
  const Tensor &features = batch.features[0].value, &labels = batch.labels[0].value;
  for (std::int64_t i = 0; i < batch.examples(); ++i)
    if (features.data<float>()[i * kFeatures] != static_cast<float>(labels.data<std::int64_t>()[i]))
      return false;
  return true;
}

void readBatch(benchmark::State& state, bool shuffled) {
  Reading read(state.range(0), shuffled);
  Batch batch;
  read(batch);
  if (!agrees(batch)) return state.SkipWithError("the batch is wrong");
  for (auto step : state) {
    read(batch);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

/// While it lives, the calling thread is pinned to a core and another thread, which runs `work`, to a second
/// one. The destructor waits for `work`.
class SecondThread {
 public:
  explicit SecondThread(std::function<void()> work)
      : cores_(availableCores()), pin_({cores_[0]}, 1), thread_([core = cores_[1], work = std::move(work)] {
          const ThreadPin pin({core}, 1);
          work();
        }) {}

 private:
  const std::vector<int> cores_;  // before the pin leaves only one of them
  ThreadPin pin_;
  std::jthread thread_;
};

/// @return whether it skipped the benchmark.
bool lacksCores(benchmark::State& state) {
  if (availableCores().size() >= 2) return false;
  state.SkipWithError("needs two cores");
  return true;
}

/// A batch goes to the other thread and back: two hand-overs for which a thread waits.
void handOverAndBack(benchmark::State& state) {
  if (lacksCores(state)) return;
  const int looks = static_cast<int>(state.range(0));
  BoundedQueue<Batch*> there(kPrefetched, looks), back(kPrefetched, looks);
  Batch batch;
  const SecondThread second([&] {
    while (const auto got = there.pop()) back.push(*got);
  });
  for (auto step : state) {
    there.push(&batch);
    benchmark::DoNotOptimize(back.pop());
  }
  there.close();
}

/// What a worker that computes nothing gets from the reader's thread, which fills each batch unless `rows` is
/// 0, through the queues of a training.
void readerThread(benchmark::State& state) {
  if (lacksCores(state)) return;
  const std::int64_t rows = state.range(0);
  std::vector<std::unique_ptr<Batch>> batches;
  for (std::int64_t i = 0; i < kPrefetched; ++i) batches.push_back(std::make_unique<Batch>());
  BatchQueues queues(1, batches);
  std::optional<Reading> read;
  if (rows > 0) read.emplace(rows, true);
  const SecondThread reader([&] {
    while (const auto batch = queues.free().pop()) {
      if (read) (*read)(**batch);
      if (!queues.of(0).push(*batch)) return;
    }
  });
  std::vector<Batch*> trained;  // returned in groups, as by a worker
  for (auto step : state) {
    trained.push_back(*queues.of(0).pop());
    if (trained.size() < queues.group()) continue;
    for (Batch* const batch : trained) queues.free().push(batch);
    trained.clear();
  }
  queues.close();
}

/// As the dispatcher stamps it.
void stamp(benchmark::State& state) {
  BatchStamp next;
  Batch batch;
  batch.features.push_back({"features", Tensor::zeros({128, kFeatures})});
  std::int64_t dealt = 0;
  for (auto step : state) {
    batch.stamp = next;
    next.firstExample += batch.examples();
    ++next.sequence;
    next.iteration = ++dealt / 2;
    benchmark::ClobberMemory();
  }
}

/// What a thread tells the watch over stalls, several times a step.
void setActivity(benchmark::State& state) {
  Activity activity;
  for (auto step : state) activity.set(Activity::Kind::Computing, 1);
}

void readClock(benchmark::State& state) {
  for (auto step : state) benchmark::DoNotOptimize(Clock::now());
}

/// Two threads that do nothing else. The argument is how long one spins before it sleeps, in microseconds.
void rendezvousAtOnce(benchmark::State& state) {
  if (lacksCores(state)) return;
  Rendezvous rendezvous(2, std::chrono::microseconds(state.range(0)));
  const SecondThread second([&] {
    while (rendezvous.arrive()) {
    }
  });
  for (auto step : state) rendezvous.arrive();
  rendezvous.abort();
}

/// The time from the arrival of the late thread until the other one goes on. Arguments in microseconds: how
/// late it is, and how long the other one spins before it sleeps.
void rendezvousOneLate(benchmark::State& state) {
  if (lacksCores(state)) return;
  const std::chrono::microseconds late(state.range(0)), patience(state.range(1));
  Rendezvous rendezvous(2, patience);
  Clock::time_point arrived;  // written before the thread arrives, read after the rendezvous has opened
  const SecondThread second([&] {
    do {
      const auto until = Clock::now() + late;
      while ((arrived = Clock::now()) < until) {
      }
    } while (rendezvous.arrive());
  });
  for (auto step : state) {
    rendezvous.arrive();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - arrived).count());
  }
  rendezvous.abort();
}

/// A small layer's forward product.
struct Product {
  explicit Product(const benchmark::State& state)
      : shape{.batch = state.range(0), .inFeatures = state.range(1), .outFeatures = state.range(2)},
        x(randomTensor({shape.batch, shape.inFeatures}, "x")),
        weight(randomTensor({shape.outFeatures, shape.inFeatures}, "weight")),
        y(Tensor::zeros({shape.batch, shape.outFeatures})) {}

  void byOneDnn() {
    dnnl_sgemm('N', 'T', shape.batch, shape.outFeatures, shape.inFeatures, 1.0f, x.data<float>(),
               shape.inFeatures, weight.data<float>(), shape.inFeatures, 0.0f, y.data<float>(),
               shape.outFeatures);
  }

  DenseShape shape;
  Tensor x, weight, y;
};

/// @param compute  writes the product to y.
template <typename Compute>
void measureProduct(benchmark::State& state, Product& product, const Compute& compute) {
  product.byOneDnn();
  const Tensor expected = cloneTensor(product.y);
  compute();
  if (differences(expected, product.y, 1e-4f) > 0) return state.SkipWithError("the results differ");
  for (auto step : state) {
    compute();
    benchmark::ClobberMemory();
  }
}

void productByOneDnn(benchmark::State& state) {
  Context context;
  const ContextScope scope(context);
  Product product(state);
  measureProduct(state, product, [&] { product.byOneDnn(); });
}

void productByOurs(benchmark::State& state) {
#if defined(__x86_64__)
  if (cpu::instructionSet() == cpu::InstructionSet::Avx512) {
    Product product(state);
    const auto& s = product.shape;
    Tensor scratch =
        Tensor::empty({static_cast<std::int64_t>(cpu::smallProductScratch(s.inFeatures) / sizeof(float))});
    return measureProduct(state, product, [&] {
      cpu::smallProductAvx512(s.batch, s.inFeatures, s.outFeatures, product.x.data<float>(),
                              product.weight.data<float>(), nullptr, product.y.data<float>(),
                              scratch.data<float>());
    });
  }
#endif
  state.SkipWithError("needs AVX-512");
}

/// Whichever of the two the layer takes, with its checks.
void productOfLayer(benchmark::State& state) {
  Context context;
  const ContextScope scope(context);
  Product product(state);
  const auto plan = planDense(product.shape, context);
  measureProduct(state, product, [&] { plan->forward(product.x, product.weight, Tensor(), product.y); });
}

BENCHMARK_CAPTURE(readBatch, shuffled, true)->ArgName("rows")->Arg(32)->Arg(128);
BENCHMARK_CAPTURE(readBatch, in order, false)->ArgName("rows")->Arg(32)->Arg(128);
BENCHMARK(handOverAndBack)->ArgName("looks")->Arg(10'000)->Arg(100)->UseRealTime();
BENCHMARK(readerThread)->ArgName("rows")->Arg(0)->Arg(32)->Arg(128)->UseRealTime();
BENCHMARK(stamp);
BENCHMARK(setActivity);
BENCHMARK(readClock);
BENCHMARK(rendezvousAtOnce)->ArgName("patience")->Arg(0)->Arg(20)->Arg(200)->UseRealTime();
// A fixed number, because the time that counts is a small part of the whole.
BENCHMARK(rendezvousOneLate)
    ->ArgNames({"late", "patience"})
    ->ArgsProduct({{10, 100}, {0, 20, 200}})
    ->Iterations(500)
    ->UseManualTime();
BENCHMARK(productByOneDnn)->ArgNames({"batch", "in", "out"})->Args({32, 64, 64})->Args({32, 64, 10});
BENCHMARK(productByOurs)->ArgNames({"batch", "in", "out"})->Args({32, 64, 64})->Args({32, 64, 10});
BENCHMARK(productOfLayer)->ArgNames({"batch", "in", "out"})->Args({32, 64, 64})->Args({32, 64, 10});

}  // namespace
